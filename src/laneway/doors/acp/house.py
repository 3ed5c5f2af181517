"""What all clients of one process share: Codex, the sessions, what is kept, and who is logged in."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from laneway.base.errors import LanewayError
from laneway.codex.engine import CodexEngine
from laneway.core.hub import Hub
from laneway.core.ports import Clock
from laneway.doors.acp.accounts.login import Login
from laneway.doors.acp.sessions.models import Model, models
from laneway.store.editor_sessions import EditorSessions

log = logging.getLogger(__name__)


class House:
    def __init__(
        self,
        hub: Hub,
        engine: CodexEngine,
        records: EditorSessions,
        login: Login,
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
        self.codex_version = ""

    async def warm(self) -> None:
        """Get ready for the first session while the client reads its greeting."""
        try:
            await asyncio.gather(self.engine.link(), asyncio.to_thread(self.records.get, ""))
        except LanewayError as error:
            log.info("not ready yet: %s", error)  # whoever needs it finds out, and says so

    async def models(self) -> tuple[Model, ...]:
        """What Codex offers now; it changes with the account."""
        if not self.codex_version:
            self.codex_version = (await self.engine.abilities()).version
        return models(await self.engine.models())

    async def config(self, cwd: str) -> dict[str, Any]:
        """The user's configuration as it holds in a folder."""
        answer = await self.engine.call("config/read", {"cwd": cwd, "includeLayers": False})
        config = answer.get("config") if isinstance(answer, dict) else None
        return config if isinstance(config, dict) else {}

    async def surroundings(self, cwd: str) -> tuple[tuple[Model, ...], dict[str, Any]]:
        """The models and the configuration, asked for side by side."""
        found, config = await asyncio.gather(self.models(), self.config(cwd))
        return found, config
