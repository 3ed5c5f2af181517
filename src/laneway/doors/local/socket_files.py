"""Socket files of serving processes: where they are made, how they are found, which are left over.

A server listens in the first folder that it can use; a client looks in all of them, because an
editor's environment differs from a terminal's. A socket file that nobody listens on is removed by
whoever finds it, but only if it was made on this machine: a home may be shared, and another machine
cannot tell that a process here is alive.
"""

from __future__ import annotations

import os
import re
import socket
import stat
from binascii import crc32
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from laneway.base.errors import StoreError
from laneway.base.paths import state_home

MAX_PATH_BYTES = 100
"""Of a socket's path: the kernels of macOS and Linux take 103 and 107 bytes."""
BACKLOG = 32
"""Connections that wait to be accepted: terminals, opened by hand."""
LAST_RESORT = Path("/tmp")
"""A folder with a short path, however long the user's home is. All users share it: see `is_private`."""
FOLDER_MODE = 0o700
SOCKET_MODE = 0o600

READY = ".sock"
OPENING = ".open"
"""The suffix of a socket that is not listened on yet. As long as `READY`, so that a path fits with both."""
_NAME = re.compile(r"([0-9a-f]{4})-([0-9]{1,10})-[0-9a-f]{6}(\.sock|\.open)")


class SocketFile(msgspec.Struct, frozen=True):
    """A socket file, as its name describes it."""

    path: Path
    pid: int
    is_ready: bool
    is_local: bool
    """Whether it was made on this machine, by its name."""


def folders(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Folders that sockets may be in, the preferred one first."""
    runtime = (os.environ if environment is None else environment).get("XDG_RUNTIME_DIR", "")
    fallbacks = [state_home(environment) / "run", LAST_RESORT / f"laneway-{os.geteuid()}"]
    return [Path(runtime) / "laneway", *fallbacks] if runtime.startswith("/") else fallbacks


# ── listening ──────────────────────────────────────────────────────────────


def listen(environment: Mapping[str, str] | None = None) -> tuple[socket.socket, Path]:
    """A listening socket that only this user can reach. `StoreError` if no folder can be used."""
    problems: list[str] = []
    for folder in folders(environment):
        path = folder / f"{_machine()}-{os.getpid()}-{os.urandom(3).hex()}{READY}"
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            problems.append(f"the path of {folder} is too long")
            continue
        try:
            _make(folder)
            if is_private(folder):
                return _bound(path), path
            problems.append(f"{folder} is not yours alone")
        except OSError as problem:
            problems.append(f"{folder}: {problem.strerror or problem}")
    raise StoreError(f"No folder for a socket could be used ({'; '.join(problems)}).")


def is_private(folder: Path) -> bool:
    """Whether no other user can create files in the folder, or reach those in it."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_ours and not status.st_mode & 0o077


def _make(folder: Path) -> None:
    if folder.name == "laneway" and os.stat(folder.parent).st_uid != os.geteuid():
        # `sudo` may leave us another user's runtime folder: a folder of ours in it would shut its owner out.
        raise PermissionError(0, "the folder above is somebody else's")
    missing = []
    for place in (folder, *folder.parents):
        if place.exists():
            break
        missing.append(place)
    for place in reversed(missing):
        place.mkdir(FOLDER_MODE, exist_ok=True)


def _bound(path: Path) -> socket.socket:
    opening = path.with_suffix(OPENING)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(os.fspath(opening))
        try:
            os.chmod(opening, SOCKET_MODE)
            listening.listen(BACKLOG)
            # It gets its final name last: a client that finds that name before we listen would remove it.
            os.rename(opening, path)
        except BaseException:
            opening.unlink(missing_ok=True)
            raise
    except BaseException:
        listening.close()
        raise
    listening.setblocking(False)
    return listening


def _machine() -> str:
    return f"{crc32(socket.gethostname().encode()) & 0xFFFF:04x}"


# ── looking ────────────────────────────────────────────────────────────────


def live_sockets(environment: Mapping[str, str] | None = None) -> list[SocketFile]:
    """The sockets that a process listens on. Those that dead processes left are removed."""
    live = []
    for socket_file in _socket_files(folders(environment)):
        answer = _try_connect(socket_file.path)
        if answer == "refused":
            _remove_stale(socket_file)
        elif answer == "there" and socket_file.is_ready:
            live.append(socket_file)
    return live


def _socket_files(places: list[Path]) -> Iterator[SocketFile]:
    machine = _machine()
    for folder in places:
        if not is_private(folder):
            continue
        try:
            paths = sorted(folder.iterdir())
        except OSError:
            continue  # gone since we looked
        for path in paths:
            name = _NAME.fullmatch(path.name)
            if name is not None:
                yield SocketFile(path, int(name[2]), is_ready=name[3] == READY, is_local=name[1] == machine)


def _try_connect(path: Path) -> str:
    """`there`, `refused` (nobody listens), or `unknown`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # A stopped process accepts no connection: it must not keep us waiting, and it is alive.
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            return "refused"
        except BlockingIOError:
            return "there"
        except OSError:
            return "unknown"
        return "there"


def _remove_stale(socket_file: SocketFile) -> None:
    if not socket_file.is_local or (not socket_file.is_ready and _is_alive(socket_file.pid)):
        return  # another machine's, or about to be listened on
    try:
        socket_file.path.unlink(missing_ok=True)
    except OSError:
        pass  # a read-only folder: the file stays, and is refused again


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
