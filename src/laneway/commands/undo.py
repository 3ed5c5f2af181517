"""Taking back the last turn: out of the conversation, and its edits out of the files.

The conversation is Codex's to change. The files are put back by `git apply -R` with the diff
that Codex told of the turn: all of them, or none where one has changed since. Only files inside
the work folder, never through a symlink. What shell commands changed is not covered, and said so.

`plan` is pure; `check` and `put_back` block.
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
    """What the edits come to, as Codex told it last; none if it told nothing."""
    is_settled: bool = False
    """Taken back, or never to be: it only marks where older turns begin, and Codex has to name those."""


class Section(msgspec.Struct, frozen=True):
    """One file of a diff. A new file has no `old`, a deleted one no `new`, a moved one both."""

    old: str | None
    new: str | None


class UndoPlan(msgspec.Struct, frozen=True):
    base: Path
    """Where the paths of the diff begin."""
    diff: str
    sections: tuple[Section, ...]

    @property
    def names(self) -> tuple[str, ...]:
        named = (name for section in self.sections for name in (section.old, section.new))
        return tuple(dict.fromkeys(name for name in named if name is not None))


class Left(msgspec.Struct, frozen=True):
    """The files stay as they are. `why` is a sentence."""

    why: str


Outcome: TypeAlias = UndoPlan | Left


# ── what to do: pure ───────────────────────────────────────────────────────


def plan(diff: str, cwd: Path, base: Path) -> Outcome:
    """Whether a diff may be taken back; both folders are free of symlinks."""
    sections = read(diff)
    if sections is None:
        return Left("the diff of the turn cannot be read")
    wanted = UndoPlan(base, diff, sections)
    for name in wanted.names:
        if not _is_within(name, cwd, base):
            return Left(f"{code_label(name)} is not in {code_label(str(cwd))}")
    return wanted


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
    """Where the section that begins here ends: at the next one, which no line of a hunk can be."""
    if not lines[at].startswith("diff --git "):
        return None
    at += 1
    has_hunks = False
    while at < len(lines) and not lines[at].startswith("diff --git "):
        found = _HUNK.match(lines[at])
        has_hunks = has_hunks or found is not None
        if found is not None:
            end = _end_of_hunk(lines, at + 1, *(int(count or 1) for count in found.groups()))
            if end is None:
                return None
            at = end
        elif has_hunks:
            return None
        else:
            at += 1
    return at


def _end_of_hunk(lines: list[str], at: int, old: int, new: int) -> int | None:
    """Its lines are counted, not looked at: they may look like anything."""
    while old > 0 or new > 0:
        kind = lines[at][:1] if at < len(lines) else ""
        if kind not in ("-", "+", " ", "\\"):
            return None
        old -= kind in "- "
        new -= kind in "+ "
        at += 1
    if old or new:
        return None
    return at + 1 if at < len(lines) and lines[at].startswith("\\") else at  # no line end at the end


def _section(lines: list[str]) -> Section | None:
    """Who is meant, by the lines above the first hunk."""
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
        # An empty file has no hunks, so its name stands only here, twice.
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


# ── doing it: blocking ─────────────────────────────────────────────────────


def check(diff: str, cwd: Path) -> Outcome:
    """What `put_back` will do, if nothing changes in between."""
    real = Path(os.path.realpath(cwd))
    repo = find_repo(real)  # Codex names files from the top of the repository, else from the folder
    wanted = plan(diff, real, repo.root if repo is not None else real)
    if isinstance(wanted, Left):
        return wanted
    for name in wanted.names:
        if not _is_plain(real, wanted.base / name):
            return Left(f"{code_label(name)} is a symlink, lies behind one, or is no ordinary file")
    told = _apply(wanted, "--numstat", "-z")
    if not set(_numstat_names(told)) <= set(wanted.names):
        return Left("git reads the diff of the turn differently")
    tried = _apply(wanted, "--check")
    return wanted if tried.code == 0 else Left(_why(tried))


def put_back(wanted: UndoPlan, cwd: Path) -> str:
    """Reverse the edits; returns why not, or nothing."""
    try:
        # git takes folders along that are empty then, and would not stop at the one we work in.
        with tempfile.NamedTemporaryFile(dir=cwd, prefix=".laneway-"):
            done = _apply(wanted)
    except OSError as problem:
        return f"{cwd} cannot be written ({problem.strerror})"
    if done.code != 0:
        return _why(done)
    _make_executable(wanted)
    return ""


def _apply(wanted: UndoPlan, *words: str) -> GitRun:
    # The bytes are Codex's: apart from any repository git knows no filter and turns no line ends.
    words = ("apply", "-R", "--whitespace=nowarn", *words, "-")
    return git_apart(wanted.base, *words, given=wanted.diff.encode("utf-8", "surrogateescape"))


def _is_plain(top: Path, path: Path) -> bool:
    """An ordinary file or none, reached through ordinary folders."""
    folder = path.parent
    while folder != top:
        if os.path.lexists(folder) and not stat.S_ISDIR(os.lstat(folder).st_mode):
            return False
        folder = folder.parent
    return not os.path.lexists(path) or stat.S_ISREG(os.lstat(path).st_mode)


def _numstat_names(told: GitRun) -> list[str]:
    return [
        os.fsdecode(entry.split(b"\t", 2)[2]) for entry in told.out.split(b"\0") if entry.count(b"\t") >= 2
    ]


def _why(ran: GitRun) -> str:
    if ran.code == NEVER_RAN:
        return ran.complaint[:1].lower() + ran.complaint[1:].removesuffix(".")
    names = [code_label(name) for name in dict.fromkeys(_CONFLICT.findall(ran.complaint))]
    return f"{', '.join(names)} changed after the turn" if names else "the diff of the turn does not apply"


def _make_executable(wanted: UndoPlan) -> None:
    """Codex's diff does not know that a file it deleted was a program; the repository may."""
    deleted = [section.old for section in wanted.sections if section.new is None and section.old]
    if not deleted:
        return
    with git_view(wanted.base) as view:
        words = ("--literal-pathspecs", "ls-files", "--stage", "-z", "--", *deleted)
        listed = view.git(*words).out if isinstance(view, GitView) else b""
    for entry in listed.split(b"\0"):
        about, _, name = entry.partition(b"\t")
        if about.startswith(b"100755"):
            os.chmod(wanted.base / os.fsdecode(name), 0o755)
