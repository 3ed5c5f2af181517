"""`laneway mcp` as a running program: engine, hub, named sessions, mail and MCP server, joined.

Opened when the first client has been answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from laneway.app import engines
from laneway.app.jobs import BackgroundJobs
from laneway.app.local_socket import local_socket
from laneway.app.mail import TeamMail
from laneway.app.options import McpOptions, tool_groups
from laneway.app.runtime import Runtime, open_runtime, raw_events, script
from laneway.app.stores import store_of
from laneway.base.clock import LoopClock
from laneway.base.errors import SessionUnknown, UsageError
from laneway.base.settings import Settings
from laneway.codex import config_keys
from laneway.codex.engine import CodexEngine
from laneway.core.hub import Limits, unequipped
from laneway.core.named.briefing import briefer, working_folder
from laneway.core.named.identities import MayTake, allow_all
from laneway.core.named.opening import Budget
from laneway.core.named.sessions import NamedSessions
from laneway.core.ports import Clock
from laneway.core.session import Timing
from laneway.core.tools import ToolBox
from laneway.doors.mcp.admin_tools import AdminTools
from laneway.doors.mcp.definitions import server_info
from laneway.doors.mcp.mail_resources import ResourcesByScheme
from laneway.doors.mcp.names import CODEX, Names
from laneway.doors.mcp.offers import offers
from laneway.doors.mcp.presets import Preset, SessionDefaults
from laneway.doors.mcp.server import McpServer, Resources
from laneway.doors.mcp.session_tools import SessionTools
from laneway.doors.mcp.stdio import OpenServer
from laneway.doors.mcp.transcripts import Transcripts
from laneway.store.records import StoreRecords


@asynccontextmanager
async def opened(options: McpOptions, settings: Settings, names: Names) -> AsyncIterator[OpenServer]:
    """The MCP server with everything that it needs; Codex does not run yet."""
    groups = tool_groups(settings)
    timing = Timing(
        turn_s=settings.request_timeout_secs,
        question_s=settings.approval_timeout_secs,
        retry_s=settings.retry_secs,
    )
    limits = Limits(sessions=settings.max_concurrent_threads)
    team_mail = mail_for(settings)
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(
            open_runtime(
                options.codex,
                timing,
                limits,
                briefer(settings.team),
                settings.transport,
                asks_login=True,
                others=engines.others(),
                tools=ToolBox(team_mail.tools()) if team_mail else None,
                equip=config_keys.narrowing(
                    options.config,
                    is_read_only=options.is_read_only,
                    keys=settings.config_keys,
                    equip=team_mail.equip if team_mail else unequipped,
                ),
            )
        )
        if team_mail is not None and runtime.state is not None:
            team_mail.stay_in(runtime.state.parent)
        clock = LoopClock()
        may_take = team_mail.may_take if team_mail else allow_all
        sessions = await stack.enter_async_context(
            sessions_for(options, settings, names, runtime, clock, may_take)
        )
        if options.claims_identity:
            await sessions.reserve(settings.identity)
        resume = await to_resume(options, settings, sessions)
        cwd = runtime.work or Path.cwd()
        defaults = defaults_for(options, settings, cwd)
        session_tools = SessionTools(
            sessions,
            clock,
            defaults,
            names,
            script(settings.events, settings.transport),
            unattended="park" if settings.unattended == "park" else "decline",
            resume=resume,
            on_auto_mail=team_mail.set_auto if team_mail else None,
        )
        admin_tools = AdminTools(
            sessions,
            names,
            lambda principal: {
                **(team_mail.status() if team_mail else {}),
                **session_tools.status(principal),
            },
        )
        offered_tools = offers(names, session_tools, admin_tools, groups, options.backends)
        local_server = await stack.enter_async_context(
            local_socket(sessions, open_bridge=team_mail.serve_bridge if team_mail else None)
        )
        resources: Resources = Transcripts(sessions)
        jobs = None
        if "jobs" in groups:
            jobs = BackgroundJobs(
                settings,
                options.codex,
                clock,
                cwd=cwd,
                codex_home=runtime.codex_home,
                state=runtime.state,
                is_read_only=options.is_read_only,
            )
        if team_mail is not None:
            team_mail.open(sessions, names, local_server)
            offered_tools += team_mail.offers()
            resources = ResourcesByScheme(laneway=resources, mail=team_mail.resources)
            await stack.enter_async_context(team_mail.delivering(settings, clock))
        if jobs is not None:
            offered_tools = jobs.joined(offered_tools)
            await stack.enter_async_context(jobs.running())
        if names is CODEX:
            await runtime.engine.link()  # the older program `codex-mcp` starts Codex at once
        # Methods that we do not serve ourselves are passed on to a Codex that speaks MCP.
        mcp_engine = None if isinstance(runtime.engine, CodexEngine) else runtime.engine
        subscriptions = team_mail.subscriptions if team_mail else None
        info = server_info(names, groups).info
        server = McpServer(
            info,
            offered_tools,
            resources=resources,
            subscriptions=subscriptions,
            fallback=mcp_engine,
            tasks=jobs.tasks if jobs is not None else None,
        )
        yield OpenServer(server, sessions.shutdown)


def sessions_for(
    options: McpOptions,
    settings: Settings,
    names: Names,
    runtime: Runtime,
    clock: Clock,
    may_take: MayTake,
) -> NamedSessions:
    """The named sessions, with store and limits as the settings say."""
    return NamedSessions(
        runtime.hub,
        StoreRecords(store_of(settings, is_flat=names is CODEX, root=runtime.state)),
        clock,
        default_identity=settings.identity,
        budget=Budget(max_turns=settings.max_turns, max_tokens=settings.max_tokens),
        summaries=settings.summaries,
        persist=settings.persist_threads,
        restart="never" if not options.serves_http else "reported",
        may_take=may_take,
    )


def mail_for(settings: Settings) -> TeamMail | None:
    """Team mail, unless its group of tools is left out."""
    if "mail" not in settings.tools:
        return None
    team_setting = settings.team if settings.source("team").kind != "default" else None
    return TeamMail(team_setting, takes_tools=settings.transport != "mcp-server")


async def to_resume(options: McpOptions, settings: Settings, sessions: NamedSessions) -> str | None:
    """The session that `--resume` names. `UsageError` at start-up if there is none, not at the first call."""
    if options.resume is None:
        return None
    try:
        if options.resume:
            return (await sessions.lookup(agent_id=options.resume)).agent_id
        return (await sessions.lookup(identity=settings.identity)).agent_id
    except SessionUnknown as unknown:
        requested = options.resume or f"of {settings.identity}"
        raise UsageError(f"There is no session {requested} to resume: see `laneway sessions`.") from unknown


def defaults_for(options: McpOptions, settings: Settings, cwd: Path) -> SessionDefaults:
    """Defaults of every session, from flags and settings; the command line has been checked."""
    roles = {name: Preset(**msgspec.structs.asdict(role)) for name, role in settings.roles.items()}
    return SessionDefaults(
        cwd=working_folder(None, cwd),
        base_dir=cwd,
        model=settings.model,
        fast_model=settings.fast_model if options.is_fast else None,
        sandbox=settings.sandbox,
        approval_policy=settings.approval_policy,
        reasoning_effort=settings.reasoning_effort,
        base_prompt_file=settings.base_prompt_file,
        extra_instructions_file=settings.extra_instructions_file,
        contents=settings.contents,
        config=options.config,
        roles=roles,
        role=options.role,
        is_read_only=options.is_read_only,
        config_keys=settings.config_keys,
        rules=config_keys,
        native=raw_events(settings.events),
        backend=settings.engine,
    )
