"""Gates: one at a time behind them, and nobody waits in front of them for ever."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from laneway.base.errors import StoreError
from laneway.store.gates import gate, readers_gate


def test_a_process_that_stands_still_behind_a_gate_does_not_freeze_the_others(tmp_path: Path) -> None:
    """They give up in a sentence that names the file."""
    path = tmp_path / ".lock"
    for waiting in (gate, readers_gate):
        with (
            gate(path),
            pytest.raises(StoreError, match=r"Another process has held .*\.lock for 0\.01 seconds"),
            waiting(path, patience_s=0.01),
        ):
            pass
    with gate(path, patience_s=0.01):
        pass


def test_a_reader_makes_no_gate(tmp_path: Path) -> None:
    """Nor waits for one that is not there."""
    with readers_gate(tmp_path / ".lock") as is_there:
        assert not is_there
    assert list(tmp_path.iterdir()) == []


def test_whoever_waited_for_a_gate_that_was_removed_meets_the_others_at_the_new_one(tmp_path: Path) -> None:
    """A lock on a file without a name keeps nobody out."""
    path = tmp_path / ".lock"
    inside: list[str] = []
    is_in, may_go = threading.Event(), threading.Event()

    def second() -> None:
        with gate(path):
            inside.append("second")
            is_in.set()
            may_go.wait()

    with gate(path):
        waiting = threading.Thread(target=second)
        waiting.start()
        path.unlink()
    assert is_in.wait(30)
    with pytest.raises(StoreError, match="Another process"), gate(path, patience_s=0.01):
        inside.append("third")
    may_go.set()
    waiting.join()
    assert inside == ["second"]
