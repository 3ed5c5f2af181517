"""Team mail for an MCP server: tools for clients and sessions, resources, subscriptions, delivery as turns.

Joins `laneway.mail` with the front ends. The mail modules are loaded when they are first needed: a
server that is only asked for its list of tools starts without them.

    mail = TeamMail(team_setting)
    Hub(…, tools=ToolBox(mail.tools()), equip=mail.equip)      threads have the tools
    NamedSessions(…, may_take=mail.may_take)                   no session has a teammate's name
    local_socket(sessions, open_bridge=mail.serve_bridge)      threads that only a bridge reaches
    mail.open(sessions, names, local_server)                   before the first session
    McpServer(…, mail.offers(), mail.resources, mail.subscriptions)     clients have the tools, too
    async with mail.delivering(settings, clock):               mail becomes turns
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from laneway import __version__
from laneway.app.inbox_poller import InboxPoller
from laneway.base.errors import MemberForeign, StoreError
from laneway.base.settings import Settings
from laneway.codex import mcp_entry
from laneway.core.background import TaskSet
from laneway.core.named.session import NamedSession
from laneway.core.named.sessions import NamedSessions
from laneway.core.overrides import merged
from laneway.core.ports import Clock, ThreadSpec
from laneway.core.tools import Caller, Tool, ToolResult
from laneway.doors.local.bridge_keys import BRIDGE, KEY_VARIABLE, SOCKET_VARIABLE, BridgeKeys, Serve
from laneway.doors.local.server import LocalServer
from laneway.doors.mcp.acting_identity import ActingIdentity
from laneway.doors.mcp.codes import SESSION_CLOSED, proxy_error
from laneway.doors.mcp.mail_resources import MailResources
from laneway.doors.mcp.names import Names
from laneway.doors.mcp.server import Call, Connection, McpServer, Offer
from laneway.doors.mcp.subscriptions import Subscriptions
from laneway.doors.mcp.tool_offers import BoundCaller, offers_of
from laneway.mail.tool_schemas import ALL, NAMES
from laneway.wire.peer import Peer, Raw

if TYPE_CHECKING:
    from laneway.mail.inbox import Inbox
    from laneway.mail.membership import Membership
    from laneway.mail.places import Places
    from laneway.mail.post import Post
    from laneway.mail.postman import Postman
    from laneway.mail.shared import NewMail
    from laneway.mail.tools import MailTools

log = logging.getLogger(__name__)

SERVER = "laneway_mail"
"""Name of the MCP server entry in a thread's config, and so part of the tools' names for models."""
METADATA = "x-codex-turn-metadata"
"""Field in which Codex names the calling thread to an MCP server: one of ours, or a subagent of it."""
MAX_ID_CHARS = 100


class LoadedMail(msgspec.Struct):
    """Places, post, membership and tools, once mail is loaded."""

    places: Places
    post: Post
    membership: Membership
    """Knows the current team: a Claude Code session can move to another."""
    tools: MailTools

    @property
    def team(self) -> str:
        return self.membership.team


class TeamMail:
    """The mail of one server process."""

    def __init__(
        self,
        team_setting: str | None,
        *,
        places: Callable[[], Places] | None = None,
        takes_tools: bool = True,
        python: str = sys.executable,
    ) -> None:
        """`team_setting` is the team that a flag, a variable or a config file names, if any.

        `takes_tools`: whether the engine gives threads dynamic tools.
        """
        self._team_setting = team_setting
        self._places = places
        self._takes_tools = takes_tools
        self._python = python
        self._keys = BridgeKeys()
        self._mail: LoadedMail | None = None
        self._local_server: LocalServer | None = None
        self.sessions: NamedSessions
        self.acting: ActingIdentity
        self.resources: MailResources
        self.subscriptions: Subscriptions
        self._switched: dict[str, bool] = {}
        self.postman: Postman | None = None
        """Set once the first session has opened."""

    def stay_in(self, folder: Path) -> None:
        """Keep teams and spool in this folder only, so that a rehearsal writes to no real team."""

        def places() -> Places:
            from laneway.mail.places import Places

            return Places.of({"ATM_HOME": str(folder)})

        self._places = places

    def open(self, sessions: NamedSessions, names: Names, local_server: LocalServer | None) -> None:
        """Called before the first session opens. Without a local server, mail reaches fewer threads."""
        self.sessions = sessions
        self._local_server = local_server
        self.acting = ActingIdentity(sessions, names, self._check)
        self.resources = MailResources(sessions, self.acting, lambda: self.mail.team, self._unread)
        self.subscriptions = Subscriptions(self.resources.may_hear, self.resources.may_subscribe)

    @property
    def mail(self) -> LoadedMail:
        """Loads mail on first use, in some milliseconds. `StoreError` if the teams cannot be read."""
        if self._mail is None:
            self._mail = self._load()
        return self._mail

    async def loaded(self) -> LoadedMail:
        """The same without blocking the event loop."""
        if self._mail is None:
            self._take(await asyncio.to_thread(self._load))
        return self.mail

    def _take(self, mail: LoadedMail) -> None:
        """Keep the first of several that were loaded at once."""
        self._mail = self._mail or mail

    def _load(self) -> LoadedMail:
        from laneway.mail.membership import Membership
        from laneway.mail.places import Places
        from laneway.mail.post import Post
        from laneway.mail.teams import mail_team
        from laneway.mail.tools import MailTools

        places = self._places() if self._places is not None else Places.of()
        post = Post(places)
        membership = Membership(places, mail_team(places, self._team_setting))
        return LoadedMail(
            places, post, membership, MailTools(places, post, lambda: membership.team, self._note)
        )

    # ── delivery as turns, and notifications ───────────────────────────────

    @asynccontextmanager
    async def delivering(self, settings: Settings, clock: Clock) -> AsyncIterator[None]:
        """Deliver mail as turns while the block runs, from the first session on."""
        session_opened, stopping = asyncio.Event(), asyncio.Event()

        def on_session(session: NamedSession, moment: str) -> None:
            session_opened.set()

        poll_s = settings.mail_poll_interval_ms / 1000
        tasks = TaskSet()
        self.sessions.listeners.append(on_session)
        delivering = tasks.spawn(self._deliver(settings, clock, session_opened, stopping), "mail")
        try:
            async with InboxPoller(
                self.subscriptions, self._unclaimed_identities, self._inbox, clock, poll_s
            ):
                yield
        finally:
            self.sessions.listeners.remove(on_session)
            stopping.set()
            if not session_opened.is_set():
                delivering.cancel()
            await tasks.wait()

    async def _deliver(
        self, settings: Settings, clock: Clock, session_opened: asyncio.Event, stopping: asyncio.Event
    ) -> None:
        await session_opened.wait()
        try:
            mail = await self.loaded()
        except StoreError as problem:
            log.warning("Mail is not delivered: %s", problem)
            return
        from laneway.mail.postman import Orders, Postman

        orders = Orders.of(settings)
        async with Postman(self.sessions, clock, mail.membership, mail.post, orders) as self.postman:
            self.postman.on_mail.append(self._tell)
            for agent_id, is_on in self._switched.items():
                self.postman.set_auto(agent_id, is_on=is_on)
            await stopping.wait()

    def set_auto(self, agent_id: str, is_on: bool) -> None:
        """Set whether mail may start turns of a session from now on; also before there is a postman."""
        self._switched[agent_id] = is_on
        if self.postman is not None:
            self.postman.set_auto(agent_id, is_on=is_on)

    def status(self) -> dict[str, Any]:
        """Mail metrics for `agent_status`."""
        return {"mail": msgspec.to_builtins(self.postman.metrics)} if self.postman is not None else {}

    def _tell(self, new: NewMail) -> None:
        self.subscriptions.notify(new.identity)

    def _unclaimed_identities(self) -> frozenset[str]:
        """Names that clients subscribed to and that no session of ours has."""
        return self.subscriptions.keys() - {session.identity for session in self.sessions.live()}

    async def _inbox(self, identity: str) -> Inbox:
        """The inbox of a name without a session; `MemberForeign` if the name is a teammate's by now."""
        await self._check(identity)
        mail = await self.loaded()
        from laneway.mail.inbox import Inbox

        return Inbox(mail.places, mail.team, identity)

    # ── tools ──────────────────────────────────────────────────────────────

    def tools(self) -> tuple[Tool, ...]:
        """Tools for threads: the session that calls is known."""
        return tuple(words.tool(partial(self._call, words.name, for_client=False)) for words in ALL)

    def offers(self) -> list[Offer]:
        """Tools for clients, which name the identity that they act for."""
        tools = [words.tool(partial(self._call, words.name, for_client=True)) for words in ALL]
        return offers_of(tools, self.acting)

    async def _call(
        self, name: str, caller: Caller, arguments: Mapping[str, Any], *, for_client: bool
    ) -> ToolResult:
        try:
            mail = await self.loaded()
            if not for_client and caller.identity is not None:
                await self._check(caller.identity)  # a client was checked when it named its identity
        except StoreError as problem:
            self._note(name, caller, recipient="", message_summary="", outcome=f"refused: {problem}")
            return ToolResult(str(problem), is_error=True)
        from laneway.mail.tools import CLIENT, THREAD

        tools = mail.tools.tools(CLIENT if for_client else THREAD)
        return await next(tool.handler for tool in tools if tool.name == name)(caller, arguments)

    async def _unread(self, caller: Caller) -> ToolResult:
        return await self._call("atm_read", caller, {"mark_read": False}, for_client=True)

    async def may_take(self, identity: str) -> None:
        """Raises `MemberForeign` if this name is a teammate's.

        A team that cannot be read does not keep a session from opening: the session has no mail then,
        because each read and send is checked again.
        """
        try:
            await self._check(identity)
        except MemberForeign:
            raise
        except StoreError as problem:
            log.warning("It is not known whether %s is a name in the team: %s", identity, problem)

    async def _check(self, identity: str) -> None:
        from laneway.mail.roster import check_may_act_as

        mail = await self.loaded()
        await asyncio.to_thread(check_may_act_as, mail.places, mail.team, identity)

    def _note(
        self, event_type: str, caller: Caller, *, recipient: str, message_summary: str, outcome: str
    ) -> None:
        self.sessions.note(
            event_type,
            agent_id=caller.agent_id or None,
            identity=caller.identity,
            thread_id=caller.thread_id or "",
            turn_id=caller.turn_id or "",
            recipient=recipient,
            message_summary=message_summary,
            outcome=outcome,
        )

    # ── bridges: threads and subagents without our dynamic tools ───────────

    def equip(self, agent_id: str, spec: ThreadSpec) -> ThreadSpec:
        """Add a bridge to a thread's config where our dynamic tools would not reach it (`mcp_entry`)."""
        mcp_entry.check_is_free(SERVER, spec.config)
        if self._local_server is None or not mcp_entry.is_needed(spec, NAMES, takes_tools=self._takes_tools):
            return spec
        # Isolated, so that no file in the thread's folder is loaded instead of Python's own modules.
        argv = [self._python, "-I", "-S", BRIDGE]
        environment = {SOCKET_VARIABLE: str(self._local_server.path), KEY_VARIABLE: self._keys.key(agent_id)}
        extras = merged(spec.extras, mcp_entry.entry(SERVER, argv, environment))
        return msgspec.structs.replace(spec, extras=extras)

    def serve_bridge(self, key: str, peer: Peer) -> Serve | None:
        """Serve a connection over a bridge as the session that its key was made for; none for a wrong key."""
        agent_id = self._keys.agent_of(key)
        if agent_id is None:
            return None
        # Without structured data: Codex would show it to its model, and so every text twice.
        offers = offers_of(self.tools(), BoundCaller(partial(self._caller, agent_id)), with_data=False)
        server = McpServer({"name": SERVER, "title": "Team mail", "version": __version__}, offers)
        connection = Connection(f"session {agent_id}", peer)

        async def serve(method: str, params: Raw, request_id: bytes) -> Any:
            return await server.serve(connection, method, params, request_id)

        return serve

    def _caller(self, agent_id: str, call: Call) -> Caller:
        live = next((each for each in self.sessions.live() if each.agent_id == agent_id), None)
        if live is None:
            raise proxy_error(SESSION_CLOSED, f"Session {agent_id} is closed, and its mail with it.")
        metadata = call.meta.get(METADATA)
        metadata = metadata if isinstance(metadata, dict) else {}
        return Caller(
            agent_id=agent_id,
            identity=live.identity,
            thread_id=str(metadata.get("thread_id") or live.thread_id)[:MAX_ID_CHARS],
            turn_id=str(metadata.get("turn_id") or "")[:MAX_ID_CHARS] or None,
        )
