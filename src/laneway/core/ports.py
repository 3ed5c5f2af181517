"""Ports between the core and an engine: `Engine`, `Thread`, `Host`, and the clock.

An engine implements `Engine` and `Thread`; the owner of a thread implements `Host`. The engines are
`laneway.codex`, `laneway.claude` and, driven by hand in tests, `laneway.testing`. Optional abilities of
an engine are in `laneway.core.offers`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

from laneway.base.whole_text import is_whole, whole_text
from laneway.core.model import Answer, Event
from laneway.core.tools import Tool, ToolResult

if TYPE_CHECKING:  # for annotations only: every program loads this module as it starts
    from laneway.core.access import Permit
    from laneway.core.models import Model
    from laneway.core.offers import Offers, PlanMode, SpecialTurn

FILE_MARK = "[ACP_RESOURCE"
"""The prefix of a text part that is a link or an embedded file, not the user's own text."""


class TextPart(msgspec.Struct, frozen=True):
    text: str

    def __post_init__(self) -> None:
        # An argument of a shell, or what is typed, need not be UTF-8: no engine could be sent it.
        if not is_whole(self.text):
            msgspec.structs.force_setattr(self, "text", whole_text(self.text))


class ImagePart(msgspec.Struct, frozen=True):
    """An image by URL (`data:` included) or by local path."""

    url: str | None = None
    path: str | None = None


class NativePart(msgspec.Struct, frozen=True):
    """An input in the engine's own form, passed on unchanged."""

    value: dict[str, Any]


Part: TypeAlias = TextPart | ImagePart | NativePart


class ThreadSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a thread. What is not set is not sent, so the user's own configuration applies."""

    cwd: Path
    backend: str | None = None
    """The key of the engine that runs it; none for the default."""
    moves: bool = False
    """On a resume: work in `cwd` from now on. Else the thread stays in its folder."""
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
    """The part of the user's configuration for this folder that decides about access and the model's
    provider, if the caller has just read it, so that the engine need not."""
    writable_roots: tuple[str, ...] = ()
    """Writable folders beside `cwd` and those of the user's configuration, if writing is allowed at all."""
    directories: tuple[str, ...] = ()
    """Further folders of the workspace beside `cwd`: writable only where `cwd` is."""
    extras: dict[str, Any] = {}
    """Laneway's own config beside the caller's: sent at every start and resume, never stored."""
    streams_edits: bool = False
    """Whether edits are streamed while they are written, unless the user's configuration decides that."""
    question_s: float | None = None
    """How long a question may stay open, if not as long as is usual in this process (inf: until the end)."""
    declines_escalations: bool = False
    """Whether questions for more access are declined at once, without asking anybody."""


class TurnSpec(msgspec.Struct, frozen=True, kw_only=True):
    parts: tuple[Part, ...]
    special_turn: SpecialTurn | None = None
    """Replaces the parts."""
    context: str = ""
    """Context for the model in this turn. The session puts its own in front of what a caller gives."""
    model: str | None = None
    effort: str | None = None
    output_schema: Any = None
    personality: str | None = None
    reasoning_summary: str | None = None
    permit: Permit | None = None
    """The access of the session from this turn on."""
    permit_if_cold: Permit | None = None
    """The same, for an engine process that was restarted and has only its own record of the thread."""
    plan_mode: PlanMode | None = None
    native: dict[str, Any] = {}
    """Further parameters in the engine's own form; they win."""


class Page(msgspec.Struct, frozen=True):
    """One page of history, oldest first within the page.

    `older` is the cursor of the previous page or, if the oldest turns were asked for first, of the next.
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
    """Accepts context with a turn, outside of the conversation."""
    inject: bool = True
    """Accepts items for the conversation before a turn."""
    history_pages: bool = True
    """Returns its history in pages, from either end."""
    ends_one_command: bool = True
    """Can end a single command; else only all commands of a thread."""
    resume: bool = True
    """Can resume threads of a process that has ended."""


class Host(Protocol):
    """The owner of a thread, as its engine sees it. Called on the engine's reader."""

    def on_event(self, event: Event) -> None: ...

    async def on_tool(self, name: str, arguments: Any, turn_id: str) -> ToolResult: ...


class Thread(Protocol):
    @property
    def info(self) -> ThreadInfo: ...

    async def start_turn(self, ticket: str, spec: TurnSpec) -> str:
        """Return the turn's id. The event `TurnStarted(ticket=…)` has been sent by then."""
        ...

    async def steer(self, ticket: str, turn_id: str, parts: tuple[Part, ...]) -> None: ...

    async def interrupt(self, turn_id: str) -> None: ...

    def answer(self, question_id: str, answer: Answer) -> None: ...

    async def history(
        self, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page: ...

    async def release(self) -> None:
        """Unload the thread, so that another process can resume it."""
        ...


class Engine(Protocol):
    """Opens threads. Either one process runs all of them, or each thread has its own (`shares_process`).

    The death of a process is told to each of its threads (`EngineGone`), and to nobody else.
    """

    renews: bool
    """Whether the next call may start another process when one has ended by itself; else it raises.
    Only an engine with a shared process heeds it: the death of a thread's own process ends that thread
    only, and its next call resumes it."""

    @property
    def backend(self) -> str:
        """Its key in settings, calls and records, such as `codex` (`laneway.base.engines`)."""
        ...

    @property
    def name(self) -> str:
        """Its name in sentences, such as `Codex`."""
        ...

    @property
    def shares_process(self) -> bool:
        """Whether one process runs all threads."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether its process runs, or a process of one of its threads."""
        ...

    @property
    def ended(self) -> str | None:
        """How the shared process ended, if it did so by itself and none has followed."""
        ...

    @property
    def ended_stderr(self) -> str:
        """The last lines of that process's standard error."""
        ...

    @property
    def pid(self) -> int | None:
        """The shared process, if it runs."""
        ...

    @property
    def offers(self) -> Offers:
        """Optional abilities of the engine. Reading this starts no process."""
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
        """The history of any thread, also one that is not open."""
        ...

    async def list_threads(
        self, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
    ) -> ThreadList:
        """All threads that a user may want to resume, whichever program started them."""
        ...

    async def models(self) -> tuple[Model, ...]:
        """The models to choose from; they depend on the account."""
        ...

    async def aclose(self) -> None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Monotonic seconds."""
        ...

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once, later; the returned function cancels that."""
        ...
