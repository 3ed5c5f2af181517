"""Who is at the other end of a connection: the user, and the process, as the system tells them.

Only the user whose sessions these are may come in. The folder's mode is the first fence, this another.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import sys

_LINUX = struct.Struct("iII")
"""`struct ucred`: pid, uid, gid."""
_LINUX_PEERPIDFD = 77
"""SO_PEERPIDFD, since Linux 6.5: the process itself, not a number that is given to another one later."""
_NOT_THERE = (errno.ENOPROTOOPT, errno.EOPNOTSUPP, errno.EINVAL)
"""What older systems say of an option that they do not know."""
_MACOS = struct.Struct("=II")
"""The beginning of `struct xucred`: its version (0), uid."""
_MACOS_LEVEL, _MACOS_OPTION, _MACOS_PEERPID = 0, 1, 2
"""SOL_LOCAL, LOCAL_PEERCRED and LOCAL_PEERPID, which not every Python names."""
_MACOS_BYTES = 128
"""More than `struct xucred`, which ends with sixteen groups."""
_INT = struct.Struct("i")
NOBODY = -1
"""Whoever has left already, or cannot be told."""


def uid_of(sock: socket.socket) -> int | None:
    """The user at the other end; `None` on systems that we cannot ask."""
    try:
        if sys.platform.startswith("linux"):
            told = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _LINUX.size)
            return int(_LINUX.unpack(told)[1])
        if sys.platform == "darwin":
            told = sock.getsockopt(_MACOS_LEVEL, _MACOS_OPTION, _MACOS_BYTES)
            return int(_MACOS.unpack_from(told)[1])
    except (OSError, struct.error):
        return NOBODY
    return None


def may_enter(uid: int | None, ours: int) -> bool:
    """Where the system cannot be asked, nobody else could have come through the folder."""
    return uid is None or uid == ours


def pid_of(sock: socket.socket) -> int | None:
    """The process that connected; none where that is not told, or it is outside of our container."""
    try:
        if sys.platform.startswith("linux"):
            told = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _LINUX.size)
            return int(_LINUX.unpack(told)[0]) or None
        if sys.platform == "darwin":
            told = sock.getsockopt(_MACOS_LEVEL, _MACOS_PEERPID, _INT.size)
            return int(_INT.unpack(told)[0]) or None
    except (OSError, struct.error):
        return None
    return None


def has_ended(sock: socket.socket) -> bool:
    """Whether the process that connected is known to be gone: its number may be another's by now."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        (fd,) = _INT.unpack(sock.getsockopt(socket.SOL_SOCKET, _LINUX_PEERPIDFD, _INT.size))
    except OSError as problem:
        return problem.errno not in _NOT_THERE
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(0))
    finally:
        os.close(fd)
