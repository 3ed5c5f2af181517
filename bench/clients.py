"""Four clients for one stream of the real app-server, each a process: `python -m bench.clients SIDE …`.

`alone` reads the pipe every few milliseconds and so leaves app-server undisturbed: the most that
it can deliver. `raw` reads whatever comes at once and decodes nothing; `decoding` decodes each
line, as any client must. `ours` is engine, hub, session and a subscriber that reads every event.
Each prints one JSON line about the turn: words, seconds, CPU seconds of its own process.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bench.rig import tell
from laneway.base.clock import LoopClock
from laneway.codex import locate
from laneway.codex.engine import codex_engine
from laneway.core.hub import Hub
from laneway.core.model import Text
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.wire.child import PIPE_BYTES

READ_BYTES = 64 * 1024
"""One read of a raw client. Asked for more, Python may fetch fresh pages from the kernel every time."""
LOOK_S = 0.005
"""How often `alone` reads: the enlarged pipe holds twenty times what arrives in between."""
DELTA = b'"method":"item/agentMessage/delta"'
COMPLETED = b'"method":"turn/completed"'


class RawClient:
    """The minimal client: searches whole lines for two strings."""

    def __init__(self) -> None:
        self.words = 0
        self.reads = 0
        self.answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.completed = asyncio.Event()
        self._tail = b""

    def on_readable(self, fd: int) -> bool:
        """Read once; return whether there may be more."""
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return False
        self.reads += 1
        lines, newline, tail = data.rpartition(b"\n")
        if newline:
            whole, self._tail = self._tail + lines, tail
            self.take(whole)
        else:
            self._tail += data
        return bool(data)

    def take(self, lines: bytes) -> None:
        self.words += lines.count(DELTA)
        if COMPLETED in lines:
            self.completed.set()
        if b'{"id":' in lines:
            for line in lines.split(b"\n"):
                if line.startswith(b'{"id":'):
                    self.answers.put_nowait(msgspec.json.decode(line))


class DecodingClient(RawClient):
    """Decodes every line and counts the words of each delta."""

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


def at_once(client: RawClient, fd: int) -> Callable[[], None]:
    """Read whenever there is data; returns a function that stops it."""
    loop = asyncio.get_running_loop()
    loop.add_reader(fd, client.on_readable, fd)

    def stop() -> None:
        loop.remove_reader(fd)

    return stop


def periodically(client: RawClient, fd: int) -> Callable[[], None]:
    """Read all data every `LOOK_S`; returns a function that stops it."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def look() -> None:
        if stopped.is_set():
            return
        while client.on_readable(fd):
            pass
        loop.call_later(LOOK_S, look)

    look()
    return stopped.set


async def follow_raw(
    client: RawClient, prompt: str, work: str, listen: Callable[[RawClient, int], Callable[[], None]]
) -> dict[str, float]:
    process = subprocess.Popen(  # noqa: ASYNC220  the same as `Child` does
        [locate.find().path, "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,  # as ours: the scheduler may give each session a share of its own
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, fd = process.stdin, process.stdout.fileno()
    os.set_blocking(fd, False)
    if sys.platform == "linux":
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)  # as large as ours
    stop = listen(client, fd)

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
    result = watch.stop(client.words)
    stop()
    stdin.close()
    process.wait()
    return {**result, "reads": client.reads}


async def follow_ours(prompt: str, work: str) -> dict[str, float]:
    engine = codex_engine(locate.find())
    async with Hub(engine, LoopClock()) as hub:
        session = await hub.start("bench", ThreadSpec(cwd=Path(work)))
        watch = Watch()
        turn = session.say(TurnSpec(parts=(TextPart(prompt),)))
        words = events = 0
        async for event in turn.events:
            events += 1
            if type(event) is Text:
                words += event.text.count(" ")
        result = watch.stop(words)
    return {**result, "events": events, "lost": turn.events.lost}


class Watch:
    """Wall and CPU time of this process, from now on."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = self._cpu_s()

    def stop(self, words: int) -> dict[str, float]:
        wall_s, cpu_s = time.perf_counter() - self._wall, self._cpu_s() - self._cpu
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        return {"words": words, "wall_s": wall_s, "cpu_s": cpu_s, "page_faults": faults}

    @staticmethod
    def _cpu_s() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime


def main(side: str, prompt: str, work: str) -> None:
    following = {
        "alone": lambda: follow_raw(RawClient(), prompt, work, periodically),
        "raw": lambda: follow_raw(RawClient(), prompt, work, at_once),
        "decoding": lambda: follow_raw(DecodingClient(), prompt, work, at_once),
        "ours": lambda: follow_ours(prompt, work),
    }
    tell(asyncio.run(following[side]()))


if __name__ == "__main__":
    main(*sys.argv[1:])
