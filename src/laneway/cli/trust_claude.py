"""What `laneway config trust` asks for in the name of Claude Code: `.claude/` and `.mcp.json`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from laneway.base import trust
from laneway.base.foreign_files import read_regular
from laneway.base.layers import RepoFile, TrustState
from laneway.base.vetting import MAX_CONTENT_BYTES, TrustRequest, why_never
from laneway.claude.locate import config_home
from laneway.claude.repo_content import FOLDER, RepoContent
from laneway.claude.repo_trust import RepoTrust


class ClaudeRequest(msgspec.Struct, frozen=True):
    """The content as one file of settings: each file in it is a setting, by its path."""

    file: RepoFile
    request: TrustRequest
    paths: dict[str, Path]
    """By the name of the setting."""
    has_instructions: bool


def claude_request(folder: Path, environment: Mapping[str, str], trust_file: Path) -> ClaudeRequest | None:
    """None if the folder brings nothing for Claude Code, or can never be trusted. Raises `ContentUnreadable`."""
    here = RepoTrust(environment, Path(config_home(environment)))
    root = here.root_of(folder)
    if why_never(root, trust_file) is not None:
        return None  # a home, or the whole file system, which is not looked through for nothing
    content = here.content_of(Path(os.path.realpath(folder)), root)
    entry = trust.read(trust_file).entry(root, root / FOLDER)
    if content.is_empty and entry is None:
        return None
    state: TrustState = "not trusted"
    if entry is not None:
        state = "trusted" if entry.settings == content.fingerprints else "changed"
    file = RepoFile(root / FOLDER, root, (), state, {} if entry is None else entry.settings)
    request = TrustRequest(content.fingerprints, _contents(content))
    return ClaudeRequest(file, request, content.files, content.has_instructions)


def _contents(content: RepoContent) -> dict[Path, bytes]:
    """What is shown of the files; a large one is named only."""
    shown: dict[Path, bytes] = {}
    for path in content.files.values():
        try:
            shown[path] = read_regular(path, MAX_CONTENT_BYTES)
        except OSError:
            continue  # a link to a folder, or too large
    return shown
