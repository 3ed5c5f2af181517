"""What has changed in a work folder since the last commit: one diff, untracked files included.

Blocking, and read-only: nothing is added to the index, no object is written. Only the folder
itself is looked at, also where it is a part of a larger repository.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from laneway.doors.acp.slash.git import first_line, git, why_not

MAX_DIFF_BYTES = 256 * 1024
"""Of one answer. An editor renders it as one message; more is slower to show than to look up."""
MAX_UNTRACKED = 200
"""Files that are diffed one by one, each by a process of some milliseconds."""

_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv")


class Found(msgspec.Struct, frozen=True):
    diff: str = ""
    notes: tuple[str, ...] = ()
    """Sentences about what the diff leaves out."""
    problem: str = ""
    """Why there is no diff at all."""


def changes(folder: Path) -> Found:
    if problem := why_not(folder):
        return Found(problem=problem)
    tracked = git(folder, "diff", _base(folder), *_PLAIN, "--relative", "--", ".", max_bytes=MAX_DIFF_BYTES)
    if tracked.code > 0 or (tracked.code < 0 and not tracked.is_cut):
        return Found(problem=f"Git could not tell what has changed: {first_line(tracked.complaint)}.")
    text = tracked.out
    notes: list[str] = []
    if not tracked.is_cut:
        new, notes = _untracked(folder, MAX_DIFF_BYTES - len(text))
        text += new
    if tracked.is_cut or len(text) > MAX_DIFF_BYTES:
        text = text[:MAX_DIFF_BYTES]
        text = text[: text.rfind(b"\n") + 1]
        notes.append(f"Only the first {MAX_DIFF_BYTES // 1024} KiB are shown. See the rest with `git diff`.")
    return Found(text.decode("utf-8", "replace"), tuple(notes))


def _base(folder: Path) -> str:
    """The last commit; before the first one, the empty tree."""
    if git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").code == 0:
        return "HEAD"
    return git(folder, "hash-object", "-t", "tree", "--stdin").out.decode().strip()


def _untracked(folder: Path, room: int) -> tuple[bytes, list[str]]:
    listed = git(folder, "ls-files", "--others", "--exclude-standard", "-z", "--", ".")
    names = [os.fsdecode(name) for name in listed.out.split(b"\0") if name]
    text, shown = b"", 0
    for name in names[:MAX_UNTRACKED]:
        if len(text) > room:
            break
        size = _size(folder / name)
        if size is not None and size <= MAX_DIFF_BYTES:
            words = ("diff", "--no-index", *_PLAIN, "--", os.devnull, name)
            text += git(folder, *words, max_bytes=2 * MAX_DIFF_BYTES).out
            shown += 1
    left = len(names) - shown
    one = "1 new file or folder is" if left == 1 else f"{left} new files or folders are"
    return text, [f"{one} too large or too many to show. See `git status`."] if left else []


def _size(path: Path) -> int | None:
    """Of a file or a symlink; none for all else, as a repository inside of this one."""
    try:
        told = os.lstat(path)
    except OSError:
        return None
    return told.st_size if stat.S_ISREG(told.st_mode) or stat.S_ISLNK(told.st_mode) else None
