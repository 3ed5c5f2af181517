"""Where the sockets of serving processes lie, and which of them are left over from dead ones.

A server listens in the first folder that it can use; whoever looks, looks in all of them, because
an editor's environment is not a terminal's. A name under which nobody listens is swept by
whoever meets it. Only names of this machine are: a home may be shared, and the kernel of another
machine cannot tell that a process here is alive.
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
"""Where the path is short whatever the user's home is called. It is everybody's: see `is_private`."""
FOLDER_MODE = 0o700
SOCKET_MODE = 0o600

READY = ".sock"
OPENING = ".open"
"""A socket that is not listened on yet. As long as the other, so that a path fits under both."""
_NAME = re.compile(r"([0-9a-f]{4})-([0-9]{1,10})-[0-9a-f]{6}(\.sock|\.open)")


class Spot(msgspec.Struct, frozen=True):
    """A socket file, by its name."""

    path: Path
    pid: int
    is_ready: bool
    is_local: bool
    """Made on this machine, as far as its name tells."""


def folders(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Where sockets may lie, the best place first."""
    runtime = (os.environ if environment is None else environment).get("XDG_RUNTIME_DIR", "")
    found = [state_home(environment) / "run", LAST_RESORT / f"laneway-{os.geteuid()}"]
    return [Path(runtime) / "laneway", *found] if runtime.startswith("/") else found


# ── listening ──────────────────────────────────────────────────────────────


def listen(environment: Mapping[str, str] | None = None) -> tuple[socket.socket, Path]:
    """A socket that only this user can reach, listening. `StoreError` if there is no place for it."""
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
    """Whether nobody else can put anything there, or reach what is there."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_ours and not found.st_mode & 0o077


def _make(folder: Path) -> None:
    if folder.name == "laneway" and os.stat(folder.parent).st_uid != os.geteuid():
        # `sudo` may leave us another user's runtime folder: a folder of ours would shut its owner out.
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
            # Its real name comes last: whoever meets that name before we listen would sweep it.
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


def standing(environment: Mapping[str, str] | None = None) -> list[Spot]:
    """The sockets that somebody listens on. What dead processes left is removed."""
    found = []
    for spot in _spots(folders(environment)):
        answer = _knock(spot.path)
        if answer == "refused":
            _sweep(spot)
        elif answer == "there" and spot.is_ready:
            found.append(spot)
    return found


def _spots(places: list[Path]) -> Iterator[Spot]:
    machine = _machine()
    for folder in places:
        if not is_private(folder):
            continue
        try:
            found = sorted(folder.iterdir())
        except OSError:
            continue  # gone since we looked
        for path in found:
            name = _NAME.fullmatch(path.name)
            if name is not None:
                yield Spot(path, int(name[2]), is_ready=name[3] == READY, is_local=name[1] == machine)


def _knock(path: Path) -> str:
    """`there`, `refused` (nobody listens), or `unknown`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
        # A stopped process accepts nobody: it must not keep us waiting, and it is alive.
        knocking.setblocking(False)
        try:
            knocking.connect(os.fspath(path))
        except ConnectionRefusedError:
            return "refused"
        except BlockingIOError:
            return "there"
        except OSError:
            return "unknown"
        return "there"


def _sweep(spot: Spot) -> None:
    if not spot.is_local or (not spot.is_ready and _is_alive(spot.pid)):
        return  # another machine's, or half-way to being listened on
    try:
        spot.path.unlink(missing_ok=True)
    except OSError:
        pass  # a read-only folder: it stays, and is refused again


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
