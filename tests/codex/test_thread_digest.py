"""First prompt, turns and tokens of a thread, from Codex's own file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from laneway.codex import thread_digest
from laneway.codex.thread_digest import ThreadDigests, digest

THREAD = "01a1ecbb-b0d6-7373-bd09-17a532fa3783"
"""Of 18 November 2026, 03:38 UTC."""


def event(**payload: Any) -> str:
    return json.dumps({"type": "event_msg", "payload": payload}) + "\n"


def usage(tokens: int) -> str:
    return event(type="token_count", info={"total_token_usage": {"total_tokens": tokens}})


OLD = event(type="user_message", message="first") + event(type="user_message", message="second")
NEW = event(
    type="item_completed",
    item={"type": "UserMessage", "content": [{"type": "text", "text": "first"}, {"type": "image"}]},
)


@pytest.mark.parametrize("said", [OLD, NEW])
@pytest.mark.parametrize("day", ["2026/11/17", "2026/11/18", "2026/11/19"])
def test_a_thread_is_found_by_its_id_and_read(tmp_path: Path, said: str, day: str) -> None:
    """Whatever the time zone was; both shapes that Codex has for a prompt."""
    file = tmp_path / "sessions" / day / f"rollout-2026-11-18T03-38-05-{THREAD}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(event(type="task_started") + said + usage(10) + event(type="task_started") + usage(30))
    found = ThreadDigests(tmp_path).read(THREAD)
    assert found is not None
    assert (found.first_prompt, found.turns, found.tokens) == ("first", 2, 30)


def test_what_is_not_there_or_no_thread_is_not_known(tmp_path: Path) -> None:
    """No exception for whatever lies in the folder, or for any id."""
    digests = ThreadDigests(tmp_path)
    for thread_id in (THREAD, "", "../..", "x" * 40, "f" * 32):
        assert digests.read(thread_id) is None
    file = tmp_path / "file"
    file.write_bytes(
        b'{"user_message"\n["user_message"]\n{"type": "event_msg", "payload": "user_message"}\n\xff'
    )
    assert digest(file) == thread_digest.ThreadDigest(turns=0, modified=file.stat().st_mtime)
    assert digest(tmp_path) is None


def test_of_a_very_long_thread_the_prompt_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would take long to count is not counted."""
    monkeypatch.setattr(thread_digest, "MAX_READ_BYTES", 300)
    file = tmp_path / "file"
    file.write_text(event(type="task_started") + OLD + usage(5) * 100)
    found = digest(file)
    assert found is not None
    assert (found.first_prompt, found.turns, found.tokens) == ("first", None, None)
