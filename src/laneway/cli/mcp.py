"""`laneway mcp`: Codex sessions with names as MCP tools. `atm-agent-mcp serve` is the same program.

Greets first: what a greeting does not need is loaded while the client reads it.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from laneway import __version__
from laneway.base.errors import UsageError
from laneway.base.schema import FUTURE_TOOL_GROUPS, TOOL_GROUPS
from laneway.base.settings import Settings
from laneway.cli import early
from laneway.cli.chosen import settings_for
from laneway.cli.codex_flags import add_approval, add_config, add_model, add_sandbox, overrides
from laneway.cli.main import add_common
from laneway.cli.waiting import say_waiting
from laneway.codex import locate
from laneway.codex.overrides import merged
from laneway.doors.mcp.definitions import definitions
from laneway.doors.mcp.front import Front
from laneway.doors.mcp.names import AGENTS, CODEX, Names
from laneway.doors.mcp.stdio import Behind, serve_stdio

EPILOG = """\
Sessions have names (identities) and survive a restart. On every turn the model is given its name,
team, repository, branch and folder. When the server shuts down, each session is asked for a short
summary of its work, which it gets back when it is resumed: a model call of at most ten seconds
(`summaries = false` turns it off).

  laneway setup claude                     register it, and check that it works
  laneway mcp --tools codex                only `codex` and `codex-reply`
  laneway mcp --identity reviewer --readonly
  laneway mcp --resume                     continue the latest session of this identity
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "An MCP server for named Codex sessions, on standard input and output or over HTTP."
    parser.epilog = EPILOG
    add_serving(parser)
    parser.set_defaults(run=lambda options: asyncio.run(serve(options, AGENTS)))


def add_serving(parser: argparse.ArgumentParser) -> None:
    """The flags of every name under which this server is started."""
    who = parser.add_argument_group("who")
    who.add_argument(
        "--identity", metavar="NAME", help="name of sessions that ask for none; claimed at start"
    )
    who.add_argument("--team", metavar="NAME", help="the team whose sessions and mail are used")
    who.add_argument("--role", metavar="NAME", help="a preset from your settings")
    who.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="the first `codex` call continues this session, or the latest of the identity",
    )
    how = parser.add_argument_group("how Codex works (anything not given is left to your config.toml)")
    for add in (add_model, add_sandbox, add_approval, add_config):
        add(how)
    how.add_argument("--fast", action="store_true", help="use fast_model wherever no model is named")
    how.add_argument(
        "--readonly",
        "--explore",
        dest="readonly",
        action="store_true",
        help="no session may write, and no call may start programs through its config",
    )
    how.add_argument(
        "--backend",
        choices=("app-server", "mcp-server"),
        metavar="WHICH",
        help="app-server (default), or mcp-server: the removed server of a Codex up to 0.153.4",
    )
    how.add_argument("--subagents", action="store_true", help="let Codex start agents of its own")
    bounds = parser.add_argument_group("limits")
    bounds.add_argument(
        "--timeout", type=int, metavar="S", help="for one call, not counting time spent on questions"
    )
    bounds.add_argument("--max-sessions", type=int, metavar="N", help="sessions open at once")
    bounds.add_argument("--max-turns", type=int, metavar="N", help="turns per session")
    bounds.add_argument("--max-tokens", type=int, metavar="N", help="tokens per session")
    shape = parser.add_argument_group("what clients get")
    shape.add_argument(
        "--tools", type=_groups, metavar="GROUPS", help=f"any of {','.join(TOOL_GROUPS)} (default: all)"
    )
    shape.add_argument(
        "--events", choices=("full", "compact", "off"), metavar="HOW", help="full, compact, off"
    )
    shape.add_argument(
        "--unattended",
        choices=("decline", "park"),
        metavar="WHAT",
        help="if nobody can be asked: decline, or park the question for agent_answer",
    )
    web = parser.add_argument_group("on HTTP, for several clients (needs the package uvicorn)")
    web.add_argument(
        "--http", metavar="HOST:PORT", help="serve Streamable HTTP at this address instead; port 0 picks one"
    )
    web.add_argument(
        "--http-remote", action="store_true", help="allow an address that other machines can reach"
    )
    for flag, what in (("--http-host", "name in the Host header"), ("--http-origin", "Origin of a web page")):
        web.add_argument(flag, action="append", default=[], metavar="NAME", help=f"also allow this {what}")
    add_common(parser, has_json=False)


def _groups(said: str) -> list[str]:
    groups = [piece.strip() for piece in said.split(",")]
    for group in FUTURE_TOOL_GROUPS:
        if group in groups:
            raise argparse.ArgumentTypeError(
                f"there are no {group} tools yet: choose from {', '.join(TOOL_GROUPS)}"
            )
    return groups


def settings_of(options: argparse.Namespace, folder: Path) -> Settings:
    return settings_for(
        options,
        folder,
        model=options.model,
        sandbox=options.sandbox,
        approval_policy=options.approval,
        identity=options.identity,
        team=options.team,
        request_timeout_secs=options.timeout,
        max_concurrent_threads=options.max_sessions,
        max_turns=options.max_turns,
        max_tokens=options.max_tokens,
        tools=options.tools,
        events=options.events,
        unattended=options.unattended,
        transport=options.backend,
    )


async def serve(options: argparse.Namespace, names: Names) -> int:
    settings = settings_of(options, Path.cwd())
    check(options, settings)
    open_house = partial(opened, options, settings, names)
    if options.http is None:
        # What was asked for at start-up, and may not be had, is told before anybody is greeted.
        opens_first = (
            options.identity is not None
            or options.resume is not None
            or settings.transport == "mcp-server"
            or names is CODEX
        )
        say_waiting("MCP server", "laneway setup claude")
        await serve_stdio(front_of(settings, names), open_house, opens_first=opens_first)
    else:
        async with open_house() as behind:
            await serve_web(options, settings, behind)
    return 0


def check(options: argparse.Namespace, settings: Settings) -> None:
    """Say now what would keep the house from opening, where that is seen from here."""
    locate.find(options.codex_bin, configured=settings.codex_bin)
    config_of(options)
    if options.fast and not settings.fast_model:
        raise UsageError(
            "--fast uses the model in fast_model, which is not set: set it, or leave out --fast."
        )
    if options.role and options.role not in settings.roles:
        known = ", ".join(sorted(settings.roles)) or "none"
        raise UsageError(f"There is no role {options.role} (there are: {known}).")


def config_of(options: argparse.Namespace) -> dict[str, Any]:
    """What the command line asks of Codex's config, for every thread."""
    subagents = {"features": {"multi_agent": True}} if options.subagents else {}
    return merged(subagents, overrides(options.config))


def front_of(settings: Settings, names: Names) -> Front:
    """What clients are told before there is anybody to do it."""
    return Front(
        info={"name": names.server, "title": names.title, "version": __version__},
        tools=tuple(definitions(names, settings.tools)),
        has_resources=True,
        has_news="mail" in settings.tools,
    )


@asynccontextmanager
async def opened(options: argparse.Namespace, settings: Settings, names: Names) -> AsyncIterator[Behind]:
    """The house, loaded first: clients are served meanwhile."""
    await early.load("laneway.cli.mcp_house")
    from laneway.cli import mcp_house

    async with mcp_house.opened(options, settings, names) as behind:
        yield behind


async def serve_web(options: argparse.Namespace, settings: Settings, behind: Behind) -> None:
    """Until a signal."""
    # Not paid for on standard input and output.
    from laneway.cli.web import web
    from laneway.doors.ending import EndSignals
    from laneway.doors.mcp.http import serve_http

    place = web("MCP", "--http", options.http, settings.http_token)
    stop = asyncio.Event()
    with EndSignals(stop):
        await serve_http(
            behind.server,
            **place._asdict(),
            stop=stop,
            shutdown=behind.shutdown,
            may_leave_machine=options.http_remote,
            hosts=tuple(options.http_host),
            origins=tuple(options.http_origin),
        )
