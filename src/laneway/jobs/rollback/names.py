"""Renames that overwrite nothing: two names are exchanged, or a name is taken only if it is free.

So whoever writes a file at the same moment loses nothing: what was displaced is still there, and can be
looked at. Where the system or the file system cannot do that, the next best thing is done, with a
window of microseconds.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from functools import cache

_LINUX_FREE, _LINUX_EXCHANGE = 1, 2
_MAC_EXCHANGE, _MAC_FREE = 2, 4
_CANNOT = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}

Place = tuple[int, bytes]
"""An open folder, and a name in it."""
Rename = Callable[[Place, Place, int], int]
"""Returns an error number, or 0."""


def exchange(one: Place, other: Place) -> bool:
    """Exchange what lies at two names; false where that cannot be done in one step."""
    return _try(one, other, _LINUX_EXCHANGE if sys.platform == "linux" else _MAC_EXCHANGE)


def move(source: Place, target: Place) -> None:
    """Rename to a name that is free; `FileExistsError` if it is not."""
    if _try(source, target, _LINUX_FREE if sys.platform == "linux" else _MAC_FREE):
        return
    try:
        os.link(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0], follow_symlinks=False)
    except OSError as problem:
        if problem.errno == errno.EEXIST or problem.errno not in {*_CANNOT, errno.EMLINK}:
            raise
        if exists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fsdecode(target[1])) from None
        os.rename(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0])
    else:
        os.unlink(source[1], dir_fd=source[0])


def replace(source: Place, target: Place) -> None:
    """Rename over whatever lies there."""
    os.replace(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0])


def exists(place: Place) -> bool:
    try:
        os.stat(place[1], dir_fd=place[0], follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _try(one: Place, other: Place, flags: int) -> bool:
    call = _system_call()
    number = call(one, other, flags) if call is not None else errno.ENOSYS
    if number in _CANNOT:
        return False
    if number:
        raise OSError(number, os.strerror(number), os.fsdecode(other[1]))
    return True


@cache
def _system_call() -> Rename | None:
    import ctypes  # only a rollback needs it

    try:
        libc = ctypes.CDLL(None, use_errno=True)
        rename = libc.renameat2 if sys.platform == "linux" else libc.renameatx_np
    except (OSError, AttributeError):
        return None
    rename.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]

    def call(one: Place, other: Place, flags: int) -> int:
        return ctypes.get_errno() if rename(one[0], one[1], other[0], other[1], flags) else 0

    return call
