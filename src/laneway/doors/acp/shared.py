"""The resources that all ACP clients of a process share: engine, hub, session records, login and clock."""

from __future__ import annotations

import asyncio
import logging

from laneway.base.errors import LanewayError
from laneway.core.access import FolderConfig
from laneway.core.editor_sessions import SessionRecords
from laneway.core.hub import Hub
from laneway.core.models import Model
from laneway.core.offers import AccessRules
from laneway.core.ports import Clock, Engine
from laneway.doors.acp.accounts.login import EditorLogin

log = logging.getLogger(__name__)


class Shared:
    def __init__(
        self,
        hub: Hub,
        engine: Engine,
        records: SessionRecords,
        login: EditorLogin,
        clock: Clock,
        *,
        version: str,
        codex_home: str,
        steers: bool = False,
        is_unstable: bool = False,
    ) -> None:
        self.hub = hub
        self.engine = engine
        self.records = records
        self.login = login
        self.clock = clock
        self.version = version
        self.codex_home = codex_home
        self.thread_change = asyncio.Lock()
        """Held while a session gets a new thread: several clients may open it at once."""
        self.steers = steers
        """Whether a prompt during a turn is put into that turn instead of waiting for its end."""
        self.is_unstable = is_unstable
        """Whether methods are offered that the stable protocol does not have yet."""
        self.engine_version = ""

    async def warm(self) -> None:
        """Start the engine and open the database before the first session needs them."""
        try:
            await asyncio.gather(self.engine.abilities(), asyncio.to_thread(self.records.get, ""))
        except LanewayError as error:
            log.info("not ready yet: %s", error)  # the first request that needs it reports the error

    async def models(self) -> tuple[Model, ...]:
        """The models that the engine offers now; they depend on the account."""
        if not self.engine_version:
            self.engine_version = (await self.engine.abilities()).version
        return await self.engine.models()

    @property
    def access(self) -> AccessRules:
        """The engine's access rules, on which the modes of sessions depend; raises if it has none."""
        rules = self.engine.offers.access
        if rules is None:
            raise LanewayError("This engine does not tell how far its sessions may go.")
        return rules

    async def models_and_config(self, cwd: str) -> tuple[tuple[Model, ...], FolderConfig]:
        """The models, and the user's configuration for a folder; both are requested at the same time."""
        models, config = await asyncio.gather(self.models(), self.access.config(cwd))
        return models, config
