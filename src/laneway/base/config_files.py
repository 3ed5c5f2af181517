"""The two files that ATM and we share: where they are, and what is in them.

Finds `.atm.toml` and the global `config.toml`, reads them with bounds, and words what is
wrong as `SettingError`. Does not know what any key means: that is `settings`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.base.errors import SettingError
from laneway.base.kinds import shown

if TYPE_CHECKING:
    from laneway.base.toml_lines import Lines

REPO_FILE = ".atm.toml"
MAX_FILE_BYTES = 256 * 1024
"""A hundred times what people write; a repository must not make us read without end."""


class ConfigFile(msgspec.Struct, frozen=True):
    path: Path
    data: dict[str, Any]
    lines: Lines


class RepoPlace(msgspec.Struct, frozen=True):
    """Where a folder's `.atm.toml` is, and the folder that trust in it is given to."""

    root: Path | None
    """The first folder upward with `.git`; without one the folder of the file; real, no links."""
    file: Path | None


def global_path(environment: Mapping[str, str], home: Path) -> Path:
    """`~/.config/atm/config.toml`, under ATM_HOME when that is set."""
    moved = environment.get("ATM_HOME", "").strip()
    return (Path(moved) if moved else home) / ".config" / "atm" / "config.toml"


def find_repo_file(folder: Path) -> RepoPlace:
    """Search from a folder upward to the first that has `.git`.

    Links are resolved first. A link inside a trusted repository that leads to a folder
    elsewhere would otherwise lend that folder the repository's trust.
    """
    real = Path(os.path.realpath(folder))
    file: Path | None = None
    for candidate in (real, *real.parents):
        if file is None and os.path.lexists(candidate / REPO_FILE):
            file = candidate / REPO_FILE
        if _has_git(candidate):
            return RepoPlace(candidate, file)
    return RepoPlace(None if file is None else file.parent, file)


def _has_git(folder: Path) -> bool:
    """Whether there is a `.git` of any sort: in doubt the search ends here, and so does trust.

    Except for an empty folder of that name, which Codex's sandbox leaves behind and git ignores.
    """
    try:
        with os.scandir(folder / ".git") as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return os.path.islink(folder / ".git")
    except OSError:
        return True


def read(path: Path) -> ConfigFile | None:
    """What a file says, or none if it is not there."""
    try:
        raw = _bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise _wrong(
            path, f"this file cannot be read ({problem.strerror}): correct it or remove it."
        ) from problem
    import tomllib  # only now: most folders have no such file

    from laneway.base.toml_lines import MAX_KEY_PARTS, Lines, too_deep

    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise _wrong(path, "this is not UTF-8 text: save the file as UTF-8.", line) from problem
    deep = too_deep(text)
    if deep is not None:
        raise _wrong(path, f"a key here has more than {MAX_KEY_PARTS} parts: shorten it.", deep)
    try:
        data = tomllib.loads(text)
    except ValueError as problem:  # also for numbers with thousands of digits
        line_of_error = _line_of(problem, text)
        raise _wrong(
            path, "this is not valid TOML: correct it here or just above.", line_of_error
        ) from problem
    except RecursionError as problem:
        raise _wrong(path, "its values are nested too deep: flatten them.") from problem
    return ConfigFile(path, data, Lines(text))


def _bytes(path: Path) -> bytes:
    # Without O_NONBLOCK a named pipe in a repository would hang us for ever.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise _wrong(path, "this is no file: remove it.")
        with open(fd, "rb", closefd=False) as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    finally:
        os.close(fd)
    if len(raw) > MAX_FILE_BYTES:
        raise _wrong(path, f"this file is larger than {MAX_FILE_BYTES // 1024} KiB: shorten it.")
    return raw


def _line_of(problem: ValueError, text: str) -> int | None:
    """The line is told only in the words of `tomllib`'s error; a test holds them."""
    words = str(problem)
    found = re.search(r"\(at line (\d+), column \d+\)$", words)
    if found:
        return int(found[1])
    return text.count("\n") + 1 if words.endswith("(at end of document)") else None


def _wrong(path: Path, problem: str, line: int | None = None) -> SettingError:
    return SettingError(shown(path), problem, line=line, expected="valid TOML")
