"""Whether Claude Code may read the settings of a repository: only if it is trusted, as it was then.

Trusted by `laneway config trust`, or in Claude Code itself. Of the latter it is not known what the user
saw, so the content of the first look counts, which is kept beside our own trust. Either holds only while
the content is unchanged; it is compared before every start and wake.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from laneway.base import trust
from laneway.base.errors import ContentUnreadable, StoreError
from laneway.base.foreign_files import read_regular
from laneway.base.kinds import to_text
from laneway.base.repo import find_repo
from laneway.base.trust import Fingerprint
from laneway.base.vetting import why_never
from laneway.claude.launching import ALL_SOURCES, USER_SOURCES
from laneway.claude.repo_content import FOLDER, RepoContent, read_content

STATE_FILE = ".claude.json"
MAX_STATE_BYTES = 64 * 1024 * 1024
"""Claude Code keeps much beside the trust in that file."""
FIRST_SEEN = "claude-trust.json"


class SettingSources(msgspec.Struct, frozen=True):
    sources: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """What is there, and not used."""
    why: str = ""

    @property
    def sentence(self) -> str:
        """What a person is told; empty if nothing is left out."""
        if not self.left_out:
            return ""
        names = ", ".join(self.left_out)
        return f"Claude does not use {names} of this folder: {self.why}."


class RepoTrust:
    """The trust in repositories, as of one Claude Code home."""

    def __init__(self, environment: Mapping[str, str], config_home: Path) -> None:
        self._home = Path(environment.get("HOME") or os.path.expanduser("~"))
        self._config_home = config_home
        self._is_moved = bool(environment.get("CLAUDE_CONFIG_DIR"))
        self._trust_file = trust.trust_file(environment, self._home)
        self._stops = (self._home, config_home.parent)

    def root_of(self, cwd: Path) -> Path:
        """What is trusted: the repository, or the folder where there is none."""
        repo = find_repo(Path(os.path.realpath(cwd)))
        return Path(os.path.realpath(repo.root if repo is not None else cwd))

    def content_of(self, cwd: Path, root: Path) -> RepoContent:
        """Raises `ContentUnreadable`."""
        return read_content(cwd, root, self._stops, root)

    def verdict(self, cwd: Path, folders: tuple[Path, ...] = ()) -> SettingSources:
        """Whose settings may be read in a folder, with further folders of the workspace. Blocks."""
        root = self.root_of(cwd)
        verdict = self._verdict(cwd, root)
        for folder in folders if verdict.sources == ALL_SOURCES else ():
            if not Path(os.path.realpath(folder)).is_relative_to(root):
                # Its skills and agents would be used under the same sources.
                further = self._verdict(folder, self.root_of(folder), is_further=True)
                if further.left_out:
                    return SettingSources(
                        USER_SOURCES,
                        read_content(cwd, root, self._stops).names,
                        f"a further folder, {to_text(folder)}, has {', '.join(further.left_out)}, and"
                        f" {further.why}",
                    )
        return verdict

    def _verdict(self, cwd: Path, root: Path, *, is_further: bool = False) -> SettingSources:
        try:
            is_possible = self._is_possible(cwd, root)
            below = root if is_possible else Path(os.path.realpath(cwd)) if is_further else None
            content = read_content(cwd, root, self._stops, below)
        except ContentUnreadable as problem:
            return SettingSources(USER_SOURCES, (f"{FOLDER}/",), f"{problem}")
        if is_possible and self._is_trusted(cwd, root, content):
            return SettingSources(ALL_SOURCES)
        if content.is_empty:
            return SettingSources(USER_SOURCES)
        return SettingSources(USER_SOURCES, content.names, self._why_not(root))

    def _is_possible(self, cwd: Path, root: Path) -> bool:
        """Whether it was ever trusted: only then all of it is looked through."""
        if why_never(root, self._trust_file) is not None:
            return False
        entry = trust.read(self._trust_file).entry(root, root / FOLDER)
        return entry is not None or self._is_trusted_in_claude(cwd, root)

    def _is_trusted(self, cwd: Path, root: Path, content: RepoContent) -> bool:
        entry = trust.read(self._trust_file).entry(root, root / FOLDER)
        if entry is not None and _digests(entry.settings) == _digests(content.fingerprints):
            return True
        return self._is_trusted_in_claude(cwd, root) and self._is_as_first_seen(root, content)

    def _why_not(self, root: Path) -> str:
        entry = trust.read(self._trust_file).entry(root, root / FOLDER)
        seen = trust.read(self._first_seen).entry(root, root / FOLDER)
        if entry is not None or seen is not None:
            return "it has changed since it was trusted; `laneway config trust` shows how"
        return "it is not trusted; `laneway config trust` allows it"

    @property
    def _first_seen(self) -> Path:
        return self._trust_file.with_name(FIRST_SEEN)

    def _is_as_first_seen(self, root: Path, content: RepoContent) -> bool:
        seen = trust.read(self._first_seen)
        if seen.problem is not None:
            return False
        entry = seen.entry(root, root / FOLDER)
        if entry is None:
            try:
                trust.give(self._first_seen, root, {root / FOLDER: content.fingerprints})
            except StoreError:
                return False  # it could not be compared the next time
            return True
        return _digests(entry.settings) == _digests(content.fingerprints)

    def _is_trusted_in_claude(self, cwd: Path, root: Path) -> bool:
        """Whether the user has accepted Claude Code's own question about this folder."""
        folder = self._config_home if self._is_moved else self._home
        try:
            state = msgspec.json.decode(read_regular(folder / STATE_FILE, MAX_STATE_BYTES))
        except (OSError, msgspec.DecodeError):
            return False
        projects = state.get("projects") if isinstance(state, dict) else None
        if not isinstance(projects, dict):
            return False
        return any(_is_accepted(projects.get(str(each))) for each in {os.path.realpath(cwd), str(root)})


def _is_accepted(project: Any) -> bool:
    return isinstance(project, dict) and project.get("hasTrustDialogAccepted") is True


def _digests(fingerprints: Mapping[str, Fingerprint]) -> dict[str, str]:
    return {name: fingerprint.digest for name, fingerprint in fingerprints.items()}
