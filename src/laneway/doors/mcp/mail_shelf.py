"""Mail as something that clients can read and be told of: `mail://<team>/<identity>`.

Reading here marks nothing. Who may read is decided as for the mail tools (`acting`); who may be told
that something arrived is who could read it now.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from laneway.base.errors import IdentityTaken, RemoteError, StoreError
from laneway.base.kinds import IDENTITY
from laneway.base.plain import code_label
from laneway.core.colleagues import Colleagues
from laneway.core.records import RESERVED
from laneway.core.tools import Caller, ToolResult
from laneway.doors.mcp.acting import Acting
from laneway.doors.mcp.server import INVALID_PARAMS, Call

SCHEME = "mail"
JSON = "application/json"
_URI = re.compile(r"mail://([^/?#]+)/([^/?#]+)")


class MailShelf:
    """A `Resources` over the mail of one team."""

    def __init__(
        self,
        colleagues: Colleagues,
        acting: Acting,
        team: Callable[[], str],
        read: Callable[[Caller], Awaitable[ToolResult]],
    ) -> None:
        self._colleagues = colleagues
        self._acting = acting
        self._team = team
        self._read = read
        """The unread messages as JSON, which stay unread."""

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
        """Those of the live sessions, on the first page: there are never more than may run at once."""
        if cursor is not None:
            return [], None
        found = [
            {
                "uri": f"{SCHEME}://{self._team()}/{colleague.identity}",
                "name": f"{colleague.identity}-mail",
                "title": f"Unread mail of {colleague.identity}",
                "mimeType": JSON,
            }
            for colleague in self._colleagues.live(call.principal)
        ]
        return found, None

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
        """The identity that the URI is about, if the principal may know of its mail."""
        identity = self._identity(uri)
        try:
            if identity is not None:
                self._acting.owner(principal, identity)
        except IdentityTaken:
            return None
        return identity

    async def may_subscribe(self, principal: str, uri: str) -> bool:
        """Whether the principal could read it now: the same, and the name is nobody else's in the team."""
        identity = self.may_hear(principal, uri)
        if identity is None:
            return False
        try:
            await self._acting.check(identity)
        except StoreError:
            return False
        return True

    def _identity(self, uri: str) -> str | None:
        found = _URI.fullmatch(uri)
        if found is None or found[1] != self._team():
            return None
        is_name = IDENTITY.fullmatch(found[2]) and found[2].casefold() not in RESERVED
        return found[2] if is_name else None


class Shelves:
    """Several `Resources` as one, told apart by the scheme of what they hold. One of them has pages."""

    def __init__(self, **by_scheme: Any) -> None:
        self._by_scheme = by_scheme

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
        found: list[dict[str, Any]] = []
        more: str | None = None
        for shelf in self._by_scheme.values():
            page, following = await shelf.listed(call, cursor)
            found += page
            more = more or following
        return found, more

    def templates(self) -> list[dict[str, Any]]:
        return [each for shelf in self._by_scheme.values() for each in shelf.templates()]

    async def read(self, call: Call, uri: str) -> list[dict[str, Any]]:
        shelf = self._by_scheme.get(uri.partition("://")[0])
        if shelf is None:
            raise RemoteError(INVALID_PARAMS, f"There is no resource {code_label(uri)}", {"uri": uri[:200]})
        contents: list[dict[str, Any]] = await shelf.read(call, uri)
        return contents
