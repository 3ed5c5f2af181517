"""The programs `atm-agent-mcp` and `codex-mcp`: `laneway mcp` under the names of its predecessors.

Their commands, tools and folders are those of the original specifications, so that configs written
for them still work.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
from collections.abc import Callable, Sequence
from functools import partial

from laneway.cli.main import EXIT_CODES, run

Configure = Callable[[argparse.ArgumentParser], None]

OTHERS = {
    "config": ("laneway.cli.config", "every setting, where it comes from, and whom you trust"),
    "sessions": ("laneway.cli.sessions", "the sessions that are kept, and their pruning"),
    "summary": ("laneway.cli.summary", "what a session that ended said of itself"),
}


def atm_agent_mcp(argv: Sequence[str] | None = None) -> int:
    """Run `atm-agent-mcp serve|config|sessions|summary`."""
    return _run("atm-agent-mcp", argv, is_flat=False, renamed={})


def codex_mcp(argv: Sequence[str] | None = None) -> int:
    """Run `codex-mcp serve|config|threads|summary`: its own tool names and folder; Codex starts at once."""
    return _run("codex-mcp", argv, is_flat=True, renamed={"sessions": "threads"})


def _run(program: str, argv: Sequence[str] | None, *, is_flat: bool, renamed: dict[str, str]) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog=program,
        description="Codex sessions as MCP tools: the same program as `laneway mcp`, by its older name.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add(commands, "serve", "serve MCP clients", partial(_serving, is_flat=is_flat), arguments)
    for name, (module, summary) in OTHERS.items():
        _add(commands, renamed.get(name, name), summary, partial(_other, module, is_flat), arguments)
    return run(parser.parse_args(arguments))


def _add(commands: object, name: str, summary: str, configure: Configure, arguments: list[str]) -> None:
    assert isinstance(commands, argparse._SubParsersAction)
    command = commands.add_parser(name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter)
    if name in arguments:
        configure(command)


def _serving(parser: argparse.ArgumentParser, *, is_flat: bool) -> None:
    from laneway.cli import mcp
    from laneway.doors.mcp.names import AGENTS, CODEX

    mcp.add_serving(parser)
    names = CODEX if is_flat else AGENTS
    parser.set_defaults(run=lambda options: asyncio.run(mcp.serve(options, names)))


def _other(module: str, is_flat: bool, parser: argparse.ArgumentParser) -> None:
    importlib.import_module(module).configure(parser)
    parser.set_defaults(is_flat=is_flat)
