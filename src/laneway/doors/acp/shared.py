"""What all clients of one process share: the engine, the sessions, what is kept, and who is logged in."""

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
        self.beginning_anew = asyncio.Lock()
        """Held while a session is given another thread, for a process has many clients."""
        self.steers = steers
        """Whether a prompt during a turn goes into it, and does not wait for its end."""
        self.is_unstable = is_unstable
        """Whether methods are announced that the stable protocol does not have yet."""
        self.engine_version = ""

    async def warm(self) -> None:
        """Get ready for the first session while the client reads its greeting."""
        try:
            await asyncio.gather(self.engine.abilities(), asyncio.to_thread(self.records.get, ""))
        except LanewayError as error:
            log.info("not ready yet: %s", error)  # whoever needs it finds out, and says so

    async def models(self) -> tuple[Model, ...]:
        """What the engine offers now; it changes with the account."""
        if not self.engine_version:
            self.engine_version = (await self.engine.abilities()).version
        return await self.engine.models()

    @property
    def access(self) -> AccessRules:
        """An editor's sessions have modes: an engine that cannot tell what those mean serves none."""
        rules = self.engine.offers.access
        if rules is None:
            raise LanewayError("This engine does not tell how far its sessions may go.")
        return rules

    async def surroundings(self, cwd: str) -> tuple[tuple[Model, ...], FolderConfig]:
        """The models and the user's configuration of a folder, asked for side by side."""
        models, config = await asyncio.gather(self.models(), self.access.config(cwd))
        return models, config
