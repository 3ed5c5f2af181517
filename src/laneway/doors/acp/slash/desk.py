"""What a session offers to its commands. The room is one; tests have another."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import msgspec

from laneway.core.model import Usage
from laneway.core.ports import Part, TextPart
from laneway.doors.acp.client import Client
from laneway.doors.acp.sessions.options import Choices, Facts
from laneway.doors.acp.slash.undo import LastTurn

_WRAPPED = "[ACP_RESOURCE"
"""How a link or an embedded file begins, as `laneway.doors.acp.sessions.prompts` makes a text of it."""


class Desk(Protocol):
    is_planning: bool

    @property
    def session_id(self) -> str: ...
    @property
    def thread_id(self) -> str: ...
    @property
    def cwd(self) -> Path: ...
    @property
    def client(self) -> Client: ...
    @property
    def choices(self) -> Choices: ...
    @property
    def facts(self) -> Facts: ...
    @property
    def usage(self) -> Usage | None: ...
    @property
    def codex_version(self) -> str: ...
    @property
    def last_turn(self) -> LastTurn | None:
        """The newest turn that ended while we looked on; where none is left, the one settled last."""
        ...

    async def say(self, text: str) -> None:
        """A message of ours, not of the model's."""
        ...

    async def turn(self, parts: tuple[Part, ...], native: dict[str, Any] | None = None) -> str:
        """A turn of the model, with further parameters; returns its stop reason."""
        ...

    async def errand(self, method: str, params: dict[str, Any]) -> str:
        """A turn that another call begins; the thread is named by the desk."""
        ...

    async def codex(self, method: str, params: dict[str, Any]) -> Any:
        """A call that starts no turn."""
        ...

    async def choose(self, config_id: str, value: Any) -> None: ...

    async def fork(self) -> str:
        """The id of the new session."""
        ...

    async def login(self) -> None:
        """Tells the person all that is needed."""
        ...

    async def logout(self) -> None: ...

    def forget_turn(self, turn_id: str) -> None:
        """It was taken back, or cannot be: `last_turn` is the one before it."""
        ...


class Invocation(msgspec.Struct, frozen=True):
    name: str
    arguments: str = ""
    """What follows the name in its own block of text."""
    rest: tuple[Part, ...] = ()
    """What came behind that: more text, links, images, embedded files."""

    @property
    def words(self) -> str:
        """All that was said behind the name: an editor may send a line in several blocks."""
        texts = (part.text.strip() for part in self.rest if isinstance(part, TextPart) and not _is_file(part))
        return "\n".join(text for text in (self.arguments, *texts) if text)

    @property
    def has_files(self) -> bool:
        """Editors attach the open file by themselves: it need not be meant."""
        return any(map(_is_file, self.rest))

    @property
    def has_images(self) -> bool:
        return any(not isinstance(part, TextPart) for part in self.rest)


def _is_file(part: Part) -> bool:
    return isinstance(part, TextPart) and part.text.startswith(_WRAPPED)
