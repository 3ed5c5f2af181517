"""Who may come in."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from laneway.doors.local.admission import NOBODY, has_ended, may_enter, pid_of, uid_of
from tests.doors.local.support import Stranger, local_stage
from tests.wire.support import linux_only


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


@linux_only
def test_the_system_tells_which_process_connected_and_whether_it_is_gone(run: Path) -> None:
    """Though its connection lives on in another; its number alone would not tell."""
    path = os.fspath(run / "socket")
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as kept:
        listening.bind(path)
        listening.listen()
        connect = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).connect(sys.argv[2])"
        words = [sys.executable, "-I", "-S", "-c", f"{connect}; print(flush=True); input()"]
        with subprocess.Popen(
            [*words, str(kept.fileno()), path],
            pass_fds=[kept.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as maker:
            accepted, _ = listening.accept()
            with accepted:
                assert (pid_of(accepted), has_ended(accepted)) == (maker.pid, False)
                maker.communicate(b"\n")
                assert (pid_of(accepted), has_ended(accepted)) == (maker.pid, knows_processes(accepted))
    with socket.socket(socket.AF_INET) as other:
        assert pid_of(other) is None


def knows_processes(sock: socket.socket) -> bool:
    """Whether the kernel tells of a connection's process itself: since Linux 6.5."""
    try:
        os.close(int.from_bytes(sock.getsockopt(socket.SOL_SOCKET, 77, 4), sys.byteorder))
    except OSError as problem:
        return problem.errno != errno.ENOPROTOOPT
    return True


async def test_another_user_is_turned_away_at_the_door(tmp_path: Path, run: Path) -> None:
    """Before a word is read."""
    async with local_stage(tmp_path, run, uid=os.geteuid() + 1) as home:
        with Stranger(home.door.path) as stranger, pytest.raises((EOFError, ConnectionResetError)):
            await stranger.lines_until(lambda message: True)
