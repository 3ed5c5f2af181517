"""Unread mail as MCP resources that clients can read and subscribe to: `mail://<team>/<identity>`.

Reading a resource marks no message as read. Who may read is decided as for the mail tools
(`acting_identity`); whoever could read a resource now may also be notified of it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from laneway.base.errors import IdentityTaken, RemoteError, StoreError
from laneway.base.kinds import IDENTITY
from laneway.base.plain import code_label
from laneway.core.named.records import RESERVED
from laneway.core.named.sessions import NamedSessions
from laneway.core.tools import Caller, ToolResult
from laneway.doors.mcp.acting_identity import ActingIdentity
from laneway.doors.mcp.server import Call, Resources
from laneway.wire.messages import INVALID_PARAMS

SCHEME = "mail"
JSON = "application/json"
_URI = re.compile(r"mail://([^/?#]+)/([^/?#]+)")


class MailResources:
    """A `Resources` over the mail of one team."""

    def __init__(
        self,
        sessions: NamedSessions,
        acting: ActingIdentity,
        team: Callable[[], str],
        read: Callable[[Caller], Awaitable[ToolResult]],
    ) -> None:
        self._sessions = sessions
        self._acting = acting
        self._team = team
        self._read = read
        """Gives the unread messages as JSON; they stay unread."""

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
        """Those of the live sessions, all on the first page: their number is limited."""
        if cursor is not None:
            return [], None
        listed = [
            {
                "uri": f"{SCHEME}://{self._team()}/{session.identity}",
                "name": f"{session.identity}-mail",
                "title": f"Unread mail of {session.identity}",
                "mimeType": JSON,
            }
            for session in self._sessions.live(call.principal)
        ]
        return listed, None

    def templates(self) -> list[dict[str, Any]]:
        return [
            {
                "uriTemplate": f"{SCHEME}://{{team}}/{{identity}}",
                "name": "mail",
                "title": "The unread mail of an identity; reading it marks nothing",
                "mimeType": JSON,
            }
        ]

    async def read(self, call: Call, uri: str) -> list[dict[str, Any]]:
        identity = self._identity(uri)
        if identity is None:
            raise RemoteError(INVALID_PARAMS, f"There is no resource {code_label(uri)}", {"uri": uri[:200]})
        async with self._acting.caller(call, "atm_read", {"identity": identity}) as caller:
            result = await self._read(caller)
        if result.is_error:
            raise RemoteError(INVALID_PARAMS, result.text, {"uri": uri[:200]})
        return [{"uri": uri, "mimeType": JSON, "text": result.text}]

    def may_hear(self, principal: str, uri: str) -> str | None:
        """The identity of the URI, if the principal may be notified of its mail; quick, and asks no disk."""
        identity = self._identity(uri)
        try:
            if identity is not None:
                self._acting.owner(principal, identity)
        except IdentityTaken:
            return None
        return identity

    async def may_subscribe(self, principal: str, uri: str) -> bool:
        """Whether the principal could read it now: as `may_hear`, and the team gives the name to no other."""
        identity = self.may_hear(principal, uri)
        if identity is None:
            return False
        try:
            await self._acting.check(identity)
        except StoreError:
            return False
        return True

    def _identity(self, uri: str) -> str | None:
        parts = _URI.fullmatch(uri)
        if parts is None or parts[1] != self._team():
            return None
        is_name = IDENTITY.fullmatch(parts[2]) and parts[2].casefold() not in RESERVED
        return parts[2] if is_name else None


class ResourcesByScheme:
    """Several `Resources` as one, told apart by the scheme of the URI. Only one of them has pages."""

    def __init__(self, **by_scheme: Resources) -> None:
        self._by_scheme = by_scheme

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
        rows: list[dict[str, Any]] = []
        next_cursor: str | None = None
        for resources in self._by_scheme.values():
            page, following = await resources.listed(call, cursor)
            rows += page
            next_cursor = next_cursor or following
        return rows, next_cursor

    def templates(self) -> list[dict[str, Any]]:
        return [each for resources in self._by_scheme.values() for each in resources.templates()]

    async def read(self, call: Call, uri: str) -> list[dict[str, Any]]:
        resources = self._by_scheme.get(uri.partition("://")[0])
        if resources is None:
            raise RemoteError(INVALID_PARAMS, f"There is no resource {code_label(uri)}", {"uri": uri[:200]})
        return await resources.read(call, uri)
