"""Three clients of the same real stream, each run as a process: `python -m bench.clients SIDE …`.

`raw` counts lines and decodes nothing, `decoding` decodes each line as any client must,
`ours` is engine, hub, session and a subscriber that reads every event. Each prints one
JSON line: words, seconds from asking to the turn's end, CPU seconds of its own process.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from pathlib import Path
from typing import Any, cast

import msgspec

from bench.rig import tell
from laneway.base.clock import LoopClock
from laneway.codex import binary
from laneway.codex.engine import CodexEngine, app_server
from laneway.core.hub import Hub
from laneway.core.model import Text
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec

DELTA = b'"method":"item/agentMessage/delta"'
COMPLETED = b'"method":"turn/completed"'


class RawClient(asyncio.SubprocessProtocol):
    """The least that can follow a turn: looks for two strings in whole lines."""

    def __init__(self) -> None:
        self.words = 0
        self.reads = 0
        self.answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.completed = asyncio.Event()
        self._tail = b""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != 1:
            return
        self.reads += 1
        lines, newline, tail = data.rpartition(b"\n")
        if not newline:
            self._tail += data
            return
        whole, self._tail = self._tail + lines, tail
        self.take(whole)

    def take(self, lines: bytes) -> None:
        self.words += lines.count(DELTA)
        if COMPLETED in lines:
            self.completed.set()
        if b'{"id":' in lines:
            for line in lines.split(b"\n"):
                if line.startswith(b'{"id":'):
                    self.answers.put_nowait(msgspec.json.decode(line))


class DecodingClient(RawClient):
    """Decodes every line and takes each word out of its delta."""

    def take(self, lines: bytes) -> None:
        for line in lines.split(b"\n"):
            message = msgspec.json.decode(line)
            method = message.get("method")
            if method == "item/agentMessage/delta":
                self.words += message["params"]["delta"].count(" ")
            elif method == "turn/completed":
                self.completed.set()
            elif method is None:
                self.answers.put_nowait(message)


async def follow_raw(client: RawClient, prompt: str, work: str) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.subprocess_exec(lambda: client, binary.find().path, "app-server")
    stdin = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))

    async def call(number: int, method: str, params: dict[str, Any]) -> Any:
        stdin.write(msgspec.json.encode({"id": number, "method": method, "params": params}) + b"\n")
        return (await client.answers.get())["result"]

    who = {"name": "raw", "title": "raw", "version": "0"}
    await call(1, "initialize", {"clientInfo": who, "capabilities": {"experimentalApi": True}})
    stdin.write(b'{"method":"initialized"}\n')
    started = await call(2, "thread/start", {"cwd": work})
    watch = Watch()
    text = [{"type": "text", "text": prompt}]
    await call(3, "turn/start", {"threadId": started["thread"]["id"], "input": text})
    await client.completed.wait()
    found = watch.stop(client.words)
    stdin.close()
    await transport._wait()  # type: ignore[attr-defined]  the one wait that asyncio has for a bare protocol
    transport.close()
    return {**found, "reads": client.reads}


async def follow_ours(prompt: str, work: str) -> dict[str, float]:
    engine = CodexEngine(app_server(binary.find))
    async with Hub(engine, LoopClock()) as hub:
        session = await hub.start("bench", ThreadSpec(cwd=Path(work)))
        watch = Watch()
        turn = session.say(TurnSpec(parts=(TextPart(prompt),)))
        words = events = 0
        async for event in turn.events:
            events += 1
            if type(event) is Text:
                words += event.text.count(" ")
        found = watch.stop(words)
    return {**found, "events": events, "lost": turn.events.lost}


class Watch:
    """Wall and CPU time of this process, from now on."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = _cpu_s()

    def stop(self, words: int) -> dict[str, float]:
        return {
            "words": words,
            "wall_s": time.perf_counter() - self._wall,
            "cpu_s": _cpu_s() - self._cpu, "minflt": resource.getrusage(0).ru_minflt, "csw": resource.getrusage(0).ru_nvcsw,
        }


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(side: str, prompt: str, work: str) -> None:
    match side:
        case "raw":
            found = asyncio.run(follow_raw(RawClient(), prompt, work))
        case "decoding":
            found = asyncio.run(follow_raw(DecodingClient(), prompt, work))
        case _:
            found = asyncio.run(follow_ours(prompt, work))
    tell(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
