"""Benchmark of MCP servers under load: a turn streamed as `codex/event`s, and fifty sessions at once.

All of them run the real Codex. The same client reads every stream and decodes every line; the raw
side is app-server's own stream, read the same way.
"""

from __future__ import annotations

import sys
import time
from operator import itemgetter
from typing import Any

import msgspec

from bench.mcp_servers import OLD, OURS, Server, Talk, servers
from bench.processes import resident_kb
from bench.rig import Rig, tell
from bench.table import Goal, Row, Section, middle, spread_of

WORDS = 20_000
SESSIONS = 50
SHARE = Goal(0.9, at_least=True)
"""Of what raw app-server delivers, at least."""
NO_SLOWER = Goal(1.0)
PER_SESSION_KB = Goal(50.0, of="ours")
DELTA = "agent_message_content_delta"


def run(rig: Rig, *, quick: bool = False) -> Section:
    rounds = 2 if quick else 5
    all_servers = servers(rig)
    sides = ["raw", *(name for name in all_servers if name in (*OURS, OLD))]
    streams: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    crowds: dict[str, list[dict[str, float]]] = {side: [] for side in sides[1:]}
    for number in range(rounds):
        at = number % len(sides)
        for side in sides[at:] + sides[:at]:  # no side always runs behind the same one
            streams[side].append(_stream(rig, all_servers, side))
    for _ in range(1 if quick else 3):
        for side, results in crowds.items():
            results.append(_measure(rig, "crowd", all_servers[side], SESSIONS))
    rows = [*_stream_rows(streams), *_crowd_rows(crowds)]
    notes = [
        f"Stream: {WORDS:,} words of one turn, --events full, medians of {rounds} rounds."
        f" Crowd: {SESSIONS} `codex` calls written at once, each a turn of one word on a thread of its own."
    ]
    return Section("MCP server, under load", rows, notes, {"streams": streams, "crowds": crowds})


def _stream_rows(streams: dict[str, list[dict[str, float]]]) -> list[Row]:
    speed = {
        side: middle(results, lambda run: run["words"] / run["wall_s"]) for side, results in streams.items()
    }
    bases = {"raw": "raw app-server, decoding", OLD: OLD}
    return [
        Row(
            what=f"laneway {ours}: text as codex/event",
            unit="words/s",
            base=speed[base],
            base_is=base_is,
            ours=speed[ours],
            goal=SHARE,
            digits=0,
            spread=spread_of(
                [
                    theirs["wall_s"] / mine["wall_s"]
                    for mine, theirs in zip(streams[ours], streams[base], strict=True)
                ]
            ),
        )
        for ours in OURS
        for base, base_is in bases.items()
        if base in speed
    ]


def _crowd_rows(crowds: dict[str, list[dict[str, float]]]) -> list[Row]:
    old = crowds.get(OLD)
    rows = []
    for ours in OURS:
        rows.append(
            Row(
                what=f"laneway {ours}: {SESSIONS} codex calls at once, until the last is answered",
                unit="s",
                base=middle(old, itemgetter("wall_s")) if old else None,
                base_is=OLD,
                ours=middle(crowds[ours], itemgetter("wall_s")),
                goal=NO_SLOWER if old else None,
            )
        )
        rows.append(
            Row(
                what=f"laneway {ours}: memory of our process per session",
                unit="kB",
                base=middle(old, itemgetter("kb")) if old else None,
                base_is=f"{OLD}, which is Codex itself",
                ours=middle(crowds[ours], itemgetter("kb")),
                goal=PER_SESSION_KB,
                digits=0,
            )
        )
    return rows


# ── one measurement, in a process of its own ───────────────────────────────


def _stream(rig: Rig, all_servers: dict[str, Server], side: str) -> dict[str, float]:
    if side == "raw":
        return rig.measure("bench.clients", "decoding", f"%stream {WORDS} words", rig.work)
    return _measure(rig, "stream", all_servers[side], WORDS)


def _measure(rig: Rig, what: str, server: Server, count: int) -> dict[str, float]:
    return rig.measure("bench.mcp_load", what, msgspec.json.encode(server).decode(), count)


def stream(server: Server, words: int) -> dict[str, float]:
    """Measure one turn; every event is decoded and its words are counted."""
    talk = Talk(server, *_full(server))
    talk.greet()
    thread_id = talk.call("codex", server.first_call("%say ready"))["structuredContent"]["threadId"]
    before = time.perf_counter()
    arguments = {"threadId": thread_id, "prompt": f"%stream {words} words"}
    talk.send("tools/call", {"name": "codex-reply", "arguments": arguments}, 99)
    received = 0
    while True:
        message = talk.read()
        if message.get("id") == 99:
            break
        body: dict[str, Any] = message["params"]["msg"]
        if body["type"] == DELTA:
            received += body["delta"].count(" ")
    wall_s = time.perf_counter() - before
    talk.hang_up()
    if received != words:
        raise RuntimeError(f"{server.name} told {received} of {words} words")
    return {"words": received, "wall_s": wall_s}


def crowd(server: Server, sessions: int) -> dict[str, float]:
    """Measure many calls at once, until all are answered."""
    talk = Talk(server)
    talk.greet()
    talk.call("codex", server.first_call("%say first"))
    one = resident_kb(talk.process.pid)
    before = time.perf_counter()
    for number in range(sessions):
        params = {"name": "codex", "arguments": server.first_call("%say hi")}
        talk.send("tools/call", params, 1000 + number)
    open_calls = set(range(1000, 1000 + sessions))
    while open_calls:
        message = talk.read()
        if "method" not in message:
            if "error" in message or message["result"].get("isError"):
                raise RuntimeError(f"a call failed: {str(message)[:500]}")
            open_calls.remove(message["id"])
    wall_s = time.perf_counter() - before
    kb = (resident_kb(talk.process.pid) - one) / sessions
    talk.hang_up()
    return {"wall_s": wall_s, "kb": kb}


def _full(server: Server) -> tuple[str, ...]:
    return ("--events", "full") if server.name in OURS else ()


if __name__ == "__main__":
    what, server_json, count = sys.argv[1:]
    measured = {"stream": stream, "crowd": crowd}[what]
    tell(measured(msgspec.json.decode(server_json, type=Server), int(count)))
