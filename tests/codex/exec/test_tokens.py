"""Tokens out of a record that grows, moves, and holds whatever tools returned."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from laneway.codex.exec import tokens
from laneway.codex.exec.tokens import TokenCount, TokenTail, find_record

THREAD = "01a1f00e-5fb6-7f92-9bfd-0f8d2a8107fe"
"""Of 2026-11-18, 19:07 in Greenwich."""
OLD = "5a1f00e5-5fb6-4f92-9bfd-0f8d2a8107fe"
"""A version 4: no time in it."""


def counted(total: int) -> bytes:
    usage = {"input_tokens": total - 1, "cached_input_tokens": 0, "output_tokens": 1, "total_tokens": total}
    info = {"total_token_usage": usage, "last_token_usage": usage}
    return line("event_msg", {"type": "token_count", "info": info})


def line(kind: str, payload: Any) -> bytes:
    entry = {"timestamp": "2026-11-18T19:07:16.562Z", "type": kind, "payload": payload}
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def record(home: Path, folder: str = "sessions/2026/11/18", thread_id: str = THREAD) -> Path:
    path = home / folder / f"rollout-2026-11-18T19-07-16-{thread_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def grow(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_a_record_that_does_not_exist_yet_counts_nothing(tmp_path: Path) -> None:
    """Nor does a thread whose id is not known; both may come."""
    tail = TokenTail(str(tmp_path))
    assert tail.look() == TokenCount()
    assert tail.look(THREAD) == TokenCount()
    path = record(tmp_path)
    assert tail.look() == TokenCount()
    grow(path, counted(10))
    assert tail.look() == TokenCount(9, 0, 1, 0, 10)
    assert tail.used == tail.last


def test_a_line_counts_when_it_is_whole(tmp_path: Path) -> None:
    """Codex may be in the middle of writing it."""
    path = record(tmp_path)
    tail = TokenTail(str(tmp_path))
    data = counted(10) + line("response_item", {}) + counted(25)
    for at in range(0, len(data), 7):
        grow(path, data[at : at + 7])
        tail.look(THREAD)
    assert tail.last.total == 25


def test_a_thread_that_goes_on_is_counted_from_where_it_stood(tmp_path: Path) -> None:
    """Not less than nothing, should Codex begin anew."""
    path = record(tmp_path)
    grow(path, counted(100))
    tail = TokenTail(str(tmp_path), THREAD)
    assert (tail.base.total, tail.used.total) == (100, 0)
    grow(path, counted(130))
    assert tail.look() == TokenCount(30, 0, 0, 0, 30)
    grow(path, counted(7))
    assert tail.look() == TokenCount()


def test_nothing_is_read_where_nothing_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look is a `stat` then, and else a read of what is new."""
    path = record(tmp_path)
    grow(path, counted(10) * 1000)
    tail = TokenTail(str(tmp_path), THREAD)
    read: list[int] = []
    pread = os.pread

    def noted(fd: int, size: int, at: int) -> bytes:
        data = pread(fd, size, at)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", noted)
    tail.look()
    assert read == []
    grow(path, counted(20))
    tail.look()
    assert sum(read) == len(counted(20))


def test_a_record_that_was_archived_or_written_anew_is_read_on(tmp_path: Path) -> None:
    """It is looked for again where it is no longer there, and read again where it is shorter."""
    path = record(tmp_path)
    grow(path, counted(10))
    tail = TokenTail(str(tmp_path), THREAD)
    archived = record(tmp_path, "archived_sessions")
    path.rename(archived)
    grow(archived, counted(20))
    tail.look()
    assert tail.look().total == 10
    archived.write_bytes(counted(50)[1:] + counted(60))
    archived.write_bytes(counted(70))
    assert tail.look().total == 60


@pytest.mark.parametrize(
    "data",
    [
        b"garbage\n",
        b'{"type":"token_count"\n',
        line("response_item", {"type": "function_call_output", "output": counted(999).decode()}),
        line("response_item", {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 999}}}),
        line("event_msg", {"type": "token_count", "info": None}),
        line("event_msg", {"type": "token_count", "info": {"total_token_usage": {"input_tokens": "x"}}}),
        b'{"type":"token_count",' + b"[" * 5000 + b"\n",
        b"x" * 5000 + b"\n",
    ],
)
def test_what_only_looks_like_a_count_is_none(
    tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a tool returned may hold a whole record; a line may be longer than what is kept."""
    monkeypatch.setattr(tokens, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(tokens, "BLOCK_BYTES", 100)
    path = record(tmp_path)
    grow(path, counted(10) + data)
    tail = TokenTail(str(tmp_path), THREAD)
    assert tail.last.total == 10
    grow(path, counted(20))
    assert tail.look().total == 10


@pytest.mark.parametrize("day", ["17", "18", "19"])
def test_a_record_lies_in_the_folder_of_its_day(tmp_path: Path, day: str) -> None:
    """Of whatever time zone Codex was started in."""
    path = record(tmp_path, f"sessions/2026/11/{day}")
    assert find_record(str(tmp_path), THREAD) == path
    assert find_record(str(tmp_path), THREAD.upper()) == path
    assert find_record(str(tmp_path), OLD) is None
    assert find_record(str(tmp_path), "../*") is None


def test_a_thread_whose_id_tells_no_time_is_found_all_the_same(tmp_path: Path) -> None:
    """Anywhere, or among the archived ones."""
    archived = record(tmp_path, "archived_sessions", OLD)
    assert find_record(str(tmp_path), OLD) == archived
    path = record(tmp_path, "sessions/2025/01/02", OLD)
    assert find_record(str(tmp_path), OLD) == path
    assert find_record(str(tmp_path), "ffffffff-ffff-7f92-9bfd-0f8d2a8107fe") is None


def test_usage_is_read_as_far_as_it_goes() -> None:
    """A total that is not told is the sum."""
    assert TokenCount.of({"input_tokens": 5, "output_tokens": 2}) == TokenCount(5, 0, 2, 0, 7)
    assert TokenCount.of({"input_tokens": 5, "cached_input_tokens": None}) == TokenCount(5, 0, 0, 0, 5)
    assert TokenCount.of(None) is None
    assert TokenCount.of({"output_tokens": 2}) is None
    assert TokenCount(5, 4, 3, 2, 8).since(TokenCount(1, 5, 1, 1, 2)) == TokenCount(4, 0, 2, 1, 6)
