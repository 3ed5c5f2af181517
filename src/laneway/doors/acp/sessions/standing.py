"""What a session is set to, what Codex was told of it, and what is kept of both on disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from laneway.base.errors import StoreError
from laneway.core.ports import TurnSpec
from laneway.doors.acp.client import Client
from laneway.doors.acp.sessions import modes, options
from laneway.doors.acp.sessions.options import Choices, Facts
from laneway.store.editor_sessions import EditorSessions, Permit, SessionRecord

log = logging.getLogger(__name__)


class Standing:
    """`record` is the session's, but for what is known here; `warn` tells its user something."""

    def __init__(
        self,
        records: EditorSessions,
        record: SessionRecord,
        choices: Choices,
        facts: Facts,
        client: Client,
        warn: Callable[[str], None],
        empty_in: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.choices = choices
        self.facts = facts
        self._records = records
        self._record = record
        self._client = client
        self._warn = warn
        self._empty_in = empty_in
        """The Codex home in which nothing of its thread is written down yet; none once there is."""
        self._is_kept_empty = False
        self._sending: Permit | None = None
        self._sent: Permit | None = None
        self._writing: asyncio.Task[None] | None = None
        self._waiting: asyncio.Task[None] | None = None

    @property
    def takes_images(self) -> bool:
        return options.takes_images(self.choices, self.facts)

    def shown(self) -> list[dict[str, Any]]:
        """All options, as the client knows them."""
        return options.render(self.choices, self.facts, self._client)

    def modes(self) -> dict[str, Any]:
        return options.modes(self.choices, self.facts)

    async def choose(self, config_id: str, value: Any) -> bool:
        """Change an option, for the next turn on; whether that changed the mode."""
        before = self.choices
        self.choices = options.choose(before, self.facts, config_id, value)
        await asyncio.shield(self.keep_soon())
        return self.choices.mode != before.mode

    # ── what Codex is told ─────────────────────────────────────────────────

    def equipped(self, turn: TurnSpec) -> TurnSpec:
        """With what differs from what Codex has; what the turn itself says goes first."""
        self._sending = options.policy(self.choices, self.facts)
        native = {**options.overrides(self.choices, self.facts), **turn.native}
        # A Codex that starts anew does not know what this session may do, and config.toml may say more.
        return msgspec.structs.replace(turn, native=native, if_cold=modes.native(self._sending))

    def told(self) -> None:
        """A turn has begun: Codex has what it was equipped with."""
        self._sent = self._sending
        self.keep_soon()

    def has_thread(self, thread_id: str) -> None:
        """Another than before, which was lost while it was empty."""
        self._record = msgspec.structs.replace(self._record, thread_id=thread_id)
        self.keep_soon()

    def spoken(self) -> None:
        """A turn is over: the first one ends that the session is kept as an empty one."""
        if self._is_kept_empty and self._empty_in() is None:
            self.keep_soon()

    # ── what is kept ───────────────────────────────────────────────────────

    @property
    def record(self) -> SessionRecord:
        """What whoever goes on with this session has to know."""
        defaults = options.defaults(self.choices, self.facts, sent=self._sent)
        defaults = msgspec.structs.replace(defaults, empty_in=self._empty_in())
        return msgspec.structs.replace(self._record, defaults=defaults)

    def keep_soon(self) -> asyncio.Task[None]:
        """Write down what a restarted adapter needs. One write waits at most: it takes what holds then."""
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_task(self._keep_after(self._writing))
        return self._waiting

    async def _keep_after(self, before: asyncio.Task[None] | None) -> None:
        """A disk that will not take it is told, not fatal."""
        if before is not None:
            await asyncio.wait((before,))
        self._writing, self._waiting = self._waiting, None  # what changes from here on is the next one's
        record = self.record
        self._is_kept_empty = record.defaults.empty_in is not None
        try:
            await asyncio.to_thread(self._records.put, record)
        except StoreError as problem:
            log.error("a session could not be written down: %s", problem)
            self._warn(f"This session's options are not kept: {problem}")

    async def wait_kept(self, timeout_s: float | None = None) -> None:
        last = self._waiting or self._writing
        if last is not None:
            await asyncio.wait((last,), timeout=timeout_s)
