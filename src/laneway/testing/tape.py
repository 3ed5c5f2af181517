"""Replays a recorded trace of app-server to the real link and the real thread.

For the golden tests, and for the script that records their data. Nothing here knows how a frame becomes
an event: a replay only sends Codex's lines in their order, and makes the calls that the lines answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from laneway.codex.link import Link
from laneway.codex.thread import CodexThread
from laneway.core.model import DECLINE, Asked, Event, public
from laneway.core.ports import TurnSpec
from laneway.core.tools import ToolResult

PLAY_S = 30.0
"""For a whole trace, which has no pauses; only a mistake in a trace or in the link takes longer."""


async def play(frames: Iterable[bytes]) -> list[Event]:
    """Return the events that the thread's owner gets. The n-th turn has the ticket `ticket-<n>`."""
    transport = _Transport()
    host = DecliningHost()
    async with asyncio.timeout(PLAY_S):
        lines = iter(frames)
        link = await transport.answer(Link.open(transport.connect), next(lines))
        try:
            await _play(lines, transport, link, host)
            return list(host.events)
        finally:
            await link.aclose()


async def _play(lines: Iterable[bytes], transport: _Transport, link: Link, host: DecliningHost) -> None:
    tickets = 0
    for line in lines:
        frame = msgspec.json.decode(line)
        result = frame.get("result") or {}
        if "thread" in result:
            host.thread = CodexThread(link, host, result)
        elif "turn" in result and host.thread is not None:
            tickets += 1
            start_turn = host.thread.start_turn(f"ticket-{tickets}", TurnSpec(parts=()))
            await transport.answer(start_turn, line)
        else:
            transport.on_bytes(line + b"\n")
            if "method" in frame and "id" in frame:
                await transport.received.get()


def event_data(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Events as plain data that is the same every time: questions are numbered."""
    question_ids = [event.question.question_id for event in events if isinstance(event, Asked)]
    text = msgspec.json.encode([public(event) for event in events]).decode()
    for number, question_id in enumerate(question_ids, 1):
        text = text.replace(question_id, f"q-{number}")
    data: list[dict[str, Any]] = msgspec.json.decode(text)
    return data


class _Transport:
    """Codex's end of the connection. Records our requests and answers, but no notifications."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.on_bytes: Callable[[bytes], None] = _ignore

    async def connect(self, on_bytes: Callable[[bytes], None], on_end: Callable[[Any], None]) -> _Transport:
        self.on_bytes = on_bytes
        return self

    async def answer(self, call: Awaitable[Any], line: bytes) -> Any:
        """Make one of our calls, and answer it with a recorded line, whatever its id was."""
        call_task = asyncio.ensure_future(call)
        request = await self.received.get()
        self.on_bytes(msgspec.json.encode({**msgspec.json.decode(line), "id": request["id"]}) + b"\n")
        return await call_task

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            message = msgspec.json.decode(line)
            if "id" in message:
                self.received.put_nowait(message)

    @property
    def backlog_bytes(self) -> int:
        return 0

    @property
    def stderr_tail(self) -> str:
        return ""

    async def stop(self, own_end_s: float = 0.0) -> str:
        return "the tape ended"


class DecliningHost:
    """Owns the thread, keeps its events, and declines: in a trace Codex has had its answers already."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.thread: CodexThread | None = None

    def on_event(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Asked) and self.thread is not None:
            self.thread.answer(event.question.question_id, DECLINE)

    async def on_tool(self, name: str, arguments: Any, turn_id: str) -> ToolResult:
        return ToolResult(text="")


def _ignore(data: bytes) -> None:
    pass
