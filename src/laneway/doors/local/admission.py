"""Who may come in: the user whose sessions these are. The folder's mode is the first fence, this another."""

from __future__ import annotations

import socket
import struct
import sys

_LINUX = struct.Struct("iII")
"""`struct ucred`: pid, uid, gid."""
_MACOS = struct.Struct("=II")
"""The beginning of `struct xucred`: its version (0), uid."""
_MACOS_LEVEL, _MACOS_OPTION = 0, 1
"""SOL_LOCAL and LOCAL_PEERCRED, which not every Python names."""
_MACOS_BYTES = 128
"""More than `struct xucred`, which ends with sixteen groups."""
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
