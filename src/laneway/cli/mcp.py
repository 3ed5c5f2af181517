"""`laneway mcp`: Codex sessions with names as MCP tools. `atm-agent-mcp serve` is the same program."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from laneway import __version__
from laneway.base.clock import LoopClock
from laneway.base.errors import SessionUnknown, UsageError
from laneway.base.schema import TOOL_GROUPS
from laneway.base.settings import Settings
from laneway.cli.codex_flags import add_approval, add_config, add_model, add_sandbox, overrides
from laneway.cli.compose import Ground, ground, raw_events, script, settings_for
from laneway.cli.kept import store_of
from laneway.cli.local_door import local_door
from laneway.cli.mailroom import Mailroom
from laneway.cli.main import add_common
from laneway.codex.engine import CodexEngine
from laneway.core.briefing import briefer, working_folder
from laneway.core.colleagues import Colleagues
from laneway.core.hub import Limits, unequipped
from laneway.core.opening import Budget
from laneway.core.ports import Clock
from laneway.core.session import Timing
from laneway.core.tools import ToolBox
from laneway.doors.ending import EndSignals
from laneway.doors.mcp.desk import Desk
from laneway.doors.mcp.mail_shelf import Shelves
from laneway.doors.mcp.names import AGENTS, CODEX, Names
from laneway.doors.mcp.offers import offers
from laneway.doors.mcp.office import Office
from laneway.doors.mcp.presets import House, Preset
from laneway.doors.mcp.server import Resources, Server
from laneway.doors.mcp.stdio import serve_stdio
from laneway.doors.mcp.transcripts import Transcripts
from laneway.store.records import StoreRecords

EPILOG = """\
Sessions have names (identities), survive a restart, and are told on every turn who they are and
where. When the server ends, each is asked for a short summary of its work, which it is given back
when it is resumed: a model call of at most ten seconds (`summaries = false` leaves it out).

  laneway setup claude                     register it, and see that it works
  laneway mcp --tools codex                only `codex` and `codex-reply`
  laneway mcp --identity reviewer --readonly
  laneway mcp --resume                     go on with the latest session of this identity
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "An MCP server for many Codex sessions, on standard input and output or on HTTP."
    parser.epilog = EPILOG
    add_serving(parser)
    parser.set_defaults(run=lambda options: asyncio.run(serve(options, AGENTS)))


def add_serving(parser: argparse.ArgumentParser) -> None:
    """The flags of every name under which this server is started."""
    who = parser.add_argument_group("who")
    who.add_argument("--identity", metavar="NAME", help="the name of sessions that ask for none; claimed now")
    who.add_argument("--team", metavar="NAME", help="the team whose state is used")
    who.add_argument("--role", metavar="NAME", help="a preset of your configuration")
    who.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="the first `codex` call goes on with this session, or with the latest of the identity",
    )
    how = parser.add_argument_group("how Codex works (what is not given stays as your config.toml says)")
    for add in (add_model, add_sandbox, add_approval, add_config):
        add(how)
    how.add_argument("--fast", action="store_true", help="take fast_model where nobody names a model")
    how.add_argument(
        "--readonly", "--explore", dest="readonly", action="store_true", help="no session may write"
    )
    how.add_argument(
        "--backend",
        choices=("app-server", "mcp-server"),
        metavar="WHICH",
        help="app-server (default), or mcp-server: the removed server of a Codex up to 0.153.4",
    )
    how.add_argument("--subagents", action="store_true", help="let Codex start agents of its own")
    bounds = parser.add_argument_group("bounds")
    bounds.add_argument(
        "--timeout", type=int, metavar="S", help="for one call (time for answers not counted)"
    )
    bounds.add_argument("--max-sessions", type=int, metavar="N", help="open at once")
    bounds.add_argument("--max-turns", type=int, metavar="N", help="for one session")
    bounds.add_argument("--max-tokens", type=int, metavar="N", help="for one session")
    shape = parser.add_argument_group("what clients get")
    shape.add_argument(
        "--tools", type=_groups, metavar="GROUPS", help=f"of {','.join(TOOL_GROUPS)} (default: all)"
    )
    shape.add_argument(
        "--events", choices=("full", "compact", "off"), metavar="HOW", help="full, compact, off"
    )
    shape.add_argument(
        "--unattended",
        choices=("decline", "park"),
        metavar="WHAT",
        help="of questions nobody can be asked: decline, or park for agent_answer",
    )
    web = parser.add_argument_group("on HTTP, for several clients (needs laneway[http])")
    web.add_argument(
        "--http", metavar="HOST:PORT", help="serve Streamable HTTP there instead; 0 picks a port"
    )
    web.add_argument("--http-remote", action="store_true", help="allow an address that others can reach")
    for flag, what in (("--http-host", "name in the Host header"), ("--http-origin", "Origin of a web page")):
        web.add_argument(flag, action="append", default=[], metavar="NAME", help=f"allow this {what}, too")
    add_common(parser, has_json=False)


def _groups(said: str) -> list[str]:
    return [piece.strip() for piece in said.split(",")]


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
    async with opened(options, settings, names) as (server, colleagues):
        if options.http is None:
            await serve_stdio(server, colleagues.shutdown)
        else:
            await serve_web(options, settings, server, colleagues)
    return 0


async def serve_web(
    options: argparse.Namespace, settings: Settings, server: Server, colleagues: Colleagues
) -> None:
    """Until a signal. The token is the user's, or made for this run and told once, to the terminal."""
    # Not paid for on standard input and output.
    from laneway.doors.gate import new_token
    from laneway.doors.listening import address
    from laneway.doors.mcp.http import serve_http

    host, port = address(options.http, "--http")
    token = settings.http_token or new_token()

    def tell(url: str) -> None:
        print(f"laneway: serving MCP on {url}", file=sys.stderr)
        if settings.http_token is None:
            print(f"laneway: bearer token (for this run): {token}", file=sys.stderr)
        sys.stderr.flush()

    stop = asyncio.Event()
    with EndSignals(stop):
        await serve_http(
            server,
            host=host,
            port=port,
            tokens=[token],
            stop=stop,
            on_ready=tell,
            shutdown=colleagues.shutdown,
            may_leave_machine=options.http_remote,
            hosts=tuple(options.http_host),
            origins=tuple(options.http_origin),
        )


@asynccontextmanager
async def opened(
    options: argparse.Namespace, settings: Settings, names: Names
) -> AsyncIterator[tuple[Server, Colleagues]]:
    """The server with everything that it stands on; nothing of Codex runs yet."""
    timing = Timing(turn_s=settings.request_timeout_secs, question_s=settings.approval_timeout_secs)
    limits = Limits(sessions=settings.max_concurrent_threads)
    room = mailroom(settings)
    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(
            ground(
                options,
                timing,
                settings,
                limits,
                briefer(settings.team),
                settings.transport,
                tools=ToolBox(room.tools()) if room else None,
                equip=room.equip if room else unequipped,
            )
        )
        if room is not None and base.state is not None:
            room.stay_in(base.state.parent)
        clock = LoopClock()
        colleagues = await stack.enter_async_context(colleagues_of(options, settings, names, base, clock))
        if options.identity is not None:
            await colleagues.reserve(settings.identity)
        resume = await to_resume(options, settings, colleagues)
        here = base.work or Path.cwd()
        house = house_of(options, settings, here)
        desk = Desk(
            colleagues,
            clock,
            house,
            names,
            script(settings.events, settings.transport),
            unattended="park" if settings.unattended == "park" else "decline",
            resume=resume,
            on_auto_mail=room.set_auto if room else None,
        )
        office = Office(colleagues, names, room.told if room else dict)
        info = {"name": names.server, "title": names.title, "version": __version__}
        offered = offers(names, desk, office, settings.tools)
        door = await stack.enter_async_context(local_door(colleagues, guests=room.welcome if room else None))
        resources: Resources = Transcripts(colleagues)
        if room is not None:
            room.open(colleagues, names, door)
            offered += room.offers()
            resources = Shelves(laneway=resources, mail=room.shelf)
            await stack.enter_async_context(room.delivering(settings, clock))
        if names is CODEX:
            await base.engine.link()  # the older seed's child is there from the start
        # What we do not serve ourselves is passed on to a child that speaks MCP.
        beyond = None if isinstance(base.engine, CodexEngine) else base.engine
        news = room.news if room else None
        yield Server(info, offered, resources=resources, news=news, beyond=beyond), colleagues


def colleagues_of(
    options: argparse.Namespace, settings: Settings, names: Names, base: Ground, clock: Clock
) -> Colleagues:
    """The sessions, kept and bounded as the settings say."""
    return Colleagues(
        base.hub,
        StoreRecords(store_of(settings, is_flat=names is CODEX, root=base.state)),
        clock,
        default_identity=settings.identity,
        budget=Budget(max_turns=settings.max_turns, max_tokens=settings.max_tokens),
        summaries=settings.summaries,
        persist=settings.persist_threads,
        restart="never" if options.http is None else "reported",
    )


def mailroom(settings: Settings) -> Mailroom | None:
    """Mail, unless its group of tools is left out."""
    if "mail" not in settings.tools:
        return None
    said = settings.team if settings.source("team").kind != "default" else None
    return Mailroom(said, takes_tools=settings.transport != "mcp-server")


async def to_resume(options: argparse.Namespace, settings: Settings, colleagues: Colleagues) -> str | None:
    """The session that `--resume` means. Asked for and not there is said now, not at the first call."""
    if options.resume is None:
        return None
    try:
        if options.resume:
            return (await colleagues.lookup(agent_id=options.resume)).agent_id
        return (await colleagues.lookup(identity=settings.identity)).agent_id
    except SessionUnknown as unknown:
        who = options.resume or f"of {settings.identity}"
        raise UsageError(f"There is no session {who} to resume: see `laneway sessions`.") from unknown


def house_of(options: argparse.Namespace, settings: Settings, here: Path) -> House:
    """What holds for every session, by flag and setting."""
    config = overrides(options.config)
    if options.subagents:
        config.setdefault("features.multi_agent", True)
    if options.fast and not settings.fast_model:
        raise UsageError("--fast takes the model that fast_model names, and no setting names one.")
    roles = {name: Preset(**msgspec.structs.asdict(role)) for name, role in settings.roles.items()}
    if options.role and options.role not in roles:
        raise UsageError(
            f"There is no role {options.role} (there are: {', '.join(sorted(roles)) or 'none'})."
        )
    return House(
        cwd=working_folder(None, here),
        here=here,
        model=settings.model,
        fast_model=settings.fast_model if options.fast else None,
        sandbox=settings.sandbox,
        approval_policy=settings.approval_policy,
        reasoning_effort=settings.reasoning_effort,
        base_prompt_file=settings.base_prompt_file,
        extra_instructions_file=settings.extra_instructions_file,
        config=config,
        roles=roles,
        role=options.role,
        is_read_only=options.readonly,
        native=raw_events(settings.events),
    )
