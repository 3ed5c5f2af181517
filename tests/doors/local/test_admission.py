"""Who may come in."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from laneway.doors.local.admission import NOBODY, may_enter, uid_of
from tests.doors.local.support import Stranger, house


def test_only_the_same_user_may_enter() -> None:
    """Root is somebody else, too. Where the system cannot be asked, the folder is the fence."""
    assert may_enter(1000, 1000)
    assert not may_enter(1001, 1000)
    assert not may_enter(0, 1000)
    assert not may_enter(NOBODY, 1000)
    assert may_enter(None, 1000)


def test_the_system_tells_who_is_at_the_other_end() -> None:
    """Of a socket that has no other end, it tells nobody's name."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert uid_of(ours) == os.geteuid()
    with socket.socket(socket.AF_INET) as other:
        assert not may_enter(uid_of(other), os.geteuid())


async def test_another_user_is_turned_away_at_the_door(tmp_path: Path, run: Path) -> None:
    """Before a word is read."""
    async with house(tmp_path, run, uid=os.geteuid() + 1) as home:
        with Stranger(home.door.path) as stranger, pytest.raises((EOFError, ConnectionResetError)):
            await stranger.lines_until(lambda message: True)
