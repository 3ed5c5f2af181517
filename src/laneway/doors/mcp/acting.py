"""In whose name a client acts that calls a tool outside of any session (ruling 15, FR-4.5).

A name must be said with every call. It is this client's session's, or nobody's: then it is claimed
while the call lasts. Refused: no name at all, another client's session, a name that another living
process holds, one that somebody else registered in the team, reserved ones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from laneway.base.errors import IdentityTaken, LanewayError, SessionUnknown
from laneway.core.colleague import Colleague
from laneway.core.colleagues import Colleagues
from laneway.core.tools import Caller
from laneway.doors.mcp.codes import IDENTITY_REQUIRED, INVALID_SESSION_PARAMS, proxy_error, wire_error
from laneway.doors.mcp.definitions import of_caller
from laneway.doors.mcp.names import Names
from laneway.doors.mcp.server import INVALID_PARAMS, Call

MAX_NAME_CHARS = 64
"""Of a name that was refused, in the audit log."""


class Acting:
    """`check` raises if the name is somebody else's for a reason that this process cannot see."""

    def __init__(self, colleagues: Colleagues, names: Names, check: Callable[[str], Awaitable[None]]) -> None:
        self._colleagues = colleagues
        self._names = names
        self._check = check

    @property
    def properties(self) -> dict[str, Any]:
        """What a tool's schema says of it."""
        return of_caller(self._names)

    @asynccontextmanager
    async def caller(self, call: Call, tool: str, said: dict[str, Any]) -> AsyncIterator[Caller]:
        """Act under the name that was said; an error with a code if that cannot be, noted for the audit."""
        identity = ""
        async with AsyncExitStack() as stack:
            try:
                identity = self._identity(call, said)
                await stack.enter_async_context(self._colleagues.holding(identity))
                caller = await self._as(call, identity)
            except LanewayError as problem:
                name = str(identity or said.get("identity") or "")[:MAX_NAME_CHARS]
                self._colleagues.note(tool, identity=name or None, outcome=f"refused: {problem}")
                raise wire_error(problem) from problem
            yield caller

    def owner(self, principal: str, identity: str) -> Colleague | None:
        """The principal's live session of this name; `IdentityTaken` if another's has it, or is about to."""
        agent_id = self._colleagues.holder(identity)
        if agent_id is None:
            return None
        try:
            found = self._colleagues.find(principal, agent_id=agent_id)
        except SessionUnknown:
            raise IdentityTaken(identity, agent_id) from None
        if found.identity != identity:  # it differs in case, and is another name
            raise IdentityTaken(identity, agent_id)
        return found

    async def check(self, identity: str) -> None:
        """Raise if the name is somebody else's, also that of a session: it may have become so."""
        await self._check(identity)

    def _identity(self, call: Call, said: dict[str, Any]) -> str:
        agent_id, identity = said.get(self._names.agent_id), said.get("identity")
        for name, value in said.items():
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
        found = self._colleagues.find(call.principal, agent_id=agent_id)
        if identity not in (None, found.identity):
            raise proxy_error(
                INVALID_SESSION_PARAMS, f"Session {agent_id} is {found.identity}, not {identity}."
            )
        return found.identity

    async def _as(self, call: Call, identity: str) -> Caller:
        # Looked at only while the name is held: it may just have become somebody's.
        colleague = self.owner(call.principal, identity)
        await self._check(identity)
        if colleague is None:
            return Caller(agent_id="", identity=identity)
        return Caller(agent_id=colleague.agent_id, identity=identity, thread_id=colleague.thread_id or None)
