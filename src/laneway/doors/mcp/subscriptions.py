"""Subscriptions of MCP clients to resources, and the notifications that a resource has changed.

In the handshake eras a client subscribes to a resource and is notified on its connection. In the
stateless era it keeps a request open, `subscriptions/listen`, and is notified on that. Whether a client
may know of a resource is checked when it subscribes (thoroughly, which may read a file) and again at each
notification, by the quick check: by then the resource may belong to another. The caller of `notify` has
made the thorough check itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import msgspec

from laneway.base.errors import RemoteError
from laneway.doors.mcp.server import Call, CallerChannel, Interests
from laneway.wire.messages import INVALID_PARAMS

UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
MAX_URIS = 256
"""Resources of one client: more than it can have sessions to read the mail of."""
MAX_LISTENING = 256
"""Open `subscriptions/listen` requests, of all clients together."""

MayHear: TypeAlias = Callable[[str, str], str | None]
"""From a principal and a URI to the key for `notify`; none if the principal may not know of it. Quick."""
MaySubscribe: TypeAlias = Callable[[str, str], Awaitable[bool]]
"""Whether a principal may know of a URI, checked thoroughly; may read a file."""


class _Listening:
    """One open `subscriptions/listen` request."""

    def __init__(self, call: Call, uris: list[str]) -> None:
        self.principal = call.principal
        self.channel = call.channel
        self.uris = uris
        self.meta = {SUBSCRIPTION_KEY: msgspec.Raw(call.request_id)}
        self.over = asyncio.Event()


class Subscriptions:
    """All clients' subscriptions. Implements `ResourceSubscriptions` of `server`."""

    def __init__(self, may_hear: MayHear, may_subscribe: MaySubscribe) -> None:
        self._may_hear = may_hear
        self._may_subscribe = may_subscribe
        self._clients: WeakKeyDictionary[Interests, str] = WeakKeyDictionary()
        """The principal of each client. An entry goes when its client goes."""
        self._listening: set[_Listening] = set()
        self._has_ended = False

    # ── requests of clients ────────────────────────────────────────────────

    async def subscribe(self, call: Call) -> None:
        uri = await self._checked(call)
        channels = call.interests.channels
        if len(channels) >= MAX_URIS and uri not in channels:
            raise RemoteError(INVALID_PARAMS, f"No more than {MAX_URIS} subscriptions at once")
        channels[uri] = call.channel
        self._clients[call.interests] = call.principal

    def unsubscribe(self, call: Call) -> None:
        """Does nothing for a resource that was never subscribed to."""
        call.interests.channels.pop(str(call.params.get("uri")), None)

    async def listen(self, call: Call) -> dict[str, Any]:
        """Lasts until the client cancels its request, or we end: then the request is answered."""
        filters = call.params.get("notifications")
        requested = filters.get("resourceSubscriptions") if isinstance(filters, dict) else None
        if not isinstance(filters, dict) or not isinstance(requested, list | None):
            raise RemoteError(INVALID_PARAMS, "subscriptions/listen needs the notifications that are wanted")
        uris = [uri for uri in requested or () if isinstance(uri, str)][:MAX_URIS]
        listening = _Listening(call, [uri for uri in uris if await self._may_subscribe(call.principal, uri)])
        if len(self._listening) >= MAX_LISTENING:
            raise RemoteError(INVALID_PARAMS, f"No more than {MAX_LISTENING} open subscriptions at once")
        honoured = {"resourceSubscriptions": listening.uris} if listening.uris else {}
        # Acknowledged and added without a pause between: no notification can come before or get lost.
        call.channel.notify(ACKNOWLEDGED, {"notifications": honoured, "_meta": listening.meta})
        self._listening.add(listening)
        if self._has_ended:  # during the check above
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

    # ── notifications to clients ───────────────────────────────────────────

    def notify(self, key: str) -> int:
        """The resource with this key has changed; returns how many were notified. Waits for no client."""
        notified = 0
        for uri, _, channel, meta in self._subscribers(key):
            notified += channel.notify(UPDATED, {"uri": uri, **meta})
        return notified

    def keys(self) -> frozenset[str]:
        """The keys of all resources that a client is subscribed to and may know of."""
        return frozenset(key for _, key, _, _ in self._all())

    def end(self) -> None:
        """Answer the open requests: there will be no more notifications."""
        self._has_ended = True
        for listening in self._listening:
            listening.over.set()

    def _subscribers(self, key: str) -> Iterator[tuple[str, str, CallerChannel, dict[str, Any]]]:
        return (each for each in list(self._all()) if each[1] == key)

    def _all(self) -> Iterator[tuple[str, str, CallerChannel, dict[str, Any]]]:
        for interests, principal in list(self._clients.items()):
            for uri, channel in interests.channels.items():
                key = self._may_hear(principal, uri)
                if key is not None:
                    yield uri, key, channel, {}
        for listening in self._listening:
            for uri in listening.uris:
                key = self._may_hear(listening.principal, uri)
                if key is not None:
                    yield uri, key, listening.channel, {"_meta": listening.meta}
