"""The outgoing half of a client's connection: updates, notifications and requests to the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from laneway.wire.messages import encode
from laneway.wire.peer import Peer


class ClientChannel(Protocol):
    @property
    def is_behind(self) -> bool:
        """Whether the client reads too slowly: hold back updates that can be merged."""
        ...

    def update(self, session_id: str, update: dict[str, Any] | msgspec.Raw) -> None:
        """Send a `session/update`; never dropped."""
        ...

    def before_write(self, gather: Callable[[], None]) -> None:
        """Call this once, before anything that is sent now is written: what it sends leaves with that."""
        ...

    def notify(self, method: str, params: Any) -> None: ...

    async def call(self, method: str, params: Any) -> Any:
        """Send a request and wait for the answer; cancelling this sends `$/cancel_request`."""
        ...

    async def writable(self) -> None:
        """Wait until the client has read most of what was sent."""
        ...


class PeerChannel:
    """A `ClientChannel` on a JSON-RPC peer."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._prefixes: dict[str, bytes] = {}
        """By session: the encoded beginning of its updates."""

    @property
    def is_behind(self) -> bool:
        return self._peer.is_behind

    def update(self, session_id: str, update: dict[str, Any] | msgspec.Raw) -> None:
        prefix = self._prefixes.get(session_id)
        if prefix is None:
            prefix = self._prefixes[session_id] = b'{"sessionId":' + encode(session_id) + b',"update":'
        body = bytes(update) if isinstance(update, msgspec.Raw) else encode(update)
        self._peer.notify("session/update", msgspec.Raw(prefix + body + b"}"), may_drop=False)

    def before_write(self, gather: Callable[[], None]) -> None:
        self._peer.before_write(gather)

    def notify(self, method: str, params: Any) -> None:
        self._peer.notify(method, params, may_drop=False)

    async def call(self, method: str, params: Any) -> Any:
        return await self._peer.call(method, params)

    async def writable(self) -> None:
        await self._peer.wait_writable()
