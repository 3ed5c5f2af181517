"""Optional abilities of an engine beyond threads and turns, as small ports: accounts, undo, skills, reviews.

A caller checks whether a port is there (`engine.offers.accounts is None`); an engine that lacks the
ability has none. Values are frozen; the engine implements the ports (`laneway.codex.offers`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec

from laneway.core.access import FolderConfig, Permit

if TYPE_CHECKING:
    from laneway.core.overrides import KeyPath

# ── turns without a prompt ─────────────────────────────────────────────────


class ReviewUncommitted(msgspec.Struct, frozen=True):
    """A review of the uncommitted changes."""


class ReviewBranch(msgspec.Struct, frozen=True):
    """A review of the changes since a branch."""

    branch: str


class ReviewCommit(msgspec.Struct, frozen=True):
    sha: str
    title: str = ""


class ReviewInstructions(msgspec.Struct, frozen=True):
    """A review of what the user describes."""

    text: str


class Compaction(msgspec.Struct, frozen=True):
    """A turn that summarises the conversation to free the model's context."""


Review: TypeAlias = ReviewUncommitted | ReviewBranch | ReviewCommit | ReviewInstructions
SpecialTurn: TypeAlias = Review | Compaction
"""Work that is a turn and does not start with a prompt."""


# ── how a thread runs ──────────────────────────────────────────────────────


class ThreadState(msgspec.Struct, frozen=True, kw_only=True):
    """How a thread would run its next turn without further settings, as the engine reports it."""

    model: str
    effort: str | None
    permit: Permit
    is_planning: bool = False


class ConfigRules(Protocol):
    """Decides which configuration keys a caller may set (implemented by `laneway.codex.config_keys`)."""

    def forbidden(self, config: Mapping[str, Any], own: Mapping[str, Any] = ...) -> list[KeyPath]:
        """The paths that a caller may not set, in the order given. `own` is what the user set: it passes."""
        ...


class AccessRules(Protocol):
    """The access of threads, from the user's configuration and the engine's records."""

    def state(self, opened: dict[str, Any]) -> ThreadState:
        """The state of a thread, from the engine's answer when it was opened (`ThreadInfo.native`)."""
        ...

    async def config(self, cwd: str) -> FolderConfig:
        """The user's configuration as it applies to a folder."""
        ...

    async def last_permit(self, opened: dict[str, Any]) -> Permit:
        """The access of its last turn in the engine's record; the narrowest where the record has none."""
        ...


class PlanMode(msgspec.Struct, frozen=True):
    """Plan before anything is changed. `model` and `effort` are those of the session: a mode brings both."""

    is_on: bool
    model: str
    effort: str | None


class Planning(Protocol):
    async def switch(self, thread_id: str, mode: PlanMode) -> None: ...

    def is_on(self, settings: Any) -> bool:
        """Whether plan mode is on, by the settings of a `SettingsChanged`."""
        ...


# ── stored threads ─────────────────────────────────────────────────────────


class ThreadFiles(Protocol):
    async def delete(self, thread_id: str) -> None:
        """Delete a thread with its files; raises `ThreadUnknown`."""
        ...

    async def has_writer(self, thread_id: str) -> bool:
        """Whether some process has the thread open, even if it has not written anything yet."""
        ...


class Undo(Protocol):
    """Takes turns out of a conversation."""

    async def turns(self, thread_id: str) -> list[str]:
        """The ids of the latest turns, newest first."""
        ...

    async def take_back(self, thread_id: str, turn_id: str) -> bool:
        """Take back this turn and all after it; false where the engine can only take back the last one."""
        ...

    async def take_back_last(self, thread_id: str) -> None:
        """Take back the last turn. Never repeat the call: it would take back two."""
        ...


# ── MCP servers and skills ─────────────────────────────────────────────────


class McpServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: str = ""
    """The engine's own state name; empty if the server is only set up."""
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


# ── accounts ───────────────────────────────────────────────────────────────


class Account(msgspec.Struct, frozen=True, kw_only=True):
    kind: str | None = None
    """`apiKey`, `chatgpt` or another name of the engine's; none if nobody is logged in."""
    who: str = ""
    is_login_needed: bool = False
    is_login_possible: bool = False
    """Whether the model's provider has a login, rather than a key in the user's configuration."""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A usage limit of the account, and how much of it is used."""

    used_percent: int | float | None = None
    window_minutes: int | None = None
    resets_at: int | None = None
    """Seconds since 1970."""


class LoginPage(msgspec.Struct, frozen=True):
    """The web page on which the user logs in."""

    login_id: str
    url: str
    code: str = ""
    """The code to enter on the page; empty where it needs none."""


LoginWay: TypeAlias = Literal["browser", "device_code"]


class StartedLogin(Protocol):
    """A login that waits for the user."""

    @property
    def page(self) -> LoginPage: ...

    @property
    def outcome(self) -> asyncio.Future[str | None]:
        """The result: none for success, else the reason of the failure. Set by the engine, or by `end`."""
        ...

    def end(self, why: str) -> None:
        """Stop waiting: unless the login has ended, this is its outcome."""
        ...

    async def cancel(self) -> None:
        """Cancel the login in the engine."""
        ...


class Accounts(Protocol):
    async def read(self, *, refresh: bool = False) -> Account:
        """The account that is logged in. `refresh` also checks that the login still works."""
        ...

    async def limits(self) -> tuple[Limit, ...]: ...

    async def log_in_with_key(self, key: str) -> None: ...

    async def begin_login(self, way: LoginWay) -> StartedLogin: ...

    async def log_out(self) -> None: ...


# ── all offers ──────────────────────────────────────────────────────────────


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine can do beyond threads and turns. Known without starting it."""

    steering: bool = False
    """Whether input can be added to a running turn."""
    images: bool = False
    forks: bool = False
    live_output: bool = False
    """Whether a command's output comes while it runs; else a running command is silent."""
    exit_codes: bool = False
    """Whether every command ends with its exit code; else only some do."""
    schemas: bool = False
    """Whether a turn's answer can be held to a JSON schema."""
    codex_config: bool = False
    """Whether a thread takes Codex's own terms: config keys, base instructions, a profile, personality."""
    sandboxes: tuple[str, ...] = ()
    """The sandboxes that it enforces, by Codex's names."""
    approvals: tuple[str, ...] = ()
    """The approval policies that it keeps to, by Codex's names."""
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
