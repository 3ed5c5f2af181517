"""Mail for a server: its tools for clients and for sessions, who may use them, and who hears of it.

Joins `laneway.mail` with the doors. What mail itself needs is loaded when it is first needed: a
server that is only asked for its list of tools starts without.

    room = Mailroom(said)
    Hub(…, tools=ToolBox(room.tools()), equip=room.equip)      threads have the tools
    Colleagues(…, may_take=room.may_take)                      no session has a teammate's name
    local_door(colleagues, guests=room.welcome)                also where only a bridge leads
    room.open(colleagues, names, door)                         before the first session
    Server(…, room.offers(), room.shelf, room.news)            clients have them, too
    async with room.delivering(settings, clock):               mail becomes turns
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
from laneway.base.errors import MemberForeign, StoreError
from laneway.base.settings import Settings
from laneway.cli.mail_lookout import Lookout
from laneway.codex import mcp_entry
from laneway.codex.overrides import merged
from laneway.core.background import Chores
from laneway.core.colleague import Colleague
from laneway.core.colleagues import Colleagues
from laneway.core.ports import Clock, ThreadSpec
from laneway.core.tools import Caller, Tool, ToolResult
from laneway.doors.local.door import Door
from laneway.doors.local.guests import BRIDGE, KEY_VARIABLE, SOCKET_VARIABLE, Keys, Serve
from laneway.doors.mcp.acting import Acting
from laneway.doors.mcp.codes import SESSION_CLOSED, proxy_error
from laneway.doors.mcp.mail_shelf import MailShelf
from laneway.doors.mcp.names import Names
from laneway.doors.mcp.server import Call, Connection, Offer, Server
from laneway.doors.mcp.subscriptions import Subscriptions
from laneway.doors.mcp.tool_offers import Bound, offers_of
from laneway.mail.tool_words import ALL, NAMES
from laneway.wire.peer import Peer, Raw

if TYPE_CHECKING:
    from laneway.mail.depot import NewMail
    from laneway.mail.inbox import Inbox
    from laneway.mail.membership import Membership
    from laneway.mail.places import Places
    from laneway.mail.post import Post
    from laneway.mail.postman import Postman
    from laneway.mail.tools import MailTools

log = logging.getLogger(__name__)

SERVER = "laneway_mail"
"""What the entry in a thread's config is called, and so part of what models call its tools."""
METADATA = "x-codex-turn-metadata"
"""Where Codex tells an MCP server which thread calls: one of ours, or a subagent of it."""
MAX_ID_CHARS = 100


class Mail(msgspec.Struct):
    """What is there once mail is needed."""

    places: Places
    post: Post
    membership: Membership
    """Which team it is: a Claude Code session can move to another."""
    tools: MailTools

    @property
    def team(self) -> str:
        return self.membership.team


class Mailroom:
    def __init__(
        self,
        said: str | None,
        *,
        places: Callable[[], Places] | None = None,
        takes_tools: bool = True,
        python: str = sys.executable,
    ) -> None:
        """`said` is the team that a flag, a variable or a config file names (ruling 16).

        `takes_tools`: whether the engine gives threads dynamic tools.
        """
        self._said = said
        self._places = places
        self._takes_tools = takes_tools
        self._python = python
        self._keys = Keys()
        self._mail: Mail | None = None
        self._door: Door | None = None
        self.colleagues: Colleagues
        self.acting: Acting
        self.shelf: MailShelf
        self.news: Subscriptions
        self._switched: dict[str, bool] = {}
        self.postman: Postman | None = None
        """At work once there was a session."""

    def stay_in(self, folder: Path) -> None:
        """Teams and spool lie here and nowhere else: a rehearsal writes to nobody's real team."""

        def places() -> Places:
            from laneway.mail.places import Places

            return Places.of({"ATM_HOME": str(folder)})

        self._places = places

    def open(self, colleagues: Colleagues, names: Names, door: Door | None) -> None:
        """Before the first session begins. Without a door, mail reaches fewer threads."""
        self.colleagues = colleagues
        self._door = door
        self.acting = Acting(colleagues, names, self._check)
        self.shelf = MailShelf(colleagues, self.acting, lambda: self.mail.team, self._unread)
        self.news = Subscriptions(self.shelf.may_hear, self.shelf.may_subscribe)

    @property
    def mail(self) -> Mail:
        """Loaded by now, or now: some milliseconds, once. `StoreError` if the teams cannot be looked at."""
        if self._mail is None:
            self._mail = self._load()
        return self._mail

    async def loaded(self) -> Mail:
        """The same without holding anybody up."""
        if self._mail is None:
            self._take(await asyncio.to_thread(self._load))
        return self.mail

    def _take(self, mail: Mail) -> None:
        """Of several that were loaded at once, the first stays."""
        self._mail = self._mail or mail

    def _load(self) -> Mail:
        from laneway.mail.membership import Membership
        from laneway.mail.places import Places
        from laneway.mail.post import Post
        from laneway.mail.teams import mail_team
        from laneway.mail.tools import MailTools

        places = self._places() if self._places is not None else Places.of()
        post = Post(places)
        membership = Membership(places, mail_team(places, self._said))
        return Mail(places, post, membership, MailTools(places, post, lambda: membership.team, self._note))

    # ── mail becomes turns, and news ───────────────────────────────────────

    @asynccontextmanager
    async def delivering(self, settings: Settings, clock: Clock) -> AsyncIterator[None]:
        """While this lasts. It begins with the first session: nobody else's mail is ours to deliver."""
        first, over = asyncio.Event(), asyncio.Event()

        def hear(colleague: Colleague, moment: str) -> None:
            first.set()

        poll_s = settings.mail_poll_interval_ms / 1000
        chores = Chores()
        self.colleagues.listeners.append(hear)
        delivering = chores.spawn(self._deliver(settings, clock, first, over), "mail")
        try:
            async with Lookout(self.news, self._others, self._inbox, clock, poll_s):
                yield
        finally:
            self.colleagues.listeners.remove(hear)
            over.set()
            if not first.is_set():
                delivering.cancel()
            await chores.wait()

    async def _deliver(
        self, settings: Settings, clock: Clock, first: asyncio.Event, over: asyncio.Event
    ) -> None:
        await first.wait()
        try:
            mail = await self.loaded()
        except StoreError as problem:
            log.warning("Mail is not delivered: %s", problem)
            return
        from laneway.mail.postman import Orders, Postman

        orders = Orders.of(settings)
        async with Postman(self.colleagues, clock, mail.membership, mail.post, orders) as self.postman:
            self.postman.on_mail.append(self._tell)
            for agent_id, is_on in self._switched.items():
                self.postman.set_auto(agent_id, is_on=is_on)
            await over.wait()

    def set_auto(self, agent_id: str, is_on: bool) -> None:
        """Whether mail may start turns of a session, from now on; also before there is a postman."""
        self._switched[agent_id] = is_on
        if self.postman is not None:
            self.postman.set_auto(agent_id, is_on=is_on)

    def told(self) -> dict[str, Any]:
        """For `agent_status`."""
        return {"mail": msgspec.to_builtins(self.postman.metrics)} if self.postman is not None else {}

    def _tell(self, new: NewMail) -> None:
        self.news.notify(new.identity)

    def _others(self) -> frozenset[str]:
        """Names that somebody waits for news of and that no session of ours has."""
        return self.news.keys() - {colleague.identity for colleague in self.colleagues.live()}

    async def _inbox(self, identity: str) -> Inbox:
        """Of a name that is free, to be looked into; `MemberForeign` if it is a teammate's by now."""
        await self._check(identity)
        mail = await self.loaded()
        from laneway.mail.inbox import Inbox

        return Inbox(mail.places, mail.team, identity)

    # ── tools ──────────────────────────────────────────────────────────────

    def tools(self) -> tuple[Tool, ...]:
        """For threads: whoever calls is known."""
        return tuple(words.tool(partial(self._call, words.name, for_client=False)) for words in ALL)

    def offers(self) -> list[Offer]:
        """For clients, who say in whose name they call."""
        tools = [words.tool(partial(self._call, words.name, for_client=True)) for words in ALL]
        return offers_of(tools, self.acting)

    async def _call(
        self, name: str, caller: Caller, arguments: Mapping[str, Any], *, for_client: bool
    ) -> ToolResult:
        try:
            mail = await self.loaded()
            if not for_client and caller.identity is not None:
                await self._check(caller.identity)  # a client was checked when it said its name
        except StoreError as problem:
            self._note(name, caller, recipient="", message_summary="", outcome=f"refused: {problem}")
            return ToolResult(str(problem), is_error=True)
        from laneway.mail.tools import CLIENT, THREAD

        tools = mail.tools.tools(CLIENT if for_client else THREAD)
        return await next(tool.handler for tool in tools if tool.name == name)(caller, arguments)

    async def _unread(self, caller: Caller) -> ToolResult:
        return await self._call("atm_read", caller, {"mark_read": False}, for_client=True)

    async def may_take(self, identity: str) -> None:
        """`MemberForeign` if a session under this name would be a teammate.

        A team that cannot be looked at keeps no session from its work: it has no mail then, because
        every reading and sending is checked for itself.
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
        self.colleagues.note(
            event_type,
            agent_id=caller.agent_id or None,
            identity=caller.identity,
            thread_id=caller.thread_id or "",
            turn_id=caller.turn_id or "",
            recipient=recipient,
            message_summary=message_summary,
            outcome=outcome,
        )

    # ── threads and subagents that have no tools of ours ───────────────────

    def equip(self, agent_id: str, spec: ThreadSpec) -> ThreadSpec:
        """Give a thread a bridge back to us where our tools would not reach it (`mcp_entry`)."""
        mcp_entry.check_is_free(SERVER, spec.config)
        if self._door is None or not mcp_entry.is_needed(spec, NAMES, takes_tools=self._takes_tools):
            return spec
        # Isolated, so that nothing in the thread's folder is loaded in the place of Python's own.
        argv = [self._python, "-I", "-S", BRIDGE]
        environment = {SOCKET_VARIABLE: str(self._door.path), KEY_VARIABLE: self._keys.key(agent_id)}
        extras = merged(spec.extras, mcp_entry.entry(SERVER, argv, environment))
        return msgspec.structs.replace(spec, extras=extras)

    def welcome(self, key: str, peer: Peer) -> Serve | None:
        """Whoever comes over a bridge: served as the session that its key was made for."""
        agent_id = self._keys.agent_of(key)
        if agent_id is None:
            return None
        # Codex shows its model what is for programs, where there is any, and every text twice with it.
        offers = offers_of(self.tools(), Bound(partial(self._caller, agent_id)), with_data=False)
        server = Server({"name": SERVER, "title": "Team mail", "version": __version__}, offers)
        connection = Connection(f"session {agent_id}", peer)

        async def serve(method: str, params: Raw, request_id: bytes) -> Any:
            return await server.serve(connection, method, params, request_id)

        return serve

    def _caller(self, agent_id: str, call: Call) -> Caller:
        live = next((each for each in self.colleagues.live() if each.agent_id == agent_id), None)
        if live is None:
            raise proxy_error(SESSION_CLOSED, f"Session {agent_id} is closed, and its mail with it.")
        told = call.meta.get(METADATA)
        told = told if isinstance(told, dict) else {}
        return Caller(
            agent_id=agent_id,
            identity=live.identity,
            thread_id=str(told.get("thread_id") or live.thread_id)[:MAX_ID_CHARS],
            turn_id=str(told.get("turn_id") or "")[:MAX_ID_CHARS] or None,
        )
