"""A store on a throw-away folder, a clock to hold in one's hand, and processes that end with their test."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from laneway.core.named.records import AuditLine
from laneway.store.registry import Entry
from laneway.store.store import Store

TEAM = "crew"


class WallClock:
    """Stands still until it is moved, in either direction."""

    def __init__(self) -> None:
        self.time = datetime(2026, 2, 18, 12, 0, 0, 123_456, UTC)

    def __call__(self) -> datetime:
        return self.time

    def move(self, **by: float) -> None:
        self.time += timedelta(**by)


class Worker:
    """`worker.py` in one of its modes. Killed at the end of the block, whatever it does then."""

    def __init__(self, *arguments: object, before: tuple[str, ...] = ()) -> None:
        command = [*before, sys.executable, "-m", "tests.store.worker", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @property
    def pid(self) -> int:
        return self.process.pid

    def hear(self) -> Any:
        """The next thing that it tells. The test's time limit is the deadline."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), f"the worker ended: {line!r}"
        return json.loads(line)

    def rest(self) -> list[Any]:
        """What it told before it ended; a line that the kill cut is left out."""
        assert self.process.stdout is not None
        told = self.process.stdout.read()
        return [json.loads(line) for line in told.split(b"\n")[:-1]]

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


def store_at(root: Path, **options: Any) -> Store:
    return Store(root, TEAM, **options)


def entry(agent_id: str, identity: str = "codex", **fields: Any) -> Entry:
    return Entry(agent_id=agent_id, identity=identity, team=TEAM, **fields)


def event(text: str = "", identity: str = "codex") -> AuditLine:
    return AuditLine(event_type="codex", agent_id="a", identity=identity, prompt_summary=text)
