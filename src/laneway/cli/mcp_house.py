"""What `laneway mcp` stands on, opened when the first client has been greeted."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from laneway.base.clock import LoopClock
from laneway.base.errors import SessionUnknown, UsageError
from laneway.base.settings import Settings
from laneway.cli.compose import Ground, ground, raw_events, script
from laneway.cli.kept import store_of
from laneway.cli.local_door import local_door
from laneway.cli.mailroom import Mailroom
from laneway.cli.mcp import config_of, front_of
from laneway.codex.engine import CodexEngine
from laneway.core.briefing import briefer, working_folder
from laneway.core.colleagues import Colleagues
from laneway.core.hub import Limits, unequipped
from laneway.core.identities import MayTake, anybody
from laneway.core.opening import Budget
from laneway.core.ports import Clock
from laneway.core.session import Timing
from laneway.core.tools import ToolBox
from laneway.doors.mcp.desk import Desk
from laneway.doors.mcp.mail_shelf import Shelves
from laneway.doors.mcp.names import CODEX, Names
from laneway.doors.mcp.offers import offers
from laneway.doors.mcp.office import Office
from laneway.doors.mcp.presets import House, Preset, narrowing
from laneway.doors.mcp.server import Resources, Server
from laneway.doors.mcp.stdio import Behind
from laneway.doors.mcp.transcripts import Transcripts
from laneway.store.records import StoreRecords


@asynccontextmanager
async def opened(options: argparse.Namespace, settings: Settings, names: Names) -> AsyncIterator[Behind]:
    """The server with everything that it stands on; nothing of Codex runs yet."""
    timing = Timing(
        turn_s=settings.request_timeout_secs,
        question_s=settings.approval_timeout_secs,
        retry_s=settings.retry_secs,
    )
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
                asks_login=True,
                tools=ToolBox(room.tools()) if room else None,
                equip=narrowing(
                    config_of(options),
                    is_read_only=options.readonly,
                    keys=settings.config_keys,
                    equip=room.equip if room else unequipped,
                ),
            )
        )
        if room is not None and base.state is not None:
            room.stay_in(base.state.parent)
        clock = LoopClock()
        may_take = room.may_take if room else anybody
        colleagues = await stack.enter_async_context(
            colleagues_of(options, settings, names, base, clock, may_take)
        )
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
        office = Office(colleagues, names, lambda who: {**(room.told() if room else {}), **desk.status(who)})
        info = front_of(settings, names).info
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
        server = Server(info, offered, resources=resources, news=news, beyond=beyond)
        yield Behind(server, colleagues.shutdown)


def colleagues_of(
    options: argparse.Namespace,
    settings: Settings,
    names: Names,
    base: Ground,
    clock: Clock,
    may_take: MayTake,
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
        may_take=may_take,
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
    """What holds for every session, by flag and setting; `cli.mcp` has checked that it can be had."""
    roles = {name: Preset(**msgspec.structs.asdict(role)) for name, role in settings.roles.items()}
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
        contents=settings.contents,
        config=config_of(options),
        roles=roles,
        role=options.role,
        is_read_only=options.readonly,
        config_keys=settings.config_keys,
        native=raw_events(settings.events),
    )
