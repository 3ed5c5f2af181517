"""Named sessions on a hand-driven engine and real files, for tests; run as a program, a second process."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from laneway.base.errors import LanewayError
from laneway.core.engines import NO_OTHERS, MakeEngine
from laneway.core.hub import Hub, Limits
from laneway.core.model import Tokens, Usage
from laneway.core.named.opening import Opening
from laneway.core.named.session import NamedSession
from laneway.core.named.sessions import NamedSessions
from laneway.core.ports import TextPart, ThreadSpec
from laneway.core.session import Timing
from laneway.core.turn import Turn, TurnResult
from laneway.store.records import StoreRecords
from laneway.store.store import Store
from laneway.testing.clock import HandClock
from laneway.testing.engine import HandEngine, HandThread
from tests.core.support import until

TEAM = "crew"
ME = "me"
TIMING = Timing(turn_s=60, question_s=300, stop_s=10)


class TickingClock:
    """A wall clock that advances at every read, so that no two times are equal."""

    def __init__(self) -> None:
        self._time = datetime.now(UTC)

    def __call__(self) -> datetime:
        self._time += timedelta(milliseconds=1)
        return self._time


class Stage:
    """Named sessions with the engine, clock and store that a test drives."""

    def __init__(self, sessions: NamedSessions, engine: HandEngine, clock: HandClock, root: Path) -> None:
        self.sessions = sessions
        self.engine = engine
        self.clock = clock
        self.root = root
        self.store = Store(root, TEAM)

    def thread(self, named: NamedSession) -> HandThread:
        engine = named.session.engine
        assert isinstance(engine, HandEngine)
        return engine.threads[named.thread_id]

    async def open(self, identity: str | None = None, **spec: Any) -> NamedSession:
        spec.setdefault("cwd", self.root)
        return await self.sessions.open(ME, Opening(spec=ThreadSpec(**spec), identity=identity))

    async def busy(self, named: NamedSession, words: str = "work") -> Turn:
        """A turn that runs until the test ends it."""
        turn = self.sessions.say(named, words)
        await until(lambda: self.thread(named).turn_id)
        return turn

    async def turn(self, named: NamedSession, words: str = "work", tokens: int = 0) -> TurnResult:
        """A turn from its beginning to its end."""
        turn = await self.busy(named, words)
        if tokens:
            self.use(named, tokens)
        self.thread(named).end(text=f"done: {words}")
        return await turn.result()

    def use(self, named: NamedSession, tokens: int) -> None:
        thread = self.thread(named)
        total = Tokens(total=tokens)
        thread.emit(Usage(turn_id=thread.turn_id or "", last=total, total=total))

    def entries(self, identity: str = "codex") -> list[dict[str, Any]]:
        """What is on the disk, as another program reads it."""
        path = self.store.layout.registry(identity)
        rows: list[dict[str, Any]] = json.loads(path.read_text())["sessions"] if path.exists() else []
        return rows

    def audit(self) -> list[dict[str, Any]]:
        return list(self.store.audit.read().lines)


@asynccontextmanager
async def stage(
    root: Path,
    *,
    engine: HandEngine | None = None,
    others: Mapping[str, MakeEngine] = NO_OTHERS,
    limit: int = 10,
    is_obedient: bool = True,
    **options: Any,
) -> AsyncIterator[Stage]:
    engine, clock = engine or HandEngine(is_obedient=is_obedient), HandClock()
    records = StoreRecords(Store(root, TEAM), now=TickingClock())
    hub = Hub(engine, clock, others=others, limits=Limits(sessions=limit), timing=TIMING, shutdown_s=0.05)
    options.setdefault("summaries", False)
    async with asyncio.timeout(30), NamedSessions(hub, records, clock, **options) as sessions:
        yield Stage(sessions, engine, clock, root)


def texts(thread: HandThread, number: int = -1) -> list[str]:
    """What a turn of the thread was given to read."""
    return [part.text for part in thread.started[number][1].parts if isinstance(part, TextPart)]


async def main(root: Path, identity: str) -> None:
    """Open a session, print its id or the error, and keep it open until the process is ended."""
    async with stage(root) as here:
        try:
            result_json: dict[str, Any] = {"agent_id": (await here.open(identity)).agent_id}
        except LanewayError as error:
            result_json = {"error": type(error).__name__, "agent_id": getattr(error, "agent_id", None)}
        print(json.dumps(result_json), flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
