"""What a repository brings for Claude Code that can start programs or loosen approvals, with its digests.

That is `.claude/` (settings, hooks, skills, agents) and `.mcp.json`, in every folder of the repository and
above it up to the user's home: Claude Code reads those above at its start, and skills of a folder below
when it touches that. Each file is one setting in the sense of `laneway.base.trust`. CLAUDE.md is read along
with them, but is only a text.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from laneway.base.errors import ContentUnreadable
from laneway.base.foreign_files import read_regular
from laneway.base.kinds import to_text
from laneway.base.trust import Fingerprint

FOLDER, SERVERS = ".claude", ".mcp.json"
CLAUDE_MD = "CLAUDE.md"
INSTRUCTIONS = (CLAUDE_MD, "CLAUDE.local.md")
MAX_FILES = 2000
"""Of one repository; with more nothing is trusted."""
MAX_FOLDERS = 500_000
"""Looked through in one repository, which takes some seconds; with more nothing is trusted."""
MAX_FILE_BYTES = 16 * 1024 * 1024


class RepoContent(msgspec.Struct, frozen=True):
    """The content that trust is given to, as it is now."""

    fingerprints: dict[str, Fingerprint]
    """By path: relative to the repository, or absolute for what is above it."""
    files: dict[str, Path]
    """The same paths."""
    has_instructions: bool = False
    """Whether there is a CLAUDE.md, too."""

    @property
    def is_empty(self) -> bool:
        return not self.fingerprints and not self.has_instructions

    @property
    def names(self) -> tuple[str, ...]:
        """The names of what there is, for people: folders as one."""
        top = dict.fromkeys(
            f"{name.partition(FOLDER)[0]}{FOLDER}/" if FOLDER + os.sep in name else name
            for name in self.fingerprints
        )
        return (*top, *((INSTRUCTIONS[0],) if self.has_instructions else ()))


def read_content(cwd: Path, root: Path, stops: tuple[Path, ...], below: Path | None = None) -> RepoContent:
    """The content for a folder of a repository. Raises `ContentUnreadable`.

    `stops` are folders whose own content is the user's: their home. `below`: all of this folder is looked
    through; without it only what is found at a start.
    """
    fingerprints: dict[str, Fingerprint] = {}
    files: dict[str, Path] = {}
    has_instructions = False
    for folder in _folders(cwd, {os.path.realpath(each) for each in stops}, below):
        has_instructions = has_instructions or any((folder / name).is_file() for name in INSTRUCTIONS)
        for path in _content_of(folder):
            name = _name(path, root)
            if len(files) == MAX_FILES:
                raise ContentUnreadable(f"{to_text(folder / FOLDER)} has more than {MAX_FILES} files")
            fingerprints[name], files[name] = _fingerprint(path), path
    return RepoContent(fingerprints, files, has_instructions)


def _folders(cwd: Path, stops: set[str], below: Path | None) -> Iterator[Path]:
    """The folder and those above it, up to a stop or the file system's root; and all below another."""
    folder = Path(os.path.realpath(cwd))
    seen: set[Path] = set()
    while str(folder) not in stops:
        seen.add(folder)
        yield folder
        if folder.parent == folder:
            break
        folder = folder.parent
    if below is not None and str(below) not in stops:
        yield from (each for each in _below(below) if each not in seen)


def _below(root: Path) -> Iterator[Path]:
    """The folders of a repository that have content, `root` among them. What we may not read, nobody may."""
    for number, (where, folders, names) in enumerate(os.walk(root)):
        if number == MAX_FOLDERS:
            raise ContentUnreadable(f"{to_text(root)} has more than {MAX_FOLDERS} folders")
        # Where file systems ignore the case of names, any spelling is found.
        if any(name.lower() in (FOLDER, SERVERS) for name in (*folders, *names)) or CLAUDE_MD in names:
            yield Path(where)
        folders[:] = [name for name in folders if name.lower() not in (FOLDER, ".git")]


def _content_of(folder: Path) -> Iterator[Path]:
    if os.path.lexists(folder / SERVERS):
        yield folder / SERVERS
    base = folder / FOLDER
    if os.path.islink(base) or (os.path.lexists(base) and not base.is_dir()):
        yield base
    yield from _files_of(base, set())


def _files_of(base: Path, seen: set[str]) -> Iterator[Path]:
    """All files, with what links to folders lead to: Claude Code follows them."""
    real = os.path.realpath(base)
    if real in seen:
        return
    seen.add(real)
    for where, folders, names in os.walk(base, onerror=_refuse):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(where, name))]
        yield from (Path(where, name) for name in sorted((*names, *links)))
        for name in links:
            yield from _files_of(Path(where, name), seen)


def _refuse(problem: OSError) -> None:
    if not isinstance(problem, FileNotFoundError):
        raise ContentUnreadable(f"{to_text(problem.filename)} cannot be read ({problem.strerror})")


def _name(path: Path, root: Path) -> str:
    relative = os.path.relpath(path, root)
    return to_text(path) if relative.startswith(os.pardir + os.sep) else to_text(relative)


def _fingerprint(path: Path) -> Fingerprint:
    """Of a file's content; of a link also where it leads. What is in a folder counts by itself."""
    target = os.readlink(path) if path.is_symlink() else ""
    if target and path.is_dir():
        digest = hashlib.sha256(os.fsencode(target)).hexdigest()
        return Fingerprint(digest, f"a link to {to_text(target)}")
    try:
        data = read_regular(path, MAX_FILE_BYTES)
    except OSError as problem:
        raise ContentUnreadable(f"{to_text(path)} cannot be read ({problem.strerror})") from problem
    digest = hashlib.sha256(os.fsencode(target) + b"\0" + data).hexdigest()
    return Fingerprint(digest, f"{len(data)} bytes, sha256 {digest[:16]}")
