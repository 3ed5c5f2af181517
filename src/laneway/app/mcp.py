"""`laneway mcp` as a running program: engine, hub, named sessions, mail and MCP server, joined.

Opened when the first client has been answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway.app.jobs import BackgroundJobs
from laneway.app.local_socket import local_socket
from laneway.app.mail import TeamMail
from laneway.app.options import McpOptions, tool_groups
from laneway.app.runtime import Runtime, open_runtime, raw_events, script
from laneway.app.stores import store_of
from laneway.base.clock import LoopClock
from laneway.base.engines import DEFAULT_BACKEND
from laneway.base.errors import SessionUnknown, UsageError
from laneway.base.settings import Settings
from laneway.codex import config_keys
from laneway.codex.engine import CodexEngine
from laneway.core.hub import Limits, unequipped
from laneway.core.named.briefing import briefer, working_folder
from laneway.core.named.identities import allow_all
from laneway.core.named.opening import Budget
from laneway.core.named.sessions import NamedSessions
from laneway.core.session import Timing
from laneway.core.tools import ToolBox
from laneway.doors.mcp.admin_tools import AdminTools
from laneway.doors.mcp.definitions import server_info
from laneway.doors.mcp.mail_resources import ResourcesByScheme
from laneway.doors.mcp.names import CODEX, Names
from laneway.doors.mcp.offers import offers
from laneway.doors.mcp.presets import Preset, SessionDefaults
from laneway.doors.mcp.server import McpServer, Offer, Resources
from laneway.doors.mcp.session_tools import SessionTools
from laneway.doors.mcp.stdio import OpenServer
from laneway.doors.mcp.transcripts import Transcripts
from laneway.store.records import StoreRecords


@asynccontextmanager
async def opened(options: McpOptions, settings: Settings, names: Names) -> AsyncIterator[OpenServer]:
    """The MCP server with everything that it needs; Codex does not run yet."""
    parts = _Parts(options, settings, names)
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(parts.runtime())
        sessions = await stack.enter_async_context(parts.sessions(runtime))
        if options.claims_identity:
            await sessions.reserve(settings.identity)
        resume = await to_resume(options, settings, sessions)
        cwd = runtime.work or Path.cwd()
        offered_tools = parts.session_offers(sessions, cwd, resume)
        resources = await stack.enter_async_context(parts.mail_running(sessions))
        if parts.mail is not None:
            offered_tools += parts.mail.offers()
        jobs = parts.jobs(runtime, cwd)
        if jobs is not None:
            offered_tools = jobs.joined(offered_tools)
            resources["docs"] = jobs.instructions
            await stack.enter_async_context(jobs.running())
        if names is CODEX:
            await runtime.engine.link()  # the older program `codex-mcp` starts Codex at once
        yield OpenServer(parts.server(runtime, offered_tools, resources, jobs), sessions.shutdown)


class _Parts:
    """The parts of one MCP server, each made from the same flags and settings."""

    def __init__(self, options: McpOptions, settings: Settings, names: Names) -> None:
        self._options = options
        self._settings = settings
        self._names = names
        self._groups = tool_groups(settings)
        self._clock = LoopClock()
        self.mail = mail_for(settings)

    @asynccontextmanager
    async def runtime(self) -> AsyncIterator[Runtime]:
        """Engine and hub, whose threads have the tools and the limits of the settings."""
        settings, mail = self._settings, self.mail
        equip = config_keys.narrowing(
            self._options.config,
            is_read_only=self._options.is_read_only,
            keys=settings.config_keys,
            equip=mail.equip if mail else unequipped,
        )
        timing = Timing(
            turn_s=settings.request_timeout_secs,
            question_s=settings.approval_timeout_secs,
            retry_s=settings.retry_secs,
        )
        async with open_runtime(
            self._options.codex,
            timing,
            Limits(sessions=settings.max_concurrent_threads),
            briefer(settings.team),
            settings.transport,
            asks_login=True,
            claude=self._options.claude,
            may_lack_codex=settings.engine != DEFAULT_BACKEND,
            tools=ToolBox(mail.tools()) if mail else None,
            equip=equip,
        ) as runtime:
            if mail is not None and runtime.state is not None:
                mail.stay_in(runtime.state.parent)
            yield runtime

    def sessions(self, runtime: Runtime) -> NamedSessions:
        """The named sessions, with store and limits as the settings say."""
        settings = self._settings
        return NamedSessions(
            runtime.hub,
            StoreRecords(store_of(settings, is_flat=self._names is CODEX, root=runtime.state)),
            self._clock,
            default_identity=settings.identity,
            budget=Budget(max_turns=settings.max_turns, max_tokens=settings.max_tokens),
            summaries=settings.summaries,
            persist=settings.persist_threads,
            restart="never" if not self._options.serves_http else "reported",
            may_take=self.mail.may_take if self.mail else allow_all,
        )

    def session_offers(self, sessions: NamedSessions, cwd: Path, resume: str | None) -> list[Offer]:
        """The tools that run and administer sessions."""
        settings, mail = self._settings, self.mail
        session_tools = SessionTools(
            sessions,
            self._clock,
            defaults_for(self._options, settings, cwd),
            self._names,
            script(settings.events, settings.transport),
            unattended="park" if settings.unattended == "park" else "decline",
            resume=resume,
            on_auto_mail=mail.set_auto if mail else None,
        )

        def status(principal: str) -> dict[str, Any]:
            return {**(mail.status() if mail else {}), **session_tools.status(principal)}

        admin_tools = AdminTools(sessions, self._names, status)
        return offers(self._names, session_tools, admin_tools, self._groups, self._options.backends)

    @asynccontextmanager
    async def mail_running(self, sessions: NamedSessions) -> AsyncIterator[dict[str, Resources]]:
        """Deliver mail as turns and serve the local socket while the block runs.

        Gives the resources of clients by their scheme: transcripts and unread mail.
        """
        mail, transcripts = self.mail, Transcripts(sessions)
        async with local_socket(
            sessions, open_bridge=mail.serve_bridge if mail else None, door="mcp"
        ) as local_server:
            if mail is None:
                yield {"laneway": transcripts}
                return
            mail.open(sessions, self._names, local_server)
            async with mail.delivering(self._settings, self._clock):
                yield {"laneway": transcripts, "mail": mail.resources}

    def jobs(self, runtime: Runtime, cwd: Path) -> BackgroundJobs | None:
        """Background jobs, unless their group of tools is left out."""
        if "jobs" not in self._groups:
            return None
        return BackgroundJobs(
            self._settings,
            self._options.codex,
            self._clock,
            cwd=cwd,
            codex_home=runtime.codex_home,
            state=runtime.state,
            is_read_only=self._options.is_read_only,
        )

    def server(
        self,
        runtime: Runtime,
        offered_tools: list[Offer],
        resources: dict[str, Resources],
        jobs: BackgroundJobs | None,
    ) -> McpServer:
        # Methods that we do not serve ourselves are passed on to a Codex that speaks MCP.
        mcp_engine = None if isinstance(runtime.engine, CodexEngine) else runtime.engine
        return McpServer(
            server_info(self._names, self._groups).info,
            offered_tools,
            resources=ResourcesByScheme(**resources),
            prompts=jobs.instructions if jobs is not None else None,
            subscriptions=self.mail.subscriptions if self.mail else None,
            fallback=mcp_engine,
            tasks=jobs.tasks if jobs is not None else None,
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
