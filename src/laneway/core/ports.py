"""What the core asks of an engine, and what an engine may ask of the core.

Two small protocols for whoever adds an engine (`Engine`, `Thread`), one for whoever
owns a thread (`Host`), and the clock. Implemented by `laneway.codex` and, hand-driven,
by `laneway.testing`. What an engine may offer beyond them is in `laneway.core.offers`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

from laneway.core.model import Answer, Event
from laneway.core.tools import Tool, ToolResult

if TYPE_CHECKING:  # for annotations only: every program loads this module as it starts
    from laneway.core.access import Permit
    from laneway.core.models import Model
    from laneway.core.offers import Offers, PlanMode, SpecialTurn

FILE_MARK = "[ACP_RESOURCE"
"""How the text of a link or an embedded file begins, beside what a person wrote."""


class TextPart(msgspec.Struct, frozen=True):
    text: str


class ImagePart(msgspec.Struct, frozen=True):
    """An image by URL (`data:` included) or by local path."""

    url: str | None = None
    path: str | None = None


class NativePart(msgspec.Struct, frozen=True):
    """An input in the engine's own form, handed on as it is."""

    value: dict[str, Any]


Part: TypeAlias = TextPart | ImagePart | NativePart


class ThreadSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How a thread should be. Nothing set means nothing sent: the user's own config rules."""

    cwd: Path
    moves: bool = False
    """On a resume: work in `cwd` from now on. Else the thread stays where it was."""
    model: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    config: dict[str, Any] = {}
    tools: tuple[Tool, ...] = ()
    ephemeral: bool = False
    native: dict[str, Any] = {}
    """Further parameters in the engine's own form."""
    had_tools: tuple[str, ...] = ()
    """The names of the tools that the thread was started with: a resume cannot add any."""
    users_config: dict[str, Any] | None = None
    """Of the user's own configuration for this folder, what says how far a session may go and who has
    the model, where the caller has just read it: the engine need not."""
    writable_roots: tuple[str, ...] = ()
    """Folders to write to beside `cwd` and those of the user's configuration, where writing is allowed."""
    directories: tuple[str, ...] = ()
    """Further folders of the workspace beside `cwd`: written to only where `cwd` may be."""
    extras: dict[str, Any] = {}
    """Config of ours beside the caller's: sent at every start and resume, and kept nowhere."""
    tells_live_edits: bool = False
    """Whether edits are told while they are written, unless the user's configuration decides about that."""
    declines_escalations: bool = False
    """Whether questions for more access are declined at once, without asking anybody."""


class TurnSpec(msgspec.Struct, frozen=True, kw_only=True):
    parts: tuple[Part, ...]
    errand: SpecialTurn | None = None
    """In the place of the parts."""
    context: str = ""
    """What the model should know in this turn, composed anew for each."""
    model: str | None = None
    effort: str | None = None
    output_schema: Any = None
    personality: str | None = None
    reasoning_summary: str | None = None
    permit: Permit | None = None
    """How far the session may go from this turn on."""
    permit_if_cold: Permit | None = None
    """The same, for an engine that was started again and knows only what it wrote down."""
    plan_mode: PlanMode | None = None
    native: dict[str, Any] = {}
    """Further parameters in the engine's own form; they win."""


class Page(msgspec.Struct, frozen=True):
    """One page of history, oldest first within the page.

    `older` leads to the page before; where the oldest turns were asked for first, to the one behind.
    """

    events: tuple[Event, ...]
    older: str | None


class ThreadInfo(msgspec.Struct, frozen=True, kw_only=True):
    thread_id: str
    cwd: str = ""
    title: str = ""
    updated_at: int = 0
    native: dict[str, Any] = {}


class ThreadList(msgspec.Struct, frozen=True):
    threads: tuple[ThreadInfo, ...]
    cursor: str | None


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What this engine, in this version, can do beyond plain turns."""

    version: str
    turn_context: bool = True
    """Takes context with a turn, outside of the conversation."""
    inject: bool = True
    """Takes items into the conversation before a turn."""
    history_pages: bool = True
    """Gives its history by the page, from either end."""
    ends_one_command: bool = True
    """Ends a command by its name; else all that run in a thread."""
    resume: bool = True
    """Takes up threads of a process that is gone."""


class Host(Protocol):
    """The owner of a thread, as its engine sees it. Called on the engine's reader."""

    def on_event(self, event: Event) -> None: ...

    async def on_tool(self, name: str, arguments: Any, turn_id: str) -> ToolResult: ...


class Thread(Protocol):
    @property
    def info(self) -> ThreadInfo: ...

    async def start_turn(self, ticket: str, spec: TurnSpec) -> str:
        """Return the turn's id. `TurnStarted(ticket=…)` has been told by then."""
        ...

    async def steer(self, ticket: str, turn_id: str, parts: tuple[Part, ...]) -> None: ...

    async def interrupt(self, turn_id: str) -> None: ...

    def answer(self, question_id: str, answer: Answer) -> None: ...

    async def history(
        self, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page: ...

    async def release(self) -> None:
        """Give the thread up, so that another process can resume it."""
        ...


class Engine(Protocol):
    renews: bool
    """Whether the next call may start another process when one has ended by itself; else it raises."""

    @property
    def is_running(self) -> bool: ...

    @property
    def ended(self) -> str | None:
        """How the last process ended, if it did so by itself and none has followed."""
        ...

    @property
    def ended_saying(self) -> str:
        """What that process said last on its standard error."""
        ...

    @property
    def pid(self) -> int | None: ...

    @property
    def offers(self) -> Offers:
        """What it has beyond threads and turns. Asking starts nothing."""
        ...

    def renew(self) -> None:
        """Forget a process that ended: the next call may start another, this once."""
        ...

    async def abilities(self) -> Abilities: ...

    async def start(self, spec: ThreadSpec, host: Host) -> Thread: ...

    async def resume(self, thread_id: str, spec: ThreadSpec, host: Host) -> Thread: ...

    async def fork(self, thread_id: str, spec: ThreadSpec, host: Host) -> Thread: ...

    async def read(self, thread_id: str) -> ThreadInfo: ...

    async def history(
        self, thread_id: str, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page:
        """Of any thread, also one that nobody has open."""
        ...

    async def list_threads(
        self, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
    ) -> ThreadList:
        """Every thread that a person may want to go on with, whichever program started it."""
        ...

    async def models(self) -> tuple[Model, ...]:
        """What a person may choose from now; it changes with the account."""
        ...

    async def aclose(self) -> None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Monotonic seconds."""
        ...

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once, later; the returned function takes that back."""
        ...
