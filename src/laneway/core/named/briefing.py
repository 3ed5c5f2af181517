"""The context that a named session gets with every turn: identity, team, repository, folder.

Read anew for each turn from git's files, without a process. Values are written as JSON strings
without invisible characters, because a folder may have any name: none can end its line or look like
another line.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from laneway.base.repo import detached_at, find_repo
from laneway.core.session import Compose, Session

MAX_VALUE_CHARS = 600
"""Of one value as written. Six long ones still fit into what Codex takes (3,900 characters)."""
_CUT = "…"
_PLAIN = re.compile(r"[\w /.,:@+-]*")
"""Characters that are written as they are."""
HEAD = "Your session, as of this turn. Laneway tells you this; it is not part of the request."


class WorkFolder(msgspec.Struct, frozen=True):
    """The folder of a session, and its repository. Outside of git only `cwd` is set."""

    cwd: str
    repo_root: str | None = None
    repo_name: str | None = None
    branch: str | None = None
    commit: str | None = None
    """Only of a detached HEAD, which has no branch."""


def work_folder_of(cwd: Path) -> WorkFolder:
    try:
        repo = find_repo(cwd)
    except (OSError, ValueError):  # a parent folder that we may not read; a name that no file can have
        repo = None
    if repo is None:
        return WorkFolder(str(cwd))
    commit = detached_at(repo.root) if repo.branch is None else None
    return WorkFolder(str(cwd), str(repo.root), repo.name, repo.branch, commit)


def working_folder(cwd: Path | None, process_cwd: Path) -> Path:
    """The folder of a new session: the requested one, else the root of our repository, else our own."""
    if cwd is not None:
        return process_cwd / cwd
    root = work_folder_of(process_cwd).repo_root
    return process_cwd if root is None else Path(root)


def briefing(identity: str | None, team: str, folder: WorkFolder) -> str:
    """The text for the model. Pure."""
    facts = {
        "identity": identity,
        "team": team,
        "repo_root": folder.repo_root,
        "repo_name": folder.repo_name,
        "branch": folder.branch,
        "cwd": folder.cwd,
    }
    if folder.commit is not None:
        facts["commit"] = folder.commit
    return "\n".join([HEAD, *(f"{name}: {_written(value)}" for name, value in facts.items())])


def briefer(team: str) -> Compose:
    """The Hub's `compose` for a team."""

    def compose(session: Session) -> str:
        return briefing(session.identity, team, work_folder_of(session.spec.cwd))

    return compose


def _written(value: str | None) -> str:
    if value is None:
        return "null"
    if len(value) < MAX_VALUE_CHARS and _PLAIN.fullmatch(value):
        return f'"{value}"'  # nearly all values: this runs every turn, and the loop below is slow
    written = '"'
    for letter in value:
        piece = _letter(letter)
        if len(written) + len(piece) > MAX_VALUE_CHARS:
            return written + _CUT + '"'
        written += piece
    return written + '"'


def _letter(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if letter.isprintable() and letter not in "<>":
        return letter
    # Line ends of all kinds, marks that change the direction of writing, bytes that are no text;
    # and angle brackets, because Codex puts the whole text between tags.
    hex_units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{hex_units[at : at + 4]}" for at in range(0, len(hex_units), 4))
