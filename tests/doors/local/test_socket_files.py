"""Where sockets lie: private, short enough, and swept of what dead processes left."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from laneway.base.errors import StoreError
from laneway.doors.local.socket_files import MAX_PATH_BYTES, folders, is_private, listen, live_sockets


def environment(run: Path) -> dict[str, str]:
    return {"XDG_RUNTIME_DIR": str(run), "XDG_STATE_HOME": str(run / "state")}


def leave_behind(path: Path) -> None:
    """A socket whose process is gone: bound, and nobody listens."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(path))


def test_a_socket_is_for_its_user_alone_and_named_by_its_process(run: Path) -> None:
    """Folder and file keep everybody else out."""
    listening, path = listen(environment(run))
    with listening:
        assert path.parent == run / "laneway"
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        (socket_file,) = live_sockets(environment(run))
        assert (socket_file.path, socket_file.pid) == (path, os.getpid())


def test_a_path_that_is_too_long_leads_to_the_next_folder(run: Path) -> None:
    """At last to one that is short by itself."""
    deep = run / ("d" * MAX_PATH_BYTES)
    deep.mkdir(mode=0o700)
    listening, path = listen({"XDG_RUNTIME_DIR": str(deep), "XDG_STATE_HOME": str(run)})
    with listening:
        assert path.parent == run / "laneway" / "run"
    nowhere = {"XDG_RUNTIME_DIR": str(deep), "XDG_STATE_HOME": str(deep)}
    short, path = listen(nowhere)
    with short:
        assert path.parent == folders(nowhere)[-1]
        assert [socket_file.path for socket_file in live_sockets(nowhere)] == [path]


def test_a_folder_that_others_can_enter_is_not_used(run: Path) -> None:
    """Nor is a link in its place, nor what is no folder: all of that could be somebody's trap."""
    (run / "laneway").mkdir()
    os.chmod(run / "laneway", 0o755)
    assert not is_private(run / "laneway")
    listening, path = listen(environment(run))
    with listening:
        assert path.parent == run / "state" / "laneway" / "run"
    (run / "private").mkdir(mode=0o700)
    (run / "link").symlink_to(run / "private")
    (run / "file").touch(mode=0o600)
    assert [is_private(run / name) for name in ("private", "link", "file", "nothing")] == [
        True,
        False,
        False,
        False,
    ]


def test_no_place_at_all_is_one_sentence_that_names_them(run: Path) -> None:
    """A server goes on without a door then; its log has this."""
    for place in ("laneway", "state", "last"):
        (run / place).write_text("in the way")
    with pytest.raises(StoreError) as caught:
        listen(environment(run))
    for folder in folders(environment(run)):
        assert str(folder) in str(caught.value)


def test_what_a_dead_process_left_is_swept_and_the_living_stays(run: Path) -> None:
    """Also under the very same pid: pids come again."""
    listening, path = listen(environment(run))
    with listening:
        dead = path.with_name(f"{path.name[:4]}-{os.getpid()}-000000.sock")
        leave_behind(dead)
        for _ in range(2):
            assert [socket_file.path for socket_file in live_sockets(environment(run))] == [path]
        assert not dead.exists()
        assert path.exists()


def test_only_our_own_leavings_are_swept(run: Path) -> None:
    """Not another machine's, which may share this home; not a socket on its way; nothing of another name."""
    listening, path = listen(environment(run))
    listening.close()
    machine = path.name[:4]
    other = "ffff" if machine != "ffff" else "0000"
    stays = [f"{other}-7-000000.sock", f"{machine}-{os.getpid()}-000000.open", "other.sock"]
    for name in (*stays, f"{machine}-4194305-000000.open"):
        leave_behind(path.with_name(name))
    assert live_sockets(environment(run)) == []
    assert {each.name for each in path.parent.iterdir()} == set(stays)


def test_a_process_that_accepts_nobody_is_alive(run: Path) -> None:
    """A stopped one, whose queue is full: it is neither waited for nor swept."""
    listening, path = listen(environment(run))
    listening.listen(0)
    waiting = []
    try:
        with listening:
            for _ in range(8):
                each = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                waiting.append(each)
                each.setblocking(False)
                try:
                    each.connect(str(path))
                except BlockingIOError:
                    break
            else:
                pytest.fail("the queue never filled")
            assert [socket_file.path for socket_file in live_sockets(environment(run))] == [path]
    finally:
        for each in waiting:
            each.close()
