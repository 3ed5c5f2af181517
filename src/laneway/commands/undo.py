"""Reverts the file edits of a turn for `/undo`, with the diff of the turn that Codex sent.

`git apply -R` reverts all of them, or none where one file has changed since. Only files inside the
work folder are written, and never through a symlink. Changes that shell commands made are not covered;
the user is told so. Codex itself takes the turn out of the conversation (`undo_command`).

`plan` is pure; `check` and `revert` block.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import msgspec

from laneway.base.plain import code_label
from laneway.base.repo import find_repo
from laneway.core.model import FileChange
from laneway.wire.git import NEVER_RAN, GitRun, git_apart
from laneway.wire.git_view import GitView, git_view

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_HEADERS = ("index ", "new file mode ", "deleted file mode ", "old mode ", "new mode ", "similarity index ")
_CONFLICT = re.compile(
    r"^error: (.+): (?:patch does not apply|No such file or directory|already exists in working directory)$",
    re.MULTILINE,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class LastTurn(msgspec.Struct, frozen=True):
    turn_id: str
    changes: tuple[FileChange, ...] = ()
    """Of all edits that were completed, in order."""
    diff: str | None = None
    """All its edits as one diff, as Codex last sent it; none if it sent none."""
    is_settled: bool = False
    """Already taken back, or impossible to: it only marks where the older turns in Codex's history begin."""


class Section(msgspec.Struct, frozen=True):
    """One file of a diff. A new file has no `old`, a deleted one no `new`, a moved one both."""

    old: str | None
    new: str | None


class UndoPlan(msgspec.Struct, frozen=True):
    """A diff that can be reverted."""

    base: Path
    """The folder that the paths of the diff are relative to."""
    diff: str
    sections: tuple[Section, ...]

    @property
    def names(self) -> tuple[str, ...]:
        names = (name for section in self.sections for name in (section.old, section.new))
        return tuple(dict.fromkeys(name for name in names if name is not None))


class CannotRevert(msgspec.Struct, frozen=True):
    """The files stay as they are. `reason` completes a sentence after "because"."""

    reason: str


UndoCheck: TypeAlias = UndoPlan | CannotRevert


# ── planning: pure ─────────────────────────────────────────────────────────


def plan(diff: str, cwd: Path, base: Path) -> UndoCheck:
    """Whether a diff may be reverted; both folders are given without symlinks."""
    sections = read(diff)
    if sections is None:
        return CannotRevert("the diff of the turn cannot be read")
    undo_plan = UndoPlan(base, diff, sections)
    for name in undo_plan.names:
        if not _is_within(name, cwd, base):
            return CannotRevert(f"{code_label(name)} is not in {code_label(str(cwd))}")
    return undo_plan


def _is_within(name: str, cwd: Path, base: Path) -> bool:
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts or _CONTROL.search(name):
        return False
    return (base / path).is_relative_to(cwd) and base / path != cwd


def read(diff: str) -> tuple[Section, ...] | None:
    """The files of a git diff; none if a single line of it is not understood."""
    sections: list[Section] = []
    lines = diff.removesuffix("\n").split("\n") if diff else []
    at = 0
    while at < len(lines):
        end = _end_of_section(lines, at)
        section = None if end is None else _section(lines[at:end])
        if end is None or section is None:
            return None
        sections.append(section)
        at = end
    return tuple(sections)


def _end_of_section(lines: list[str], at: int) -> int | None:
    """The index after this section: that of the next header, which no line of a hunk can be."""
    if not lines[at].startswith("diff --git "):
        return None
    at += 1
    has_hunks = False
    while at < len(lines) and not lines[at].startswith("diff --git "):
        header = _HUNK.match(lines[at])
        has_hunks = has_hunks or header is not None
        if header is not None:
            end = _end_of_hunk(lines, at + 1, *(int(count or 1) for count in header.groups()))
            if end is None:
                return None
            at = end
        elif has_hunks:
            return None
        else:
            at += 1
    return at


def _end_of_hunk(lines: list[str], at: int, old: int, new: int) -> int | None:
    """The index after this hunk. Its lines are counted, because a line of it may look like a header."""
    while old > 0 or new > 0:
        kind = lines[at][:1] if at < len(lines) else ""
        if kind not in ("-", "+", " ", "\\"):
            return None
        old -= kind in "- "
        new -= kind in "+ "
        at += 1
    if old or new:
        return None
    return at + 1 if at < len(lines) and lines[at].startswith("\\") else at  # `\ No newline at end of file`


def _section(lines: list[str]) -> Section | None:
    """The file of one section, read from the lines above the first hunk."""
    old = new = None
    has_names = is_new = is_deleted = False
    for line in lines[1:]:
        if line.startswith("@@ "):
            break
        if line.startswith("--- "):
            old, has_names = line[4:], True
        elif line.startswith("+++ "):
            new, has_names = line[4:], True
        elif not line.startswith(_HEADERS):
            return None  # a rename without hunks, a binary file, or something new
        is_new = is_new or line.startswith("new file mode ")
        is_deleted = is_deleted or line.startswith("deleted file mode ")
    if not has_names:
        # An empty file has no hunks: its name is only in this line, twice.
        both = lines[0].removeprefix("diff --git ")
        half = len(both) // 2
        old, new = both[:half], both[half + 1 :]
        if old[2:] != new[2:]:
            return None
    return _named("/dev/null" if is_new else old, "/dev/null" if is_deleted else new)


def _named(old: str | None, new: str | None) -> Section | None:
    names: list[str | None] = []
    for text, prefix in ((old, "a/"), (new, "b/")):
        if text is None or not (text == "/dev/null" or text.startswith(prefix)):
            return None
        names.append(None if text == "/dev/null" else text.removeprefix(prefix))
    return Section(*names) if any(name is not None for name in names) else None


# ── files: blocking ────────────────────────────────────────────────────────


def check(diff: str, cwd: Path) -> UndoCheck:
    """What `revert` will do, if no file changes in between."""
    real = Path(os.path.realpath(cwd))
    repo = find_repo(real)  # Codex names files from the top of the repository, else from the folder
    undo_plan = plan(diff, real, repo.root if repo is not None else real)
    if isinstance(undo_plan, CannotRevert):
        return undo_plan
    for name in undo_plan.names:
        if not _is_ordinary(real, undo_plan.base / name):
            return CannotRevert(f"{code_label(name)} is a symlink, lies behind one, or is no ordinary file")
    numstat = _apply(undo_plan, "--numstat", "-z")
    if not set(_numstat_names(numstat)) <= set(undo_plan.names):
        return CannotRevert("git reads the diff of the turn differently")
    dry_run = _apply(undo_plan, "--check")
    return undo_plan if dry_run.exit_code == 0 else CannotRevert(_failure_reason(dry_run))


def revert(undo_plan: UndoPlan, cwd: Path) -> str:
    """Revert the edits; returns the reason why they were not reverted, or an empty text."""
    try:
        # git also removes folders that this leaves empty: the file keeps it from removing our work folder.
        with tempfile.NamedTemporaryFile(dir=cwd, prefix=".laneway-"):
            run = _apply(undo_plan)
    except OSError as problem:
        return f"{cwd} cannot be written ({problem.strerror})"
    if run.exit_code != 0:
        return _failure_reason(run)
    _make_executable(undo_plan)
    return ""


def _apply(undo_plan: UndoPlan, *arguments: str) -> GitRun:
    # Outside of a repository git runs no filter and converts no line ends: the diff has the files' own bytes.
    command = ("apply", "-R", "--whitespace=nowarn", *arguments, "-")
    return git_apart(undo_plan.base, *command, stdin=undo_plan.diff.encode("utf-8", "surrogateescape"))


def _is_ordinary(top: Path, path: Path) -> bool:
    """Whether the path is an ordinary file, or none yet, and no folder on the way is a symlink."""
    folder = path.parent
    while folder != top:
        if os.path.lexists(folder) and not stat.S_ISDIR(os.lstat(folder).st_mode):
            return False
        folder = folder.parent
    return not os.path.lexists(path) or stat.S_ISREG(os.lstat(path).st_mode)


def _numstat_names(run: GitRun) -> list[str]:
    return [
        os.fsdecode(entry.split(b"\t", 2)[2]) for entry in run.stdout.split(b"\0") if entry.count(b"\t") >= 2
    ]


def _failure_reason(run: GitRun) -> str:
    if run.exit_code == NEVER_RAN:
        return run.error[:1].lower() + run.error[1:].removesuffix(".")
    names = [code_label(name) for name in dict.fromkeys(_CONFLICT.findall(run.error))]
    return f"{', '.join(names)} changed after the turn" if names else "the diff of the turn does not apply"


def _make_executable(undo_plan: UndoPlan) -> None:
    """Codex's diff does not say that a deleted file was executable; the repository may."""
    deleted = [section.old for section in undo_plan.sections if section.new is None and section.old]
    if not deleted:
        return
    with git_view(undo_plan.base) as view:
        command = ("--literal-pathspecs", "ls-files", "--stage", "-z", "--", *deleted)
        listed = view.git(*command).stdout if isinstance(view, GitView) else b""
    for entry in listed.split(b"\0"):
        details, _, name = entry.partition(b"\t")
        if details.startswith(b"100755"):
            os.chmod(undo_plan.base / os.fsdecode(name), 0o755)
