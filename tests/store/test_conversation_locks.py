"""One process works in a conversation, and a second one is told which."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.base.errors import ConversationHeld, ConversationUnknown
from laneway.store.conversation_locks import UNKNOWN, ConversationLockFiles
from tests.store.support import Worker


def test_a_second_process_is_told_which_one_holds_the_conversation(tmp_path: Path) -> None:
    locks = ConversationLockFiles(tmp_path)
    with Worker("open_conversation", tmp_path, "c") as worker:
        assert worker.hear() == "holding"
        with pytest.raises(ConversationHeld) as refused:
            locks.hold("c")
        assert refused.value.holder == f"laneway chat, process {worker.pid}"
        assert f"process {worker.pid}" in str(refused.value)
        locks.hold("another")()


def test_a_conversation_is_free_when_it_is_released_and_when_its_process_is_killed(tmp_path: Path) -> None:
    locks = ConversationLockFiles(tmp_path)
    with Worker("open_conversation", tmp_path, "c") as worker:
        assert worker.hear() == "holding"
        worker.kill()
        release = locks.hold("c")
    with pytest.raises(ConversationHeld):
        locks.hold("c")
    release()
    release()
    again = locks.hold("c")
    release()  # of the earlier hold: it does not free the later one
    with pytest.raises(ConversationHeld):
        locks.hold("c")
    again()
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_a_path_is_no_conversation(tmp_path: Path) -> None:
    for name in ("../c", "", "a/b", "\x1b[2J", "\ud800"):
        with pytest.raises(ConversationUnknown):
            ConversationLockFiles(tmp_path / "locks").hold(name)
    assert list(tmp_path.iterdir()) == []


def test_what_a_holder_wrote_is_shown_on_one_line(tmp_path: Path) -> None:
    """Somebody else may have written into the file."""
    locks = ConversationLockFiles(tmp_path)
    release = locks.hold("c")
    for note, shown in ((b"a\nb\x1b[2J", "a\\nb\\x1b[2J"), (b"", UNKNOWN)):
        (tmp_path / "c.lock").write_bytes(note)
        with pytest.raises(ConversationHeld) as refused:
            locks.hold("c")
        assert refused.value.holder == shown
    release()
