"""What all threads of one Claude engine share: the binary, its environment, locks, and how it is started.

Turns what goes wrong at a start into errors that say what to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from laneway.base.disk import is_disk_full
from laneway.base.engines import CLAUDE
from laneway.base.errors import (
    ActiveWriter,
    DiskFull,
    EngineCannot,
    EngineLost,
    EngineSilent,
    NotLoggedIn,
    ThreadUnknown,
    UsageError,
)
from laneway.base.kinds import to_text
from laneway.base.programs import Binary
from laneway.claude import version
from laneway.claude.access import READ_ONLY, access_of
from laneway.claude.awake import AwakeThreads, Sleeper
from laneway.claude.launching import Begin, Launch, arguments, initialize
from laneway.claude.locate import claude_environment, config_home
from laneway.claude.locks import SessionLocks
from laneway.claude.login import LOGIN_REMEDY, is_login_missing
from laneway.claude.process import HANDSHAKE_S, ClaudeProcess, StreamEvent
from laneway.claude.repo_trust import RepoTrust
from laneway.claude.running import holder_of
from laneway.claude.transcript import TranscriptFiles
from laneway.core.model import Notice
from laneway.core.ports import Page

TAKE_S = 60.0
"""From an input to the report that it was taken, or that its turn began: milliseconds, unless it hangs."""
FORGETS = "CLAUDE_CODE_SKIP_PROMPT_HISTORY"
_UNKNOWN = "No conversation found"
_NOT_FOR_ROOT = "cannot be used with root"


class ClaudeSetup:
    def __init__(
        self,
        binary: Binary,
        environment: Mapping[str, str],
        locks: SessionLocks | None = None,
        awake: AwakeThreads | None = None,
        handshake_s: float = HANDSHAKE_S,
        take_s: float = TAKE_S,
    ) -> None:
        self.binary = binary
        self.environment = claude_environment(environment)
        self.home = Path(config_home(environment))
        self.transcripts = TranscriptFiles(self.home)
        self.locks = locks
        self.awake = awake or AwakeThreads()
        self.threads: set[Sleeper] = set()
        """Those that are open, awake or not."""
        self.is_closed = False
        self.version: tuple[int, ...] | None = None
        """Of the last process that answered."""
        self.models: list[Any] = []
        """The models to choose from, as it listed them."""
        self.writes_nothing = self.environment.get(FORGETS, "").lower() in ("1", "true", "yes", "on")
        """Whether the user wants no transcripts: then nothing can be resumed."""
        self.take_s = take_s
        self._handshake_s = handshake_s
        self._trust = RepoTrust(environment, self.home)
        self._told: set[tuple[Path, str]] = set()
        """What has been said about folders."""

    async def sources_of(self, cwd: Path, folders: tuple[str, ...]) -> tuple[tuple[str, ...], Notice | None]:
        """Whose settings Claude Code may read in folders now, and what is left out if that is new."""
        verdict = await asyncio.to_thread(self._trust.verdict, cwd, tuple(map(Path, folders)))
        if not verdict.sentence or (cwd, verdict.sentence) in self._told:
            return verdict.sources, None
        self._told.add((cwd, verdict.sentence))
        return verdict.sources, Notice(level="info", message=verdict.sentence)

    async def may_read(self, cwd: Path, launch: Launch) -> bool:
        """Whether the settings that a process was started with may still be read."""
        folders = tuple(map(Path, launch.folders))
        return (await asyncio.to_thread(self._trust.verdict, cwd, folders)).sources == launch.sources

    async def refuse_if_running(self, thread_id: str) -> None:
        """Raise `ActiveWriter` if a Claude Code of the user's own has the session open.

        Ours are known by their locks. This one may begin at any time, and then nothing stops it.
        """
        pid = await asyncio.to_thread(holder_of, self.home, thread_id)
        if pid is not None:
            raise ActiveWriter(thread_id, pid)

    def forget(self, thread: Sleeper) -> None:
        self.threads.discard(thread)
        self.awake.drop(thread)

    async def start(
        self,
        process: ClaudeProcess,
        launch: Launch,
        begin: Begin,
        thread_id: str,
        original_id: str | None,
        cwd: Path,
        held: tuple[int, ...] = (),
        *,
        needs_login: bool = True,
    ) -> None:
        """Start a process, which keeps its session's lock. Raises what a person can do something about."""
        argv = [self.binary.path, *arguments(launch, begin, thread_id, original_id)]
        try:
            await process.open(argv, self.environment, cwd, initialize(launch), held, self._handshake_s)
        except OSError as problem:
            if not await asyncio.to_thread(cwd.is_dir):
                raise UsageError(f"There is no folder {to_text(cwd)}.") from problem
            raise version.cannot_run(self.binary.path, problem) from problem
        except EngineSilent:
            raise
        except EngineLost as loss:
            await self._diagnose(process.first_error or loss.stderr_tail, original_id or thread_id, loss)
            raise
        self.version = version.parse_version(str(process.hello.get("claude_code_version"))) or version.OLDEST
        self.models = process.hello.get("models") or []
        try:
            version.check_age(self.version, self.binary.path)
            if needs_login and is_login_missing(process.hello):
                raise NotLoggedIn(LOGIN_REMEDY, engine=CLAUDE)
        except BaseException:
            await process.aclose()
            raise

    async def listed_models(self) -> list[Any]:
        """The models to choose from. Only a running Claude Code knows them: one is started if need be."""
        if not self.models:
            await self.greet()
        return self.models

    async def greet(self) -> dict[str, Any]:
        """Start a Claude Code and end it again; returns its answer to the handshake. Asks no model."""
        launch = Launch(access=access_of(READ_ONLY, None), is_ephemeral=True)
        folder = self.home if self.home.is_dir() else Path("/")
        process = ClaudeProcess(_Deaf())
        await self.start(process, launch, "start", str(uuid4()), None, folder, needs_login=False)
        await process.aclose()
        return process.hello

    async def _diagnose(self, said: str, thread_id: str, loss: EngineLost) -> None:
        """Raise a better error than that the process ended, if there is one."""
        if _UNKNOWN in said:
            raise ThreadUnknown(thread_id, engine=CLAUDE) from loss
        if _NOT_FOR_ROOT in said:
            remedy = "Start it as another user, or leave the approval policy out."
            raise EngineCannot(CLAUDE, "do everything unasked as root", remedy) from loss
        if await asyncio.to_thread(is_disk_full, self.home):
            raise DiskFull(str(self.home)) from loss
        # A binary that is too old or something else also just exits.
        found = await asyncio.to_thread(version.probe, self.binary)
        version.check_age(found, self.binary.path)

    async def history(
        self, thread_id: str, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page:
        path = await asyncio.to_thread(self.transcripts.find, thread_id)
        if path is None:
            return Page((), None)  # opened, and nothing has been said
        return await asyncio.to_thread(_page, path, older, limit, oldest_first)


def _page(path: Path, older: str | None, limit: int, oldest_first: bool) -> Page:
    from laneway.claude.history import page  # for front ends that show what was said before
    from laneway.claude.listing import info_of

    info = info_of(path)
    return page(path, older, limit, oldest_first=oldest_first, cwd=info.cwd if info is not None else "")


class _Deaf:
    """The listener of a process that is only asked what it can do."""

    def on_stream(self, event: StreamEvent, frame: bytes) -> None: ...

    def on_message(self, message: dict[str, Any], frame: bytes) -> None: ...

    def on_request(self, request_id: str, request: dict[str, Any]) -> None: ...

    def on_cancel(self, request_id: str) -> None: ...

    def on_end(self, how: str) -> None: ...
