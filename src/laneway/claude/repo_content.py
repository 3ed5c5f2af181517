"""What a repository brings for Claude Code that can start programs or loosen approvals, with its digests.

That is `.claude/` (settings, hooks, skills, agents) and `.mcp.json`, in the folder that is worked in and
in every folder above it up to the user's home: Claude Code looks there, too. Each file is one setting in
the sense of `laneway.base.trust`. CLAUDE.md is read along with them, but is only a text.
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
INSTRUCTIONS = ("CLAUDE.md", "CLAUDE.local.md")
MAX_FILES = 2000
"""Of one repository; with more nothing is trusted."""
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


def read_content(cwd: Path, root: Path, stops: tuple[Path, ...]) -> RepoContent:
    """The content for a folder of a repository. Raises `ContentUnreadable`.

    `stops` are folders whose own content is the user's: their home.
    """
    fingerprints: dict[str, Fingerprint] = {}
    files: dict[str, Path] = {}
    has_instructions = False
    for folder in _folders(Path(os.path.realpath(cwd)), {os.path.realpath(each) for each in stops}):
        has_instructions = has_instructions or any((folder / name).is_file() for name in INSTRUCTIONS)
        for path in _content_of(folder):
            name = _name(path, root)
            if len(files) == MAX_FILES:
                raise ContentUnreadable(f"{to_text(folder / FOLDER)} has more than {MAX_FILES} files")
            fingerprints[name], files[name] = _fingerprint(path), path
    return RepoContent(fingerprints, files, has_instructions)


def _folders(folder: Path, stops: set[str]) -> Iterator[Path]:
    """The folder and those above it, up to a stop or the file system's root."""
    while str(folder) not in stops:
        yield folder
        if folder.parent == folder:
            return
        folder = folder.parent


def _content_of(folder: Path) -> Iterator[Path]:
    if os.path.lexists(folder / SERVERS):
        yield folder / SERVERS
    base = folder / FOLDER
    if os.path.islink(base) or (os.path.lexists(base) and not base.is_dir()):
        yield base
        base = Path(os.path.realpath(base))
    for where, folders, names in os.walk(base, onerror=_refuse):
        folders.sort()
        for name in sorted(
            (*names, *(each for each in folders if os.path.islink(os.path.join(where, each))))
        ):
            yield Path(where, name)


def _refuse(problem: OSError) -> None:
    if not isinstance(problem, FileNotFoundError):
        raise ContentUnreadable(f"{to_text(problem.filename)} cannot be read ({problem.strerror})")


def _name(path: Path, root: Path) -> str:
    relative = os.path.relpath(path, root)
    return to_text(path) if relative.startswith(os.pardir + os.sep) else to_text(relative)


def _fingerprint(path: Path) -> Fingerprint:
    """Of a file's content; of a link also where it leads, and of a link to a folder only that."""
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
