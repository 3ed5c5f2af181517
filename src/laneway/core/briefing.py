"""What a colleague is told about itself with every turn: who it is, in which team, where it works.

Read anew each time from the files of git, without a process. Values are written as JSON
strings without invisible characters: a folder may be called anything, and no name can end
its line or pose as another one.
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
"""Letters that are written as they are."""
HEAD = "Your session, as of this turn. Laneway tells you this; it is not part of the request."


class Place(msgspec.Struct, frozen=True):
    """Where a session works. All but `cwd` is none outside of git."""

    cwd: str
    repo_root: str | None = None
    repo_name: str | None = None
    branch: str | None = None
    commit: str | None = None
    """Only of a detached head, which has no branch."""


def place_of(cwd: Path) -> Place:
    try:
        repo = find_repo(cwd)
    except (OSError, ValueError):  # a folder above that we may not look into; a name that can be none
        repo = None
    if repo is None:
        return Place(str(cwd))
    commit = detached_at(repo.root) if repo.branch is None else None
    return Place(str(cwd), str(repo.root), repo.name, repo.branch, commit)


def working_folder(asked: Path | None, here: Path) -> Path:
    """Where a new session works: where it was asked to, else in the root of our repository, else here."""
    if asked is not None:
        return here / asked
    root = place_of(here).repo_root
    return here if root is None else Path(root)


def briefing(identity: str | None, team: str, place: Place) -> str:
    """The text for the model. Pure."""
    facts = {
        "identity": identity,
        "team": team,
        "repo_root": place.repo_root,
        "repo_name": place.repo_name,
        "branch": place.branch,
        "cwd": place.cwd,
    }
    if place.commit is not None:
        facts["commit"] = place.commit
    return "\n".join([HEAD, *(f"{name}: {_written(value)}" for name, value in facts.items())])


def briefer(team: str) -> Compose:
    """The Hub's `compose` for a team."""

    def compose(session: Session) -> str:
        return briefing(session.identity, team, place_of(session.spec.cwd))

    return compose


def _written(value: str | None) -> str:
    if value is None:
        return "null"
    if len(value) < MAX_VALUE_CHARS and _PLAIN.fullmatch(value):
        return f'"{value}"'  # as nearly all are: asked in every turn, and letter by letter takes long
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
    # Line ends of all kinds, marks that turn the direction of writing, bytes that are no text;
    # and the brackets, because Codex puts the whole between tags.
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
