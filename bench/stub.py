"""A stub of Codex inside this process: gives recorded answers, and deltas on request.

`StubCodex` is a transport for `Link`, so everything of ours above the pipe is real. `Thin` is the
minimal client of the same bytes: split, decode, put into the session's queue. The readers of both
collect pairs of time and text, so that they can be compared.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.clock import LoopClock
from laneway.codex.engine import CodexEngine
from laneway.core.hub import Hub
from laneway.core.model import Text, TurnStarted
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.core.session import Session
from laneway.core.turn import Turn

Feed = Callable[[bytes], None]
Taken = list[tuple[float, str]]
"""Times at which a reader got a text, with the text."""

_STAMP = 1794815455237
_THREAD: dict[str, Any] = {
    "environments": [{"environmentId": "local", "cwd": "/work", "runtimeWorkspaceRoots": ["/work"]}],
    "forkedFromId": None,
    "parentThreadId": None,
    "preview": "",
    "ephemeral": False,
    "historyMode": "paginated",
    "modelProvider": "rehearsal",
    "model": "gpt-5.5",
    "reasoningEffort": None,
    "createdAt": _STAMP // 1000,
    "updatedAt": _STAMP // 1000,
    "recencyAt": _STAMP // 1000,
    "status": {"type": "idle"},
    "path": "/home/sessions/rollout-2026-11-16T07-50-55-01a1e356-6fb3-7d41-a895-08a44cedbb38.jsonl",
    "cwd": "/work",
    "cliVersion": "0.163.0",
    "originator": "laneway",
    "source": "vscode",
    "threadSource": None,
    "agentNickname": None,
    "agentRole": None,
    "gitInfo": None,
    "name": None,
    "turns": [],
}
_SETTINGS: dict[str, Any] = {
    "model": "gpt-5.5",
    "modelProvider": "rehearsal",
    "serviceTier": None,
    "cwd": "/work",
    "runtimeWorkspaceRoots": ["/work"],
    "instructionSources": [],
    "approvalPolicy": "on-request",
    "approvalsReviewer": "user",
    "sandbox": {"type": "readOnly", "networkAccess": False},
    "activePermissionProfile": {"id": ":read-only", "extends": None},
    "reasoningEffort": None,
    "multiAgentMode": "explicitRequestOnly",
}


def thread_id(number: int) -> str:
    return f"01a1e356-6fb3-7d41-a895-{number:012x}"


def turn_id(number: int) -> str:
    return f"01a1e356-6fc8-7fd2-999e-{number:012x}"


def delta(number: int, text: str) -> bytes:
    """One word of thread `number`, byte for byte as 0.163.0 sends it."""
    return (
        f'{{"method":"item/agentMessage/delta","params":{{"threadId":"{thread_id(number)}","turnId":'
        f'"{turn_id(number)}","itemId":"msg_2","delta":"{text}"}},"emittedAtMs":{_STAMP}}}\n'
    ).encode()


def completed(number: int) -> bytes:
    """The end of thread `number`'s turn."""
    turn: dict[str, Any] = {"id": turn_id(number), "items": [], "status": "completed", "error": None}
    params = {"threadId": thread_id(number), "turn": turn}
    return msgspec.json.encode({"method": "turn/completed", "params": params}) + b"\n"


class StubCodex:
    """A stub transport: `CodexEngine(stub.connect)`."""

    def __init__(self) -> None:
        self.feed: Callable[[bytes], None] = lambda data: None
        self._threads = 0

    async def connect(self, on_bytes: Callable[[bytes], None], on_end: Callable[[Any], None]) -> StubCodex:
        self.feed = on_bytes
        return self

    def write(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        for line in data.splitlines():
            request = msgspec.json.decode(line)
            if "id" in request:
                answer = {
                    "id": request["id"],
                    "result": self.answer(request["method"], request.get("params")),
                }
                loop.call_soon(self.feed, msgspec.json.encode(answer) + b"\n")

    def answer(self, method: str, params: Any) -> dict[str, Any]:
        match method:
            case "initialize":
                return {"userAgent": "laneway/0.163.0 (stub)"}
            case "thread/start":
                name = thread_id(self._threads)
                self._threads += 1
                return {"thread": {**_THREAD, "id": name, "sessionId": name}, **_SETTINGS}
            case "turn/start":
                number = int(params["threadId"][-12:], 16)
                return {"turn": {"id": turn_id(number), "items": [], "status": "inProgress", "error": None}}
            case _:
                return {}

    @property
    def backlog_bytes(self) -> int:
        return 0

    @property
    def stderr_tail(self) -> str:
        return ""

    async def stop(self, own_end_s: float = 0.0) -> str:
        return "exit code 0"


class Ours:
    """Real sessions on a real hub and link, with one reader each."""

    def __init__(self) -> None:
        self._stub = StubCodex()
        self._hub = Hub(CodexEngine(self._stub.connect), LoopClock())
        self._sessions: list[Session] = []
        self._readers: list[asyncio.Task[None]] = []
        self.taken: Taken = []

    async def open(self, sessions: int) -> Callable[[bytes], None]:
        """Start sessions; returns the function that feeds bytes."""
        for _ in range(sessions):
            self._sessions.append(await self._hub.start("bench", ThreadSpec(cwd=Path("/work"))))
        return self._stub.feed

    async def begin(self) -> None:
        """Start a turn in every session, with a reader that ends with it."""
        for session in self._sessions:
            turn = session.say(TurnSpec(parts=(TextPart("go"),)))
            begun = asyncio.Event()
            self._readers.append(asyncio.create_task(self._read(turn, begun)))
            await begun.wait()

    async def _read(self, turn: Turn, begun: asyncio.Event) -> None:
        taken = self.taken
        async for event in turn.events:
            if type(event) is Text:
                taken.append((time.perf_counter(), event.text))
            elif type(event) is TurnStarted:
                begun.set()

    async def finish(self) -> None:
        """Wait until every reader has seen the end of its turn."""
        await asyncio.gather(*self._readers)
        self._readers.clear()

    async def aclose(self) -> None:
        await self._hub.shutdown()


class Thin:
    """The minimal client: splits and decodes, with one queue and one reader per session."""

    def __init__(self) -> None:
        self._queues: dict[str, asyncio.Queue[str | None]] = {}
        self._readers: list[asyncio.Task[None]] = []
        self.taken: Taken = []

    async def open(self, sessions: int) -> Callable[[bytes], None]:
        self._queues = {thread_id(number): asyncio.Queue() for number in range(sessions)}
        return self._feed

    def _feed(self, data: bytes) -> None:
        for line in data.splitlines():
            message = msgspec.json.decode(line)
            params = message["params"]
            self._queues[params["threadId"]].put_nowait(params.get("delta"))

    async def begin(self) -> None:
        self._readers = [asyncio.create_task(self._read(queue)) for queue in self._queues.values()]

    async def _read(self, queue: asyncio.Queue[str | None]) -> None:
        taken = self.taken
        while (text := await queue.get()) is not None:
            taken.append((time.perf_counter(), text))

    async def finish(self) -> None:
        await asyncio.gather(*self._readers)

    async def aclose(self) -> None:
        pass


def side(name: str) -> Ours | Thin:
    return Ours() if name == "ours" else Thin()
