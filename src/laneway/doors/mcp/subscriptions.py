"""Who wants to be told when something that can be read has changed.

In the handshake eras a client subscribes to a resource and is told on its connection. In the
stateless one it keeps a request open, `subscriptions/listen`, and is told on that. Whether somebody
may know of a resource is asked when it is subscribed to (thoroughly, which may take a look at a disk)
and again whenever there is news: by then it may have become somebody else's. Whoever brings the news
of something has seen that it is nobody else's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import msgspec

from laneway.base.errors import RemoteError
from laneway.doors.mcp.server import INVALID_PARAMS, Call, Interests, Line

UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
MAX_URIS = 256
"""Resources of one client: more than it can have sessions."""
MAX_LISTENING = 256
"""Requests that are kept open at once, of all clients together."""

MayHear: TypeAlias = Callable[[str, str], str | None]
"""From a principal and a URI to what that is about (a key for `notify`); none if it may not know."""
MaySubscribe: TypeAlias = Callable[[str, str], Awaitable[bool]]
"""Whether a principal may know of a URI, found out with all the time that this takes."""


class _Listening:
    """One open request."""

    def __init__(self, call: Call, uris: list[str]) -> None:
        self.principal = call.principal
        self.line = call.line
        self.uris = uris
        self.meta = {SUBSCRIPTION_KEY: msgspec.Raw(call.request_id)}
        self.over = asyncio.Event()


class Subscriptions:
    def __init__(self, may_hear: MayHear, may_subscribe: MaySubscribe) -> None:
        self._may_hear = may_hear
        self._may_subscribe = may_subscribe
        self._clients: WeakKeyDictionary[Interests, str] = WeakKeyDictionary()
        """The principal of each. Whoever goes away takes its interests along."""
        self._listening: set[_Listening] = set()
        self._has_ended = False

    # ── asked by clients ───────────────────────────────────────────────────

    async def subscribe(self, call: Call) -> None:
        uri = await self._checked(call)
        lines = call.interests.lines
        if len(lines) >= MAX_URIS and uri not in lines:
            raise RemoteError(INVALID_PARAMS, f"No more than {MAX_URIS} subscriptions at once")
        lines[uri] = call.line
        self._clients[call.interests] = call.principal

    def unsubscribe(self, call: Call) -> None:
        """Also of what was never subscribed to."""
        call.interests.lines.pop(str(call.params.get("uri")), None)

    async def listen(self, call: Call) -> dict[str, Any]:
        """Until the client gives up its request, or we end: then it is told so."""
        asked = call.params.get("notifications")
        said = asked.get("resourceSubscriptions") if isinstance(asked, dict) else None
        if not isinstance(asked, dict) or not isinstance(said, list | None):
            raise RemoteError(INVALID_PARAMS, "subscriptions/listen needs the notifications that are wanted")
        uris = [uri for uri in said or () if isinstance(uri, str)][:MAX_URIS]
        listening = _Listening(call, [uri for uri in uris if await self._may_subscribe(call.principal, uri)])
        if len(self._listening) >= MAX_LISTENING:
            raise RemoteError(INVALID_PARAMS, f"No more than {MAX_LISTENING} open subscriptions at once")
        honoured = {"resourceSubscriptions": listening.uris} if listening.uris else {}
        # The acknowledgement comes first, and in one breath with being there: no news can get between.
        call.line.notify(ACKNOWLEDGED, {"notifications": honoured, "_meta": listening.meta})
        self._listening.add(listening)
        if self._has_ended:  # while we looked
            listening.over.set()
        try:
            await listening.over.wait()
        finally:
            self._listening.discard(listening)
        return {"_meta": listening.meta}

    async def _checked(self, call: Call) -> str:
        uri = call.params.get("uri")
        if not isinstance(uri, str):
            raise RemoteError(INVALID_PARAMS, "resources/subscribe needs a uri")
        if not await self._may_subscribe(call.principal, uri):
            raise RemoteError(
                INVALID_PARAMS, f"Changes of {uri[:200]} are not told to you", {"uri": uri[:200]}
            )
        return uri

    # ── told by others ─────────────────────────────────────────────────────

    def notify(self, key: str) -> int:
        """What goes by this key has changed; how many were told. Nobody who does not read is waited for."""
        told = 0
        for uri, _, line, meta in self._who_hears(key):
            told += line.notify(UPDATED, {"uri": uri, **meta})
        return told

    def keys(self) -> frozenset[str]:
        """What somebody waits for news of, and may have them."""
        return frozenset(key for _, key, _, _ in self._all())

    def end(self) -> None:
        """Answer the requests that are kept open: there will be no more news."""
        self._has_ended = True
        for listening in self._listening:
            listening.over.set()

    def _who_hears(self, key: str) -> Iterator[tuple[str, str, Line, dict[str, Any]]]:
        return (each for each in list(self._all()) if each[1] == key)

    def _all(self) -> Iterator[tuple[str, str, Line, dict[str, Any]]]:
        for interests, principal in list(self._clients.items()):
            for uri, line in interests.lines.items():
                key = self._may_hear(principal, uri)
                if key is not None:
                    yield uri, key, line, {}
        for listening in self._listening:
            for uri in listening.uris:
                key = self._may_hear(listening.principal, uri)
                if key is not None:
                    yield uri, key, listening.line, {"_meta": listening.meta}
