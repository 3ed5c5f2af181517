"""What has changed in a work folder since the last commit: one diff, untracked files included.

Blocking, and read-only: nothing is added to the index, no object is written. Only the folder
itself is looked at, also where it is a part of a larger repository. No program that the repository
or the user has configured is run: files that go through a filter (as those of Git LFS) are named
and not compared, because their bytes differ from what is stored, changed or not.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from laneway.base.counting import counted
from laneway.base.plain import plain
from laneway.commands.git_words import first_line, told
from laneway.wire.git import GitRun
from laneway.wire.git_view import GitView, git_view

MAX_DIFF_BYTES = 256 * 1024
"""Of one answer. An editor renders it as one message; more is slower to show than to look up."""
MAX_UNTRACKED = 1000
"""New files that are looked at: of more only a part would fit into an answer."""

MAX_NAMED = 10
"""Files that a note lists by name."""

_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv")


class RepoDiff(msgspec.Struct, frozen=True):
    diff: str = ""
    notes: tuple[str, ...] = ()
    """Sentences about what the diff leaves out."""
    problem: str = ""
    """Why there is no diff at all."""


def changes(folder: Path) -> RepoDiff:
    with git_view(folder) as view:
        return _changes(view) if isinstance(view, GitView) else RepoDiff(problem=told(folder, view))


def _changes(view: GitView) -> RepoDiff:
    try:
        notes = [*_set_filtered_aside(view), *_take_in_new_files(view)]
        words = ("diff", _base(view), *_PLAIN, "--relative", "--", ".")
        text = _asked(view.git(*words, max_bytes=MAX_DIFF_BYTES + 1), is_whole=False)
    except _Unknown as why:
        return RepoDiff(problem=f"Git could not tell what has changed: {why}.")
    if len(text) > MAX_DIFF_BYTES:
        text = text[:MAX_DIFF_BYTES]
        text = text[: text.rfind(b"\n") + 1]
        notes.append(f"Only the first {MAX_DIFF_BYTES // 1024} KiB are shown. See the rest with `git diff`.")
    return RepoDiff(text.decode("utf-8", "replace"), tuple(notes))


class _Unknown(Exception):
    """Git did not answer, for this reason."""


def _asked(ran: GitRun, *, is_whole: bool = True) -> bytes:
    """What git answered. Half an answer is none, unless the caller shows that it is cut."""
    if ran.is_cut and is_whole:
        raise _Unknown("too many files have changed")
    if ran.code != 0 and not ran.is_cut:
        raise _Unknown(first_line(ran.complaint))
    return ran.out


def _base(view: GitView) -> str:
    """The last commit; before the first one, the empty tree."""
    return view.head or _asked(view.git("hash-object", "-t", "tree", "--stdin")).decode().strip()


def _set_filtered_aside(view: GitView) -> list[str]:
    """Have git take files that go through a filter for unchanged, and tell which may not be."""
    if not view.filters:
        return []
    words = ("diff-files", "--name-only", "--diff-filter=M", "-z", "--relative", "--", ".")
    edited = _asked(view.git(*words))
    about = _asked(view.git("check-attr", "--stdin", "-z", "filter", given=edited)).split(b"\0")
    of_names = zip(about[::3], about[2::3], strict=False)
    names = [name for name, driver in of_names if os.fsdecode(driver) in view.filters]
    if not names:
        return []
    # In the index of the view, which is a copy.
    listed = b"".join(name + b"\0" for name in names)
    _asked(view.git("update-index", "--assume-unchanged", "-z", "--stdin", given=listed))
    return [_filtered_note(names)]


def _filtered_note(names: list[bytes]) -> str:
    shown = [plain(os.fsdecode(name)) for name in names[:MAX_NAMED]]
    more = [f"and {len(names) - MAX_NAMED} more"] if len(names) > MAX_NAMED else []
    which = counted(len(names), "file that may have changed goes", "files that may have changed go")
    return (
        f"{which} through a filter, which Laneway does not run: {', '.join([*shown, *more])}. "
        f"See {'it' if len(names) == 1 else 'them'} with `git diff`."
    )


def _take_in_new_files(view: GitView) -> list[str]:
    """Put them into the index of the view: one diff shows them with the rest. Tells what is left out."""
    listed = view.git("ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", ".")
    if listed.code != 0 or listed.is_cut:
        why = "there are too many" if listed.is_cut else first_line(listed.complaint)
        return [f"New files are not shown, because git could not list them: {why}."]
    names = [name for name in listed.out.split(b"\0") if name]
    nothing = _asked(view.git("hash-object", "--stdin")).strip()
    entries = [
        b"%s %s\t%s\0" % (mode, nothing, name)
        for name in names[:MAX_UNTRACKED]
        if (mode := _mode(view.top / os.fsdecode(name))) is not None
    ]
    _asked(view.git("update-index", "-z", "--index-info", given=b"".join(entries)))
    left = len(names) - len(entries)
    which = counted(left, "new file or folder is", "new files or folders are")
    return [f"{which} too large or too many to show. See `git status`."] if left else []


def _mode(path: Path) -> bytes | None:
    """Of a file or a link, as git has it; none for all else, and for what is too large to be shown."""
    try:
        told = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISLNK(told.st_mode):
        return b"120000"
    if not stat.S_ISREG(told.st_mode) or told.st_size > MAX_DIFF_BYTES:
        return None
    return b"100755" if told.st_mode & stat.S_IXUSR else b"100644"
