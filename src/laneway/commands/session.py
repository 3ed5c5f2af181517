"""The port that slash commands need of a session (`CommandSession`), and a parsed command line."""

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
    """A session of any front end, as its slash commands see it."""

    is_planning: bool

    @property
    def session_id(self) -> str: ...
    @property
    def thread_id(self) -> str: ...
    @property
    def cwd(self) -> Path: ...
    @property
    def offers(self) -> Offers:
        """What the engine can do beyond threads and turns."""
        ...

    @property
    def choices(self) -> Choices: ...
    @property
    def facts(self) -> Facts: ...
    @property
    def usage(self) -> Usage | None: ...
    @property
    def engine_name(self) -> str: ...
    @property
    def engine_version(self) -> str: ...
    @property
    def last_turn(self) -> LastTurn | None:
        """The newest turn that ended in this process; where none is left, the one settled last."""
        ...

    async def say(self, text: str) -> None:
        """Show the user a message that is Laneway's, not the model's."""
        ...

    async def turn(self, parts: tuple[Part, ...], plan_mode: PlanMode | None = None) -> str:
        """Run a turn of the model; returns how it ended, in the terms of the session's front end."""
        ...

    async def special_turn(self, special_turn: SpecialTurn) -> str:
        """Run a turn that starts without a prompt, such as a review; returns the same."""
        ...

    async def call_engine(self, call: Callable[[], Awaitable[T]], *, may_repeat: bool = True) -> T:
        """Make a call about the session's thread that starts no turn, once the engine has loaded the thread.

        Made a second time where the engine turns out to have died, if it may be repeated.
        """
        ...

    async def choose(self, setting_id: str, value: Any) -> None: ...

    async def fork(self) -> str:
        """Returns the id of the new session."""
        ...

    async def login(self) -> None:
        """Shows the user all that is needed."""
        ...

    async def logout(self) -> None: ...

    def forget_turn(self, turn_id: str) -> None:
        """The turn was taken back, or cannot be: `last_turn` is now the one before it."""
        ...


class Invocation(msgspec.Struct, frozen=True):
    """A slash command as the user typed it."""

    name: str
    arguments: str = ""
    """The text after the name in the same block."""
    other_parts: tuple[Part, ...] = ()
    """The other blocks of the prompt: more text, links, images, embedded files."""

    @property
    def text(self) -> str:
        """All text after the name: an editor may send one line in several blocks."""
        blocks = [part.text for part in self.other_parts if isinstance(part, TextPart) and not _is_file(part)]
        return "\n".join(text for text in (self.arguments, *map(str.strip, blocks)) if text)

    @property
    def has_files(self) -> bool:
        """Editors attach the open file on their own, so the user may not have meant it."""
        return any(map(_is_file, self.other_parts))

    @property
    def has_images(self) -> bool:
        return any(not isinstance(part, TextPart) for part in self.other_parts)


def _is_file(part: Part) -> bool:
    return isinstance(part, TextPart) and part.text.startswith(FILE_MARK)
