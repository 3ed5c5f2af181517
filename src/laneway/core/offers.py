"""What an engine may offer beyond threads and turns, each a small port; one that lacks it says none.

Whoever wants something asks whether it is there (`engine.offers.accounts is None`). Values are
frozen; the ports are implemented by the engine (`laneway.codex.offers`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec

from laneway.core.access import FolderConfig, Permit

if TYPE_CHECKING:
    from laneway.core.overrides import KeyPath

# ── turns that begin otherwise ─────────────────────────────────────────────


class ReviewUncommitted(msgspec.Struct, frozen=True):
    """A review of what has changed since the last commit."""


class ReviewBranch(msgspec.Struct, frozen=True):
    """A review of what has changed since a branch."""

    branch: str


class ReviewCommit(msgspec.Struct, frozen=True):
    sha: str
    title: str = ""


class ReviewInstructions(msgspec.Struct, frozen=True):
    """A review of whatever a person says."""

    text: str


class Compaction(msgspec.Struct, frozen=True):
    """The conversation summarised, to free the model's context."""


Review: TypeAlias = ReviewUncommitted | ReviewBranch | ReviewCommit | ReviewInstructions
SpecialTurn: TypeAlias = Review | Compaction
"""Work that is a turn and does not begin with words of a user."""


# ── how a thread runs ──────────────────────────────────────────────────────


class ThreadState(msgspec.Struct, frozen=True, kw_only=True):
    """How a thread would run its next turn if it were told nothing, by the engine's own account."""

    model: str
    effort: str | None
    permit: Permit
    is_planning: bool = False


class ConfigRules(Protocol):
    """Which keys of an engine's configuration widen nothing (`laneway.codex.config_keys` is one)."""

    def forbidden(self, config: Mapping[str, Any], own: Mapping[str, Any] = ...) -> list[KeyPath]:
        """The paths that a caller may not set, in the order given. `own` is what the user set: it passes."""
        ...


class AccessRules(Protocol):
    """How far threads may go, by the user's configuration and by the engine's records."""

    def state(self, opened: dict[str, Any]) -> ThreadState:
        """Of a thread, by what the engine told as it opened it (`ThreadInfo.native`)."""
        ...

    async def config(self, cwd: str) -> FolderConfig:
        """The user's configuration as it holds in a folder."""
        ...

    async def last_permit(self, opened: dict[str, Any]) -> Permit:
        """What its last turn had, by the engine's record; where that does not tell, as narrow as can be."""
        ...


class PlanMode(msgspec.Struct, frozen=True):
    """Plan before anything is changed. `model` and `effort` are those of the session: a mode brings both."""

    is_on: bool
    model: str
    effort: str | None


class Planning(Protocol):
    async def switch(self, thread_id: str, mode: PlanMode) -> None: ...

    def is_on(self, settings: Any) -> bool:
        """By the settings that a `SettingsChanged` tells of."""
        ...


# ── what is kept of threads ────────────────────────────────────────────────


class ThreadFiles(Protocol):
    async def delete(self, thread_id: str) -> None:
        """Of the disk, too; raises `ThreadUnknown`."""
        ...

    async def has_writer(self, thread_id: str) -> bool:
        """Whether some process has the thread open, also if it has written nothing of it yet."""
        ...


class Undo(Protocol):
    """Turns taken out of a conversation."""

    async def turns(self, thread_id: str) -> list[str]:
        """The ids of the latest turns, newest first."""
        ...

    async def take_back(self, thread_id: str, turn_id: str) -> bool:
        """This turn and all after it; false where only the last one can be taken back."""
        ...

    async def take_back_last(self, thread_id: str) -> None:
        """Not to be asked twice: it would take back two."""
        ...


# ── what a thread has at hand ──────────────────────────────────────────────


class McpServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: str = ""
    """How it runs, in the engine's word; empty: it is set up."""
    tools: tuple[str, ...] = ()
    error: str = ""
    needs_login: bool = False


class McpServers(Protocol):
    async def servers(self, thread_id: str) -> tuple[McpServerStatus, ...]: ...


class Skill(msgspec.Struct, frozen=True):
    name: str
    about: str = ""


class Skills(Protocol):
    async def skills(self, cwd: str) -> tuple[Skill, ...]: ...


# ── who is logged in ───────────────────────────────────────────────────────


class Account(msgspec.Struct, frozen=True, kw_only=True):
    kind: str | None = None
    """`apiKey`, `chatgpt` or another of the engine's words; none: nobody is logged in."""
    who: str = ""
    is_login_needed: bool = False
    is_login_possible: bool = False
    """Whether the model's provider is one to log in to, and not one with a key of the user's."""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an allowance is used up."""

    used_percent: int | float | None = None
    window_minutes: int | None = None
    resets_at: int | None = None
    """Seconds since 1970."""


class LoginPage(msgspec.Struct, frozen=True):
    """Where a person goes to log in."""

    login_id: str
    url: str
    code: str = ""
    """To be entered there; empty where the page needs none."""


LoginWay: TypeAlias = Literal["browser", "device_code"]


class StartedLogin(Protocol):
    """A login that waits for a person."""

    @property
    def page(self) -> LoginPage: ...

    @property
    def outcome(self) -> asyncio.Future[str | None]:
        """How it ended: none for a login, else why not. Set by the engine, or by `end`."""
        ...

    def end(self, why: str) -> None:
        """Nobody waits for it any more; unless it has ended, this is its outcome."""
        ...

    async def cancel(self) -> None:
        """Have the engine give it up."""
        ...


class Accounts(Protocol):
    async def read(self, *, refresh: bool = False) -> Account:
        """`refresh`: only a login that works counts."""
        ...

    async def limits(self) -> tuple[Limit, ...]: ...

    async def log_in_with_key(self, key: str) -> None: ...

    async def begin_login(self, way: LoginWay) -> StartedLogin: ...

    async def log_out(self) -> None: ...


# ── all of it ──────────────────────────────────────────────────────────────


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    access: AccessRules | None = None
    accounts: Accounts | None = None
    thread_files: ThreadFiles | None = None
    undo: Undo | None = None
    planning: Planning | None = None
    mcp_servers: McpServers | None = None
    skills: Skills | None = None
    reviews: bool = False
    """Whether a turn can be a `Review`."""
    compaction: bool = False
