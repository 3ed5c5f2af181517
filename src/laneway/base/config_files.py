"""Finds and reads the settings files (TOML) of a repository and of the user.

Two are ours, `.laneway.toml` in a repository and `laneway/config.toml` in the user's config folder; two
are shared with ATM, `.atm.toml` and `atm/config.toml`. Reads are bounded, and problems are
`SettingError`s. Does not know what any key means: that is `settings`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.base.errors import SettingError
from laneway.base.foreign_files import NotRegular, TooLarge, read_regular
from laneway.base.kinds import to_text
from laneway.base.paths import config_home

if TYPE_CHECKING:
    from laneway.base.toml_lines import TomlLines

OWN_REPO_FILE = ".laneway.toml"
REPO_FILES = (".atm.toml", OWN_REPO_FILE)
"""The later one wins."""
MAX_FILE_BYTES = 256 * 1024
"""A hundred times what people write; a repository must not make us read without end."""


class ConfigFile(msgspec.Struct, frozen=True):
    path: Path
    data: dict[str, Any]
    lines: TomlLines


class RepoPlace(msgspec.Struct, frozen=True):
    """A folder's repository and its settings files; real paths, no links."""

    root: Path | None
    """The nearest folder upward with `.git`; without one the folder of the nearest settings file."""
    files: tuple[Path, ...] = ()
    """The nearest file of each name; the later one wins."""
    has_git: bool = False

    def root_of(self, file: Path) -> Path:
        """The folder that trust in a file is given to."""
        return self.root if self.root is not None and self.has_git else file.parent


def own_path(environment: Mapping[str, str], home: Path) -> Path:
    """The user's own file: `$XDG_CONFIG_HOME/laneway/config.toml`."""
    return config_home(environment, home) / "config.toml"


def global_path(environment: Mapping[str, str], home: Path) -> Path:
    """ATM's: `~/.config/atm/config.toml`, under ATM_HOME when that is set."""
    moved = environment.get("ATM_HOME", "").strip()
    return (Path(moved) if moved else home) / ".config" / "atm" / "config.toml"


def find_repo_files(folder: Path) -> RepoPlace:
    """Search from a folder upward to the first that has `.git`.

    Links are resolved first. A link inside a trusted repository that leads to a folder
    elsewhere would otherwise lend that folder the repository's trust.
    """
    real = Path(os.path.realpath(folder))
    nearest: dict[str, Path] = {}
    for candidate in (real, *real.parents):
        for name in REPO_FILES:
            if name not in nearest and os.path.lexists(candidate / name):
                nearest[name] = candidate / name
        if _has_git(candidate):
            return RepoPlace(candidate, _in_order(nearest), has_git=True)
    files = _in_order(nearest)
    root = max((file.parent for file in files), key=lambda parent: len(parent.parts), default=None)
    return RepoPlace(root, files)


def _in_order(nearest: Mapping[str, Path]) -> tuple[Path, ...]:
    return tuple(nearest[name] for name in REPO_FILES if name in nearest)


def _has_git(folder: Path) -> bool:
    """Whether there is a `.git` of any kind: in doubt the search ends here, and so does trust.

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
    """The content of a settings file, or none if there is no file."""
    try:
        raw = read_regular(path, MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NotRegular as problem:
        raise _wrong(path, "this is not a file: remove it.") from problem
    except TooLarge as problem:
        size = f"{MAX_FILE_BYTES // 1024} KiB"
        raise _wrong(path, f"this file is larger than {size}: shorten it.") from problem
    except OSError as problem:
        raise _wrong(
            path, f"this file cannot be read ({problem.strerror}): correct it or remove it."
        ) from problem
    import tomllib  # only now: most folders have no such file

    from laneway.base.toml_lines import MAX_KEY_PARTS, TomlLines, too_deep

    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise _wrong(path, "this is not UTF-8 text: save the file as UTF-8.", line) from problem
    deep_line = too_deep(text)
    if deep_line is not None:
        raise _wrong(path, f"a key here has more than {MAX_KEY_PARTS} parts: shorten it.", deep_line)
    try:
        data = tomllib.loads(text)
    except ValueError as problem:  # also for numbers with thousands of digits
        line_of_error = _line_of(problem, text)
        raise _wrong(
            path, "this is not valid TOML: correct it here or just above.", line_of_error
        ) from problem
    except RecursionError as problem:
        raise _wrong(path, "its values are nested too deep: flatten them.") from problem
    return ConfigFile(path, data, TomlLines(text))


def _line_of(problem: ValueError, text: str) -> int | None:
    """The line of a `tomllib` error, which is only in its text; a test checks that wording."""
    message = str(problem)
    match = re.search(r"\(at line (\d+), column \d+\)$", message)
    if match:
        return int(match[1])
    return text.count("\n") + 1 if message.endswith("(at end of document)") else None


def _wrong(path: Path, problem: str, line: int | None = None) -> SettingError:
    return SettingError(to_text(path), problem, line=line, expected="valid TOML")
