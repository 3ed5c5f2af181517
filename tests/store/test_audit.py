"""The audit log: bounded, redacted, whole."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import StoreError
from laneway.base.redact import HIDDEN
from laneway.core.named.records import AuditLine
from laneway.store.audit import (
    MAX_OLD_FILES,
    MAX_READ_LINE_BYTES,
    REDACTED_CHARS,
    AuditLog,
    AuditPage,
)
from laneway.store.retention import Retention
from tests.adversary.odd_files import SPARSE_BYTES, Maker, not_regular, sparse_file
from tests.store.support import WallClock, event

KEY = "sk-" + "a1B2" * 10
TEXTS = st.text(alphabet=st.characters(), max_size=400)


def log_at(folder: Path, **options: Any) -> AuditLog:
    return AuditLog(folder / "audit.jsonl", folder / ".audit.lock", **options)


def texts(log: AuditLog) -> list[str]:
    return [line["prompt_summary"] for line in log.read().lines]


@pytest.mark.covers("FR-9.3")
def test_a_line_says_when_what_and_who(tmp_path: Path) -> None:
    """Agent and identity always, also when unknown; the rest where there is something to say."""
    log = log_at(tmp_path, now=WallClock())
    log.append(AuditLine(event_type="atm_send", agent_id=None, identity=None, recipient="lead"))
    log.append(
        AuditLine(
            event_type="codex",
            agent_id="a",
            identity="codex",
            message_summary="m",
            prompt_summary="p",
            thread_id="t",
            turn_id="u",
            request_id="7",
            outcome="completed",
        )
    )
    first, second = (json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines())
    assert first == {
        "timestamp": "2026-02-18T12:00:00.123Z",
        "event_type": "atm_send",
        "agent_id": None,
        "identity": None,
        "recipient": "lead",
    }
    assert second == {
        "timestamp": "2026-02-18T12:00:00.123Z",
        "event_type": "codex",
        "agent_id": "a",
        "identity": "codex",
        "message_summary": "m",
        "prompt_summary": "p",
        "thread_id": "t",
        "turn_id": "u",
        "request_id": "7",
        "outcome": "completed",
    }


@given(st.builds(AuditLine, **dict.fromkeys(AuditLine.__struct_fields__, TEXTS)))
def test_no_text_makes_a_line_long_or_breaks_it(
    tmp_path_factory: pytest.TempPathFactory, told: AuditLine
) -> None:
    """Line breaks, control characters, halves of characters: one line, whole, under 16 KiB."""
    folder = tmp_path_factory.mktemp("audit")
    log = log_at(folder)
    log.append(told)
    log.append(told)
    data = (folder / "audit.jsonl").read_bytes()
    assert (data.count(b"\n"), data[-1:]) == (2, b"\n")
    assert max(map(len, data.split(b"\n"))) < 16 * 1024
    first, second = log.read().lines
    assert {**first, "timestamp": ""} == {**second, "timestamp": ""}
    assert all(len(value) <= 200 for value in first.values())


def test_lines_that_come_together_are_written_together_and_in_order(tmp_path: Path) -> None:
    """One write for all, so that a busy server does not stand at the gate for each."""
    log = log_at(tmp_path)
    log.append(event("0"))
    log.append(event("1"), event("2"), event("3"))
    assert texts(log) == ["0", "1", "2", "3"]


@pytest.mark.covers("FR-9.2")
def test_a_text_is_cut_at_two_hundred_characters(tmp_path: Path) -> None:
    """Characters, not bytes."""
    log = log_at(tmp_path)
    log.append(event("é" * 300))
    assert texts(log) == ["é" * 200]


@pytest.mark.covers("NFR-3")
@pytest.mark.parametrize("place", [0, 180, 195, REDACTED_CHARS - 20])
def test_a_secret_is_never_written_not_even_half(tmp_path: Path, place: int) -> None:
    """Wherever it lies in the text, and where the text is cut."""
    log = log_at(tmp_path)
    log.append(event("." * (place - 1) + " " * bool(place) + KEY + " and more"))
    log.append(AuditLine(event_type="x", agent_id=KEY, identity=KEY, recipient=KEY, outcome=f"token={KEY}"))
    written = (tmp_path / "audit.jsonl").read_text()
    assert "sk-a1" not in written
    assert HIDDEN in written


def test_half_a_secret_at_the_end_of_what_the_redactor_saw_stays_hidden(tmp_path: Path) -> None:
    """A long secret in front of it makes room in the line."""
    log = log_at(tmp_path)
    log.append(event(f"password={'p' * (REDACTED_CHARS - 20)} {KEY}"))
    assert texts(log) == [""]


def test_threads_tear_nothing(tmp_path: Path) -> None:
    """Of one log and of many on the same file."""
    logs = [log_at(tmp_path), log_at(tmp_path)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: logs[n % 2].append(event(f"{n}")), range(400)))
    assert sorted(map(int, texts(logs[0]))) == list(range(400))


@pytest.mark.parametrize("torn", [b'{"timestamp":"2026', b"\xff\xfe", b'{"a":1}'])
def test_a_line_torn_by_a_crash_costs_no_other(tmp_path: Path, torn: bytes) -> None:
    """The next writer begins a line of its own; nothing is taken away."""
    log = log_at(tmp_path)
    log.append(event("before"))
    with (tmp_path / "audit.jsonl").open("ab") as file:
        file.write(torn)
    is_line = torn.startswith(b'{"a"')
    assert len(log.read().lines) == 1 + is_line
    log.append(event("after"))
    page = log.read()
    assert [line.get("prompt_summary") for line in page.lines if "a" not in line] == ["before", "after"]
    assert page.damaged == (not is_line)
    assert torn in (tmp_path / "audit.jsonl").read_bytes().split(b"\n")


def test_the_reader_passes_over_what_is_no_line_of_ours(tmp_path: Path) -> None:
    """Garbage, other shapes, endless lines and nesting; foreign objects are shown."""
    log = log_at(tmp_path)
    foreign = b'{"event_type":"old","agent_id":"codex:1"}'
    rubbish = [
        b"garbage",
        b"[]",
        b'"x" * 9',
        b'{"a":' + b"[" * 9999,
        b'{"x":"' + b"x" * MAX_READ_LINE_BYTES * 2 + b'"}',
    ]
    (tmp_path / "audit.jsonl").write_bytes(b"\n".join([*rubbish, b"", foreign, b"\0" * 4096]))
    log.append(event("ours"))
    page = log.read()
    assert [line["event_type"] for line in page.lines] == ["old", "codex"]
    assert page.damaged == len(rubbish) + 1


def test_lines_are_found_by_identity_and_agent(tmp_path: Path) -> None:
    """The newest, up to a limit."""
    log = log_at(tmp_path)
    for number in range(6):
        log.append(event(str(number), identity="even" if number % 2 == 0 else "odd"))
    assert [line["prompt_summary"] for line in log.read(identity="odd").lines] == ["1", "3", "5"]
    assert [line["prompt_summary"] for line in log.read(identity="even", limit=2).lines] == ["2", "4"]
    assert len(log.read(agent_id="a").lines) == 6
    assert log.read(agent_id="b").lines == ()


def test_a_file_that_is_full_is_put_away_and_the_oldest_goes(tmp_path: Path) -> None:
    """By size; the newest lines are all there, in order."""
    log = log_at(tmp_path, retention=Retention(audit_max_bytes=1000, audit_files=2))
    for number in range(60):
        log.append(event(f"{number:02}"))
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == [".audit.lock", "audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    kept = texts(log)
    assert kept == [f"{number:02}" for number in range(60 - len(kept), 60)]
    assert len(kept) > 15


def test_without_old_files_only_the_newest_lines_stay(tmp_path: Path) -> None:
    """A setting of none is none."""
    log = log_at(tmp_path, retention=Retention(audit_max_bytes=500, audit_files=0))
    for number in range(20):
        log.append(event(str(number)))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".audit.lock", "audit.jsonl"]
    assert texts(log)[-1] == "19"


def test_old_files_leave_with_age(tmp_path: Path) -> None:
    """A file begun too long ago is put away first, and removed when it has lain for as long again."""
    clock = WallClock()
    log = log_at(tmp_path, now=clock, retention=Retention(audit_age=timedelta(days=7)))
    log.append(event("old"))
    clock.move(days=6)
    log.append(event("young"))
    assert (log.tidy(), texts(log)) == (0, ["old", "young"])
    clock.move(days=2)
    os.utime(tmp_path / "audit.jsonl", times=(clock().timestamp(),) * 2)
    assert log.tidy() == 0
    log.append(event("new"))
    assert (tmp_path / "audit.jsonl.1").exists()
    assert texts(log) == ["old", "young", "new"]
    clock.move(days=-100)
    assert log.tidy() == 0  # the clock went back
    clock.move(days=108)
    assert (log.tidy(), texts(log)) == (1, ["new"])


def test_a_log_that_another_program_made_becomes_private(tmp_path: Path) -> None:
    """With the first line that we add."""
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"{}\n")
    path.chmod(0o644)
    log_at(tmp_path).append(event())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_in_the_place_of_the_log_is_not_followed(tmp_path: Path) -> None:
    """What it points to keeps its content, and the refusal is a sentence."""
    target = tmp_path / "target"
    target.write_bytes(b"theirs")
    (tmp_path / "audit.jsonl").symlink_to(target)
    with pytest.raises(StoreError, match="another kind lies there"):
        log_at(tmp_path).append(event())
    assert target.read_bytes() == b"theirs"


def test_more_old_files_than_a_reader_can_open_are_never_kept(tmp_path: Path) -> None:
    """Whatever the setting says."""
    log = log_at(tmp_path, retention=Retention(audit_max_bytes=1, audit_files=5000))
    for number in range(MAX_OLD_FILES + 20):
        log.append(event(str(number)))
    assert texts(log) == [str(number) for number in range(19, MAX_OLD_FILES + 20)]


@not_regular
def test_an_odd_thing_in_the_place_of_the_log_is_a_sentence_at_once(tmp_path: Path, make: Maker) -> None:
    """Nothing is waited for, whether lines are written, read or put away; and it stays as it is."""
    log = log_at(tmp_path, retention=Retention(audit_max_bytes=1), now=WallClock())
    make(tmp_path / "audit.jsonl")
    before = os.lstat(tmp_path / "audit.jsonl")
    for attempt in (lambda: log.append(event("x")), log.tidy):
        with pytest.raises(StoreError, match="something of another kind lies there"):
            attempt()
    assert log.read() == AuditPage((), damaged=1)
    assert os.path.samestat(os.lstat(tmp_path / "audit.jsonl"), before)


@not_regular
def test_an_odd_thing_among_the_old_files_costs_no_line(tmp_path: Path, make: Maker) -> None:
    """It is not read, not counted as one of them, and not moved."""
    log = log_at(tmp_path, now=WallClock())
    log.append(event("kept"))
    make(tmp_path / "audit.jsonl.7")
    assert log.tidy() == 0
    assert texts(log) == ["kept"]
    log_at(tmp_path, retention=Retention(audit_max_bytes=1), now=WallClock()).append(event("next"))
    assert texts(log) == ["kept", "next"]
    assert os.path.lexists(tmp_path / "audit.jsonl.7")


def test_of_a_file_without_measure_only_the_end_is_read(tmp_path: Path) -> None:
    """Ten gigabytes of nothing, and one line."""
    log = log_at(tmp_path, retention=Retention(audit_max_bytes=2 * SPARSE_BYTES))
    sparse_file(tmp_path / "audit.jsonl")
    log.append(event("seen"))
    assert texts(log) == ["seen"]
