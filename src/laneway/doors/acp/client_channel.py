"""What a session may say to the client that owns it."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from laneway.wire.messages import encode
from laneway.wire.peer import Peer


class ClientChannel(Protocol):
    @property
    def is_behind(self) -> bool:
        """Whether the client does not read: hold back what can be merged."""
        ...

    def update(self, session_id: str, update: dict[str, Any] | msgspec.Raw) -> None:
        """A `session/update`; never dropped."""
        ...

    def notify(self, method: str, params: Any) -> None: ...

    async def call(self, method: str, params: Any) -> Any:
        """Ask the client; cancelled, it is told so by `$/cancel_request`."""
        ...

    async def writable(self) -> None:
        """Until the client has taken most of what it was told."""
        ...


class PeerChannel:
    """On a JSON-RPC peer."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._heads: dict[str, bytes] = {}
        """How an update of a session begins: encoded once."""

    @property
    def is_behind(self) -> bool:
        return self._peer.is_behind

    def update(self, session_id: str, update: dict[str, Any] | msgspec.Raw) -> None:
        head = self._heads.get(session_id)
        if head is None:
            head = self._heads[session_id] = b'{"sessionId":' + encode(session_id) + b',"update":'
        body = bytes(update) if isinstance(update, msgspec.Raw) else encode(update)
        self._peer.notify("session/update", msgspec.Raw(head + body + b"}"), may_drop=False)

    def notify(self, method: str, params: Any) -> None:
        self._peer.notify(method, params, may_drop=False)

    async def call(self, method: str, params: Any) -> Any:
        return await self._peer.call(method, params)

    async def writable(self) -> None:
        await self._peer.wait_writable()
