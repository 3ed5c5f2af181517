"""Benchmark of tool calls through `laneway mcp`: `codex-reply` beside the same turn on app-server.

Codex is a stub that answers at once (`bench.codex_stub`), the same program on both sides, so that
the difference is ours. Calls are evenly spread over time and over the sessions.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from bench.mcp_servers import GREETING, Server, servers
from bench.rig import CHILD_S, Rig, tell
from bench.table import Goal, Row, Section, middle

ROOT = str(Path(__file__).resolve().parent.parent)
SESSIONS = (1, 50)
CALLS_PER_S = 100
"""In total: a client does not call a tool before it has read the last answer."""
WARM_UP = 100
"""Calls before those that count."""
ADDED = {"p50": Goal(1.0, of="ours"), "p99": Goal(5.0, of="ours")}


def run(rig: Rig, *, quick: bool = False) -> Section:
    calls, rounds = (300, 1) if quick else (1000, 5)
    rows, samples = [], {}
    for sessions in SESSIONS:
        runs: dict[str, list[dict[str, float]]] = {"raw": [], "mcp": []}
        for number in range(rounds):
            for side in reversed(runs) if number % 2 else runs:  # no side always runs behind the other one
                result = rig.measure("bench.mcp_calls", side, sessions, calls, rig.work, rig.home)
                runs[side].append(result)
        samples[f"{sessions} sessions"] = runs
        for name, goal in ADDED.items():
            raw = middle(runs["raw"], itemgetter(name))
            pairs = zip(runs["mcp"], runs["raw"], strict=True)
            added = sorted(ours[name] - theirs[name] for ours, theirs in pairs)
            crowd = f"{sessions} session{'s' if sessions > 1 else ''}"
            rows.append(
                Row(
                    what=f"codex-reply, {crowd}, added {name} ({added[0]:.2f} to {added[-1]:.2f})",
                    unit="ms",
                    base=raw,
                    base_is="raw app-server, whole turn",
                    ours=statistics.median(added),
                    goal=goal,
                    digits=3,
                )
            )
    note = (
        f"Calls: {calls} trivial turns, {CALLS_PER_S} a second over all sessions, of a Codex that answers at"
        " once; what a turn through `laneway mcp` takes longer than on the bare app-server. With events,"
        f" progress, registry and audit as they are by default. Medians of {rounds} rounds,"
        " the sides in turn; in brackets the least and the most that a round added."
    )
    return Section("MCP tool calls", rows, [note], dict(samples))


class Caller:
    """A JSON-RPC client over a pipe, with futures for answers and for the ends of turns."""

    def __init__(self, argv: list[str], environment: dict[str, str], cwd: str) -> None:
        self.process = subprocess.Popen(
            argv,
            env=environment,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin, self._fd = self.process.stdin, self.process.stdout.fileno()
        os.set_blocking(self._fd, False)
        self._tail = b""
        self._number = 0
        self._waiting: dict[Any, asyncio.Future[Any]] = {}
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def _read(self) -> None:
        data = os.read(self._fd, 1024 * 1024)
        *lines, self._tail = (self._tail + data).split(b"\n")
        for line in lines:
            message = msgspec.json.decode(line)
            if message.get("method") == "turn/completed":
                key, value = message["params"]["threadId"], None
            elif "method" in message:
                continue
            else:
                key, value = message["id"], message.get("result")
                if value is None or (isinstance(value, dict) and value.get("isError")):
                    raise RuntimeError(f"a call failed: {line[:500]!r}")
            waiting = self._waiting.pop(key, None)
            if waiting is not None:
                waiting.set_result(value)
        if not data:
            asyncio.get_running_loop().remove_reader(self._fd)

    def wait(self, key: Any) -> asyncio.Future[Any]:
        waiting = self._waiting[key] = asyncio.get_running_loop().create_future()
        return waiting

    def ask(self, method: str, params: dict[str, Any]) -> asyncio.Future[Any]:
        self._number += 1
        body = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        waiting = self.wait(self._number)
        self._stdin.write(msgspec.json.encode(body) + b"\n")
        return waiting

    def notify(self, method: str) -> None:
        self._stdin.write(msgspec.json.encode({"jsonrpc": "2.0", "method": method}) + b"\n")

    def hang_up(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.set_blocking(self._fd, True)
        self.process.communicate(timeout=CHILD_S)


class Raw:
    """A client of app-server itself."""

    def __init__(self, argv: list[str], server: Server) -> None:
        self.caller = Caller([*argv, "app-server"], server.environment, server.cwd)

    async def open(self, sessions: int) -> list[str]:
        who = {"name": "raw", "title": "raw", "version": "0"}
        await self.caller.ask("initialize", {"clientInfo": who, "capabilities": {"experimentalApi": True}})
        self.caller.notify("initialized")
        started = [await self.caller.ask("thread/start", {}) for _ in range(sessions)]
        return [each["thread"]["id"] for each in started]

    async def turn(self, thread_id: str) -> None:
        ended = self.caller.wait(thread_id)
        text = [{"type": "text", "text": "hi"}]
        await self.caller.ask("turn/start", {"threadId": thread_id, "input": text})
        await ended


class Ours:
    """An MCP client."""

    def __init__(self, argv: list[str], server: Server, work: Path) -> None:
        codex = work / "codex"
        codex.write_text(f'#!/bin/sh\nexec {" ".join(argv)} "$@"\n')
        codex.chmod(0o755)
        environment = {**server.environment, "LANEWAY_CODEX_BIN": str(codex)}
        self.caller = Caller([*server.argv], environment, server.cwd)

    async def open(self, sessions: int) -> list[str]:
        await self.caller.ask("initialize", GREETING)
        self.caller.notify("notifications/initialized")
        start = {"name": "codex", "arguments": {"prompt": "hi"}}
        started = [await self.caller.ask("tools/call", start) for _ in range(sessions)]
        return [each["structuredContent"]["threadId"] for each in started]

    async def turn(self, thread_id: str) -> None:
        reply = {"name": "codex-reply", "arguments": {"threadId": thread_id, "prompt": "hi"}}
        await self.caller.ask("tools/call", reply)


async def measure(side: str, sessions: int, calls: int, rig: Rig) -> dict[str, float]:
    argv = [sys.executable, "-m", "bench.codex_stub"]
    paths = os.pathsep.join((ROOT, os.environ.get("PYTHONPATH", "")))
    server = servers(rig)["mcp"]
    server = msgspec.structs.replace(server, environment={**server.environment, "PYTHONPATH": paths})
    client = Raw(argv, server) if side == "raw" else Ours(argv, server, rig.work)
    threads = await client.open(sessions)
    took_ms: list[float] = []
    for number in range(WARM_UP + calls):
        await _tick()
        before = time.perf_counter()
        await client.turn(threads[number % sessions])
        took_ms.append((time.perf_counter() - before) * 1e3)
    client.caller.hang_up()
    cuts = statistics.quantiles(took_ms[WARM_UP:], n=100, method="inclusive")
    return {"calls": calls, "p50": cuts[49], "p99": cuts[98], "worst": max(took_ms[WARM_UP:])}


async def _tick() -> None:
    await asyncio.sleep(1 / CALLS_PER_S)


if __name__ == "__main__":
    side, sessions, calls, work, home = sys.argv[1:]
    child_rig = Rig(sys.executable, Path(home), Path(work), dict(os.environ))
    tell(asyncio.run(measure(side, int(sessions), int(calls), child_rig)))
