"""Files that lanes send to people: which ones are sent at once, and which only after an approval.

At once: a regular file below the conversation's folder, links resolved, that git does not ignore. Blocking.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from laneway.base.plain import quoted
from laneway.base.repo import find_repo
from laneway.wire.git import GitRun
from laneway.wire.git_view import git_view

MAX_FILE_BYTES = 20 * 1024 * 1024


class FileOut(msgspec.Struct, frozen=True, kw_only=True):
    content: bytes = b""
    problem: str = ""
    """Why it is not sent, as a sentence."""
    status: int = 200
    needs_approval: bool = False


def read_file_out(named: str, folder: Path, *, is_approved: bool = False) -> FileOut:
    """The file that a path names, relative to the folder or absolute."""
    try:
        path = (folder / named).resolve(strict=True)
        root = folder.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        return FileOut(problem=f"{quoted(named)} is not there any more.", status=404)
    if not is_approved:
        why = _why_ask(path, root)
        if why:
            return FileOut(problem=f"{quoted(str(path))} {why}.", status=403, needs_approval=True)
    return _read(path)


def _why_ask(path: Path, root: Path) -> str:
    if not path.is_relative_to(root):
        return "is outside of the conversation's folder"
    if ".git" in path.relative_to(root).parts:
        return "belongs to git itself"
    return _why_ignored(path)


def _why_ignored(path: Path) -> str:
    if find_repo(path.parent) is None:
        return ""
    with git_view(path.parent) as view:
        if isinstance(view, GitRun):
            return "may be ignored by git, which could not be asked"
        ran = view.git("check-ignore", "-q", "--", path.name)
    if ran.exit_code == 0:
        return "is ignored by git"
    return "" if ran.exit_code == 1 else "may be ignored by git, which could not be asked"


def _read(path: Path) -> FileOut:
    try:
        # Not through a link that was put there meanwhile, and not waiting for a pipe.
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        return FileOut(problem=f"{quoted(str(path))} cannot be read ({problem.strerror}).", status=404)
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode):
        os.close(opened)
        return FileOut(problem=f"{quoted(str(path))} is no regular file.", status=404)
    with os.fdopen(opened, "rb") as file:
        content = b"" if found.st_size > MAX_FILE_BYTES else file.read(MAX_FILE_BYTES + 1)
    if found.st_size > MAX_FILE_BYTES or len(content) > MAX_FILE_BYTES:
        return FileOut(problem=f"{quoted(str(path))} is larger than 20 MB.", status=413)
    return FileOut(content=content)
