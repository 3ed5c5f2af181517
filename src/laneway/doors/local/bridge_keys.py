"""Keys by which sessions authenticate on the local socket when they connect through a bridge.

A key is made for one session and proves only that its sender is that session or a subagent of it.
It is valid only while this process and that session live.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from laneway.wire.messages import UNREADABLE, Raw
from laneway.wire.peer import Peer

BRIDGE = os.path.join(os.path.dirname(__file__), "bridge.py")
OPEN = "bridge/open"
SOCKET_VARIABLE = "LANEWAY_BRIDGE_SOCKET"
KEY_VARIABLE = "LANEWAY_BRIDGE_KEY"

Serve: TypeAlias = Callable[[str, Raw, bytes], Awaitable[Any]]
"""Answers a request that came through a bridge: method, params, id."""
OpenBridge: TypeAlias = Callable[[str, Peer], Serve | None]
"""From a key and the peer to the function that serves its session; none if the key is not valid."""


class BridgeKeys:
    """Makes and checks keys. Stores none: a key is a session's id with a MAC that only we can make."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def key(self, agent_id: str) -> str:
        return f"{agent_id}.{self._mac(agent_id)}"

    def agent_of(self, key: str) -> str | None:
        """The session that a key was made for; compared in constant time."""
        agent_id, _, mac = key.rpartition(".")
        is_ours = hmac.compare_digest(mac.encode("utf-8", "replace"), self._mac(agent_id).encode())
        return agent_id if is_ours and agent_id else None

    def _mac(self, agent_id: str) -> str:
        return hmac.new(self._secret, agent_id.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


class _Open(msgspec.Struct):
    key: str


def key_of(params: Raw) -> str | None:
    try:
        return msgspec.json.decode(params, type=_Open).key
    except UNREADABLE:
        return None
