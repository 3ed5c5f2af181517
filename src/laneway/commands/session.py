"""What a session of any front end offers to its slash commands, and a command as it was typed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from laneway.commands.undo import LastTurn
from laneway.core.model import Usage
from laneway.core.offers import Offers, PlanMode, SpecialTurn
from laneway.core.ports import FILE_MARK, Part, TextPart
from laneway.core.session_settings import Choices, Facts

T = TypeVar("T")


class CommandSession(Protocol):
    is_planning: bool

    @property
    def session_id(self) -> str: ...
    @property
    def thread_id(self) -> str: ...
    @property
    def cwd(self) -> Path: ...
    @property
    def offers(self) -> Offers:
        """What its engine has beyond threads and turns."""
        ...

    @property
    def choices(self) -> Choices: ...
    @property
    def facts(self) -> Facts: ...
    @property
    def usage(self) -> Usage | None: ...
    @property
    def engine_version(self) -> str: ...
    @property
    def last_turn(self) -> LastTurn | None:
        """The newest turn that ended while we looked on; where none is left, the one settled last."""
        ...

    async def say(self, text: str) -> None:
        """A message of ours, not of the model's."""
        ...

    async def turn(self, parts: tuple[Part, ...], plan_mode: PlanMode | None = None) -> str:
        """A turn of the model; returns how it ended, in the words of the session's front end."""
        ...

    async def errand(self, errand: SpecialTurn) -> str:
        """A turn that begins otherwise; returns the same."""
        ...

    async def awake(self, call: Callable[[], Awaitable[T]], *, may_repeat: bool = True) -> T:
        """A call about the session's thread that starts no turn, to an engine that knows the thread.

        Made again, once, where the engine had died and nobody knew it, if it may be repeated.
        """
        ...

    async def choose(self, setting_id: str, value: Any) -> None: ...

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
    return isinstance(part, TextPart) and part.text.startswith(FILE_MARK)
