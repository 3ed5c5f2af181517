"""Peer credentials of a unix socket: the user and the process at the other end, as the system reports them.

Only the user whose sessions these are may connect. The folder's mode is the first check, this the second.
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
"""SO_PEERPIDFD, since Linux 6.5: refers to the process itself, not to a pid that may be reused."""
_NOT_THERE = (errno.ENOPROTOOPT, errno.EOPNOTSUPP, errno.EINVAL)
"""Errors of older systems for an option that they do not know."""
_MACOS = struct.Struct("=II")
"""The beginning of `struct xucred`: its version (0), uid."""
_MACOS_LEVEL, _MACOS_OPTION, _MACOS_PEERPID = 0, 1, 2
"""SOL_LOCAL, LOCAL_PEERCRED and LOCAL_PEERPID, which not every Python names."""
_MACOS_BYTES = 128
"""More than `struct xucred`, which ends with sixteen groups."""
_INT = struct.Struct("i")
NOBODY = -1
"""No user: the peer has left already, or cannot be determined."""


def uid_of(sock: socket.socket) -> int | None:
    """The user at the other end; `None` on systems that do not tell."""
    try:
        if sys.platform.startswith("linux"):
            credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _LINUX.size)
            return int(_LINUX.unpack(credentials)[1])
        if sys.platform == "darwin":
            credentials = sock.getsockopt(_MACOS_LEVEL, _MACOS_OPTION, _MACOS_BYTES)
            return int(_MACOS.unpack_from(credentials)[1])
    except (OSError, struct.error):
        return NOBODY
    return None


def may_enter(uid: int | None, ours: int) -> bool:
    """Whether the user is ours. Where the system does not tell, the folder's mode has kept others out."""
    return uid is None or uid == ours


def pid_of(sock: socket.socket) -> int | None:
    """The process that connected; none if the system does not tell, or it is outside of our container."""
    try:
        if sys.platform.startswith("linux"):
            credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _LINUX.size)
            return int(_LINUX.unpack(credentials)[0]) or None
        if sys.platform == "darwin":
            credentials = sock.getsockopt(_MACOS_LEVEL, _MACOS_PEERPID, _INT.size)
            return int(_INT.unpack(credentials)[0]) or None
    except (OSError, struct.error):
        return None
    return None


def has_ended(sock: socket.socket) -> bool:
    """Whether the process that connected is known to be gone: its pid may be another's by now."""
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
