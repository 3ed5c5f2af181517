"""`/diff`: the changes in a work folder since the last commit as one diff, untracked files included.

Blocking, and read-only: nothing is added to the index, no object is written. Only the folder
itself is compared, also where it is part of a larger repository. No program that the repository
or the user has configured is run: files that go through a filter (such as those of Git LFS) are listed
and not compared, because their bytes differ from what is stored whether they changed or not.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from laneway.base.counting import counted
from laneway.base.plain import plain
from laneway.commands.git_problems import first_line, problem_text
from laneway.wire.git import GitRun
from laneway.wire.git_view import GitView, git_view

MAX_DIFF_BYTES = 256 * 1024
"""Of one answer. An editor renders it as one message; a longer one is slow to show."""
MAX_UNTRACKED = 1000
"""New files that are read: an answer has no space for more."""

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
        return _changes(view) if isinstance(view, GitView) else RepoDiff(problem=problem_text(folder, view))


def _changes(view: GitView) -> RepoDiff:
    try:
        notes = [*_exclude_filtered(view), *_add_new_files(view)]
        arguments = ("diff", _base(view), *_PLAIN, "--relative", "--", ".")
        text = _output(view.git(*arguments, max_bytes=MAX_DIFF_BYTES + 1), is_whole=False)
    except _GitFailed as failure:
        return RepoDiff(problem=f"Git could not tell what has changed: {failure}.")
    if len(text) > MAX_DIFF_BYTES:
        text = text[:MAX_DIFF_BYTES]
        text = text[: text.rfind(b"\n") + 1]
        notes.append(f"Only the first {MAX_DIFF_BYTES // 1024} KiB are shown. See the rest with `git diff`.")
    return RepoDiff(text.decode("utf-8", "replace"), tuple(notes))


class _GitFailed(Exception):
    """Git gave no usable answer; the message is the reason."""


def _output(run: GitRun, *, is_whole: bool = True) -> bytes:
    """Git's output. One that is cut raises, unless the caller shows that it is cut."""
    if run.is_cut and is_whole:
        raise _GitFailed("too many files have changed")
    if run.exit_code != 0 and not run.is_cut:
        raise _GitFailed(first_line(run.error))
    return run.stdout


def _base(view: GitView) -> str:
    """The last commit; before the first one, the empty tree."""
    return view.head or _output(view.git("hash-object", "-t", "tree", "--stdin")).decode().strip()


def _exclude_filtered(view: GitView) -> list[str]:
    """Make git treat files that go through a filter as unchanged; returns a note on those that may not be."""
    if not view.filters:
        return []
    arguments = ("diff-files", "--name-only", "--diff-filter=M", "-z", "--relative", "--", ".")
    edited = _output(view.git(*arguments))
    attributes = _output(view.git("check-attr", "--stdin", "-z", "filter", stdin=edited)).split(b"\0")
    drivers = zip(attributes[::3], attributes[2::3], strict=False)
    names = [name for name, driver in drivers if os.fsdecode(driver) in view.filters]
    if not names:
        return []
    # This changes the index of the view, which is a copy.
    listed = b"".join(name + b"\0" for name in names)
    _output(view.git("update-index", "--assume-unchanged", "-z", "--stdin", stdin=listed))
    return [_filtered_note(names)]


def _filtered_note(names: list[bytes]) -> str:
    listed = [plain(os.fsdecode(name)) for name in names[:MAX_NAMED]]
    more = [f"and {len(names) - MAX_NAMED} more"] if len(names) > MAX_NAMED else []
    subject = counted(len(names), "file that may have changed goes", "files that may have changed go")
    return (
        f"{subject} through a filter, which Laneway does not run: {', '.join([*listed, *more])}. "
        f"See {'it' if len(names) == 1 else 'them'} with `git diff`."
    )


def _add_new_files(view: GitView) -> list[str]:
    """Add them to the index of the view, so that one diff shows all; returns a note on what is left out."""
    listed = view.git("ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", ".")
    if listed.exit_code != 0 or listed.is_cut:
        reason = "there are too many" if listed.is_cut else first_line(listed.error)
        return [f"New files are not shown, because git could not list them: {reason}."]
    names = [name for name in listed.stdout.split(b"\0") if name]
    empty_blob = _output(view.git("hash-object", "--stdin")).strip()
    entries = [
        b"%s %s\t%s\0" % (mode, empty_blob, name)
        for name in names[:MAX_UNTRACKED]
        if (mode := _mode(view.top / os.fsdecode(name))) is not None
    ]
    _output(view.git("update-index", "-z", "--index-info", stdin=b"".join(entries)))
    left_out = len(names) - len(entries)
    subject = counted(left_out, "new file or folder is", "new files or folders are")
    return [f"{subject} too large or too many to show. See `git status`."] if left_out else []


def _mode(path: Path) -> bytes | None:
    """Git's mode of a file or a link; none for all else, and for what is too large to be shown."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return b"120000"
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_DIFF_BYTES:
        return None
    return b"100755" if status.st_mode & stat.S_IXUSR else b"100644"
