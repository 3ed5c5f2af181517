"""The identity under which a client calls a mail tool outside of any session.

Every call must name one, so that no client sends mail as somebody else by default. It is the identity
of one of the client's own sessions, or a free one, which is then claimed while the call lasts. Refused:
no name at all, another client's session, a name that another living process holds, one that another
program registered in the team, reserved names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from laneway.base.errors import IdentityTaken, LanewayError, SessionUnknown
from laneway.core.named.session import NamedSession
from laneway.core.named.sessions import NamedSessions
from laneway.core.tools import Caller
from laneway.doors.mcp.codes import IDENTITY_REQUIRED, INVALID_SESSION_PARAMS, proxy_error, wire_error
from laneway.doors.mcp.definitions import of_caller
from laneway.doors.mcp.names import Names
from laneway.doors.mcp.server import Call
from laneway.wire.messages import INVALID_PARAMS

MAX_NAME_CHARS = 64
"""Of a refused name in the audit log."""


class ActingIdentity:
    """Finds and claims a caller's identity. `check` raises if the team's files give the name to another."""

    def __init__(
        self, sessions: NamedSessions, names: Names, check: Callable[[str], Awaitable[None]]
    ) -> None:
        self._sessions = sessions
        self._names = names
        self._check = check

    @property
    def properties(self) -> dict[str, Any]:
        """The properties of a tool's schema by which its caller is named."""
        return of_caller(self._names)

    @asynccontextmanager
    async def caller(self, call: Call, tool: str, arguments: dict[str, Any]) -> AsyncIterator[Caller]:
        """The caller, with its identity claimed; a refusal is a wire error and is noted in the audit log."""
        identity = ""
        async with AsyncExitStack() as stack:
            try:
                identity = self._identity(call, arguments)
                await stack.enter_async_context(self._sessions.holding(identity))
                caller = await self._as(call, identity)
            except LanewayError as problem:
                name = str(identity or arguments.get("identity") or "")[:MAX_NAME_CHARS]
                self._sessions.note(tool, identity=name or None, outcome=f"refused: {problem}")
                raise wire_error(problem) from problem
            yield caller

    def owner(self, principal: str, identity: str) -> NamedSession | None:
        """The principal's live session of this name; `IdentityTaken` if another's has it or is opening it."""
        agent_id = self._sessions.holder(identity)
        if agent_id is None:
            return None
        try:
            session = self._sessions.find(principal, agent_id=agent_id)
        except SessionUnknown:
            raise IdentityTaken(identity, agent_id) from None
        if session.identity != identity:  # it differs in case, so it is another name
            raise IdentityTaken(identity, agent_id)
        return session

    async def check(self, identity: str) -> None:
        """Raise if the name is now another's in the team, even if a session of ours has it."""
        await self._check(identity)

    def _identity(self, call: Call, arguments: dict[str, Any]) -> str:
        agent_id, identity = arguments.get(self._names.agent_id), arguments.get("identity")
        for name, value in arguments.items():
            if value is not None and not isinstance(value, str):
                raise proxy_error(INVALID_PARAMS, f"{name} must be a string.")
        if agent_id is None and not identity:
            raise proxy_error(
                IDENTITY_REQUIRED,
                f"Say in whose name: identity (a session of yours, or a name that is free) or "
                f"{self._names.agent_id}.",
            )
        if agent_id is None:
            return str(identity)
        session = self._sessions.find(call.principal, agent_id=agent_id)
        if identity not in (None, session.identity):
            raise proxy_error(
                INVALID_SESSION_PARAMS, f"Session {agent_id} is {session.identity}, not {identity}."
            )
        return session.identity

    async def _as(self, call: Call, identity: str) -> Caller:
        # Looked up only while the name is claimed: before that, another call may take it.
        session = self.owner(call.principal, identity)
        await self._check(identity)
        if session is None:
            return Caller(agent_id="", identity=identity)
        return Caller(agent_id=session.agent_id, identity=identity, thread_id=session.thread_id or None)
