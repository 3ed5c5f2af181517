"""Benchmark of ACP agents and raw app-server: cancelling a turn, and loading a long session."""

from __future__ import annotations

import statistics
import time

from bench.acp_agents import OFFICIAL, OLDER, OURS, RAW, Bare, agents, open_client
from bench.mcp_servers import Server
from bench.rig import Rig
from bench.table import Row, Section

BASES = (OFFICIAL, OLDER, RAW)
SLOW = "%stream 3000 words over 60 seconds"
"""A turn that is still running when it is cancelled, at a model's usual pace."""
CANCELS = 3
"""In one process. Codex itself takes between 3 and 30 ms."""
ITEMS_A_TURN = 50
RUNS_A_TURN = 5
"""Commands among a turn's items; the others are messages, the first of them the user's."""
MESSAGE = "An answer of some length, as a model would give between two steps, with the reasons for them."


def run(rig: Rig, *, quick: bool = False) -> Section:
    turns, rounds = (4, 2) if quick else (40, 7)
    servers = agents(rig)
    thread_id = long_session(rig, servers[RAW], turns)
    stopped: dict[str, list[float]] = {name: [] for name in servers}
    loaded: dict[str, list[float]] = {name: [] for name in servers}
    messages: dict[str, int] = {}
    for number in range(rounds + 1):
        for name, server in servers.items():
            load_s, messages[name] = load(rig, server, thread_id)
            cancel_s = cancel(rig, server)
            if number:  # the first round warms the disk's cache
                loaded[name].append(load_s)
                stopped[name] += cancel_s
    items = f"load of a session of {turns * ITEMS_A_TURN:,} items"
    rows = [
        *(_row("session/cancel → prompt answered", base, stopped, 1) for base in BASES if base in servers),
        *(_row(items, base, loaded, 0) for base in BASES if base in servers),
    ]
    counts = ", ".join(f"{name} {count:,}" for name, count in messages.items())
    note = f"Load: by a fresh agent that is ready; messages or items that told of the session: {counts}."
    return Section(
        "ACP agent, sessions", rows, [note], {"cancel_s": stopped, "load_s": loaded, "told": messages}
    )


def _row(what: str, base: str, samples: dict[str, list[float]], digits: int) -> Row:
    return Row(
        what=what,
        unit="ms",
        base=statistics.median(samples[base]) * 1e3,
        base_is=base,
        ours=statistics.median(samples[OURS]) * 1e3,
        digits=digits,
    )


def cancel(rig: Rig, server: Server) -> list[float]:
    """Seconds from each cancel to the end of its turn, in one process."""
    client = open_client(server)
    client.greet()
    session_id = client.new(rig.work)
    seconds = []
    for _ in range(CANCELS):
        client.prompt(session_id, SLOW)
        client.wait_chunk()
        before = time.perf_counter()
        client.cancel(session_id)
        client.wait_end()
        seconds.append(time.perf_counter() - before)
    client.hang_up()
    return seconds


def long_session(rig: Rig, server: Server, turns: int) -> str:
    """Create a thread with many items in a process that then ends; returns its id."""
    client = Bare(server)
    client.greet()
    thread_id = client.new(rig.work)
    messages_per_run = (ITEMS_A_TURN - 1 - RUNS_A_TURN) // RUNS_A_TURN
    extra = (ITEMS_A_TURN - 1 - RUNS_A_TURN) % RUNS_A_TURN
    lines = [*[f"%say {MESSAGE}"] * messages_per_run, "%run echo 'a line of output'"] * RUNS_A_TURN
    lines += [f"%say {MESSAGE}"] * extra
    for _ in range(turns):
        client.prompt(thread_id, "\n".join(lines))
        client.wait_end()
    client.hang_up()
    return thread_id


def load(rig: Rig, server: Server, thread_id: str) -> tuple[float, int]:
    """Seconds until a ready agent has loaded the session, and the number of messages in its replay."""
    client = open_client(server)
    client.greet()
    client.wait_ready()
    before = time.perf_counter()
    messages = client.load(thread_id, rig.work)
    took_s = time.perf_counter() - before
    client.hang_up()
    return took_s, messages
