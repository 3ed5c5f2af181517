"""What `laneway mcp` and `laneway mcp-server` add to a turn of the real Codex, and what of it is Codex's own.

All sides are open at once and take turns, one call each per round, so that whatever else the machine does
hits all of them alike. Two of them are raw app-server: bare, and with the tools and the context that
`laneway mcp` sends along, which Codex has to work on whoever sends them.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

from bench.mcp_servers import Server, Talk, servers
from bench.rig import Rig, tell
from bench.table import Goal, Row, Section
from laneway.codex.context import additional_context
from laneway.codex.engine import dynamic_tool
from laneway.core.tools import Caller, ToolResult
from laneway.mail.tool_schemas import ALL

BARE, LOADED, DROP_IN, MCP = "raw", "raw, same context and tools", "mcp-server", "mcp"
WARM_UP = 20
"""Rounds before those that count."""
ADDED = Goal(1.0, of="ours")
CONTEXT = """\
Your session, as of this turn. Laneway tells you this; it is not part of the request.
identity: "codex"
team: "default"
repo_root: null
repo_name: null
branch: null
cwd: "{cwd}\""""


def run(rig: Rig, *, quick: bool = False) -> Section:
    rounds = 60 if quick else 300
    samples = rig.measure("bench.mcp_turns", rounds, rig.codex, rig.work, rig.home)
    rows = [
        _row(f"a turn of the real Codex through {ours}, added", samples[ours], samples[base], base, goal)
        for ours, base, goal in (
            (DROP_IN, BARE, ADDED),
            (MCP, LOADED, ADDED),
            (MCP, BARE, None),
            (LOADED, BARE, None),
        )
    ]
    note = (
        f"Turns: {rounds} rounds of one trivial turn on each side, the sides in turn; medians of the turns"
        " and of the differences within a round, with the middle half of those differences in brackets."
    )
    return Section("MCP turns, real Codex", rows, [note], samples)


def _row(what: str, ours: list[float], base: list[float], base_is: str, goal: Goal | None) -> Row:
    added = [mine - theirs for mine, theirs in zip(ours, base, strict=True)]
    low, _, high = statistics.quantiles(added, n=4, method="inclusive")
    return Row(
        what=f"{what} (middle half {low:.2f} to {high:.2f})",
        unit="ms",
        base=statistics.median(base),
        base_is=base_is,
        ours=statistics.median(added),
        goal=goal,
    )


class RawTurns:
    """A client of app-server itself, perhaps with what `laneway mcp` sends along."""

    def __init__(self, server: Server, cwd: str, *, is_loaded: bool) -> None:
        self._talk = Talk(server)
        who = {"name": "raw", "title": "raw", "version": "0"}
        self._talk.ask("initialize", {"clientInfo": who, "capabilities": {"experimentalApi": True}})
        self._talk.send("initialized", {})
        tools = {"dynamicTools": [dynamic_tool(words.tool(_unused)) for words in ALL]} if is_loaded else {}
        self._thread_id: str = self._talk.ask("thread/start", {"cwd": cwd, **tools})["thread"]["id"]
        context = additional_context(CONTEXT.format(cwd=cwd), 0)
        self._extras = {"additionalContext": context} if is_loaded else {}

    def turn(self) -> None:
        text = [{"type": "text", "text": "%say hi"}]
        self._talk.ask("turn/start", {"threadId": self._thread_id, "input": text, **self._extras})
        while self._talk.read().get("method") != "turn/completed":
            pass

    def hang_up(self) -> None:
        self._talk.hang_up()


class McpTurns:
    """A client of one of our MCP servers."""

    def __init__(self, server: Server) -> None:
        self._talk = Talk(server)
        self._talk.greet()
        first = self._talk.call("codex", {"prompt": "%say hi"})
        self._thread_id: str = first["structuredContent"]["threadId"]

    def turn(self) -> None:
        self._talk.call("codex-reply", {"threadId": self._thread_id, "prompt": "%say hi"})

    def hang_up(self) -> None:
        self._talk.hang_up()


async def _unused(caller: Caller, arguments: Any) -> ToolResult:
    raise AssertionError("the script calls no tool")


def measure(rounds: int, rig: Rig) -> dict[str, list[float]]:
    ours = servers(rig)
    raw = Server("raw", (rig.codex, "app-server"), ours[MCP].environment, str(rig.work))
    sides: dict[str, RawTurns | McpTurns] = {
        BARE: RawTurns(raw, raw.cwd, is_loaded=False),
        LOADED: RawTurns(raw, raw.cwd, is_loaded=True),
        DROP_IN: McpTurns(ours[DROP_IN]),
        MCP: McpTurns(ours[MCP]),
    }
    took: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for number in range(WARM_UP + rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            before = time.perf_counter()
            sides[name].turn()
            if number >= WARM_UP:
                took[name].append((time.perf_counter() - before) * 1e3)
    for side in sides.values():
        side.hang_up()
    return took


if __name__ == "__main__":
    import os

    rounds, codex, work, home = sys.argv[1:]
    tell(measure(int(rounds), Rig(codex, Path(home), Path(work), dict(os.environ))))
