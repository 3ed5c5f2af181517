"""The Claude engine: opens, resumes, forks and lists sessions of Claude Code, each in its own process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from laneway.base.engines import CLAUDE
from laneway.base.errors import EngineClosed, ThreadUnknown
from laneway.base.programs import Binary
from laneway.claude import version
from laneway.claude.awake import AwakeThreads
from laneway.claude.launching import Begin
from laneway.claude.listing import info_of, list_sessions
from laneway.claude.locks import SessionLocks
from laneway.claude.setup import ClaudeSetup
from laneway.claude.thread import ClaudeThread
from laneway.core.ports import Abilities, Host, Page, ThreadInfo, ThreadList, ThreadSpec

if TYPE_CHECKING:
    from laneway.core.models import Model
    from laneway.core.offers import Offers


class ClaudeEngine:
    backend = "claude"
    name = CLAUDE
    shares_process = False
    ended: str | None = None
    ended_stderr = ""
    pid: int | None = None

    def __init__(self, setup: ClaudeSetup) -> None:
        self._setup = setup
        self.renews = True

    @property
    def is_running(self) -> bool:
        return any(thread.is_awake for thread in self._setup.threads)

    @cached_property
    def offers(self) -> Offers:
        from laneway.claude.offers import offers  # for front ends that have commands

        return offers()

    def renew(self) -> None:
        """Each thread has a process of its own; the next call to it starts another one anyway."""

    async def abilities(self) -> Abilities:
        found = self._setup.version
        if found is None:
            found = self._setup.version = await asyncio.to_thread(version.probe, self._setup.binary)
        version.check_age(found, self._setup.binary.path)
        return Abilities(version=version.spell(found), ends_one_command=False)

    async def start(self, spec: ThreadSpec, host: Host) -> ClaudeThread:
        return await self._open(spec, host, str(uuid4()), "start")

    async def resume(self, thread_id: str, spec: ThreadSpec, host: Host) -> ClaudeThread:
        await self._check_known(thread_id)
        return await self._open(spec, host, thread_id, "resume")

    async def fork(self, thread_id: str, spec: ThreadSpec, host: Host) -> ClaudeThread:
        await self._check_known(thread_id)
        return await self._open(spec, host, str(uuid4()), "fork", thread_id)

    async def _open(
        self, spec: ThreadSpec, host: Host, thread_id: str, begin: Begin, original_id: str | None = None
    ) -> ClaudeThread:
        if self._setup.is_closed:
            raise EngineClosed
        thread = ClaudeThread(self._setup, host, spec, thread_id)
        self._setup.threads.add(thread)
        try:
            await thread.open(begin, original_id)
        except BaseException:
            self._setup.forget(thread)
            raise
        return thread

    async def _check_known(self, thread_id: str) -> None:
        if not await asyncio.to_thread(self._setup.transcripts.has_messages, thread_id):
            raise ThreadUnknown(thread_id, engine=CLAUDE)

    async def read(self, thread_id: str) -> ThreadInfo:
        path = await asyncio.to_thread(self._setup.transcripts.find, thread_id)
        info = None if path is None else await asyncio.to_thread(info_of, path)
        if info is None:
            raise ThreadUnknown(thread_id, engine=CLAUDE)
        return info

    async def history(
        self, thread_id: str, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page:
        await self._check_known(thread_id)
        return await self._setup.history(thread_id, older, limit, oldest_first=oldest_first)

    async def list_threads(
        self, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
    ) -> ThreadList:
        return await asyncio.to_thread(
            list_sessions, self._setup.transcripts, cwd=cwd, cursor=cursor, limit=limit
        )

    async def models(self) -> tuple[Model, ...]:
        from laneway.claude.models import models  # for front ends that show them

        return models(await self._setup.listed_models())

    async def aclose(self) -> None:
        self._setup.is_closed = True
        await asyncio.gather(*(thread.release() for thread in list(self._setup.threads)))
        await self._setup.awake.aclose()


def claude_engine(
    claude: Binary,
    environment: Mapping[str, str],
    locks: SessionLocks | None = None,
    awake: AwakeThreads | None = None,
) -> ClaudeEngine:
    """The engine on one Claude Code executable."""
    return ClaudeEngine(ClaudeSetup(claude, environment, locks, awake))
