"""The real `codex exec` with a scripted model, as a supervisor would run it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway.codex import locate
from laneway.codex.exec.command import WorkerCommand, argv
from laneway.codex.exec.events import EventNormaliser, WorkerEvent, WorkerState
from laneway.codex.exec.outcome import Verdict, verdict
from laneway.rehearsal.answer import Piece, answer
from laneway.rehearsal.home import throwaway_home, work_beside
from laneway.rehearsal.server import ModelServer
from laneway.testing import first_start

DEADLINE_S = 60.0
MAX_LINE_BYTES = 64 * 1024 * 1024

Message = dict[str, Any]


class Ended:
    """A worker that is over."""

    def __init__(
        self, returncode: int, output: EventNormaliser, events: list[WorkerEvent], stderr: str
    ) -> None:
        self.returncode = returncode
        self.output = output
        self.events = events
        self.stderr = stderr

    @property
    def state(self) -> WorkerState:
        return self.output.state

    def verdict(self, **more: Any) -> Verdict:
        return verdict(self.returncode, self.state, self.stderr, **more)

    def contents(self, *types: str) -> list[dict[str, Any]]:
        """Of the events of these types, without those that Codex warns by."""
        return [
            event.content
            for event in self.events
            if event.type in types and event.content.get("kind") != "warning"
        ]


class Bench:
    """A scripted model, a Codex home, and a folder to work in."""

    def __init__(self, requests: list[Message], home: Path) -> None:
        self.requests = requests
        """What the model was sent, in order."""
        self.home = home
        self.work = work_beside(home)
        self.config = home / "config.toml"
        self.binary = locate.find().path

    def command(self, **fields: Any) -> WorkerCommand:
        return WorkerCommand(**{"binary": self.binary, "cwd": str(self.work), **fields})

    async def run(
        self,
        prompt: str,
        *,
        on_event: Callable[[WorkerEvent, Process], Awaitable[None]] | None = None,
        words: list[str] | None = None,
        environment: dict[str, str] | None = None,
        **fields: Any,
    ) -> Ended:
        """One worker, from start to end. `words` in place of those of a command."""
        clock = iter(range(1_000_000)).__next__
        output = EventNormaliser(lambda: float(clock()))
        events: list[WorkerEvent] = []
        async with asyncio.timeout(DEADLINE_S):
            process = await asyncio.create_subprocess_exec(
                *(words or argv(self.command(**fields))),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={**os.environ, "CODEX_HOME": str(self.home), **(environment or {})},
                cwd=self.home,
                limit=MAX_LINE_BYTES,
                start_new_session=True,
            )
            assert process.stdin
            assert process.stdout
            assert process.stderr
            errors = asyncio.create_task(process.stderr.read())
            try:
                process.stdin.write(prompt.encode())
                process.stdin.close()
                async for line in process.stdout:
                    for event in output.feed(line.rstrip(b"\n")):
                        events.append(event)
                        if on_event is not None:
                            await on_event(event, process)
                stderr = (await errors).decode("utf-8", "replace")
                return Ended(await process.wait(), output, events, stderr)
            finally:
                errors.cancel()
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    await process.wait()

    def repository(self, path: Path) -> Path:
        """A repository with one commit."""
        path.mkdir(parents=True, exist_ok=True)
        git(path, "init", "-q")
        (path / "kept").write_text("kept\n")
        git(path, "add", ".")
        git(path, "commit", "-q", "-m", "first")
        return path


@asynccontextmanager
async def bench(extra_config: str = "") -> AsyncIterator[Bench]:
    requests: list[Message] = []

    def noted(request: Message) -> Iterator[Piece]:
        requests.append(request)
        return answer(request)

    async with ModelServer(noted) as model:
        with throwaway_home(model.base_url, extra_config=extra_config) as home:
            first_start.fill(home)
            yield Bench(requests, home)


def git(folder: Path, *words: str) -> None:
    """Without the configuration of whoever runs the tests."""
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "protocol.file.allow=always")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, env=environment)


def tools_of(request: Message) -> set[str]:
    return {str(tool.get("name") or tool.get("type")) for tool in request["tools"]}


def seen_by_model(request: Message) -> str:
    return json.dumps(request["input"], ensure_ascii=False)


def without_times(event: WorkerEvent) -> WorkerEvent:
    return msgspec.structs.replace(event, at=0.0)
