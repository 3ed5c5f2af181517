"""Sessions that come back to us through a bridge: the key each has, and who serves them.

A key is made for one session and proves nothing but that: whoever shows it is that session or a
subagent of it. It is worth something only while this process lives, and the session in it.
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
"""Answers a guest's request: method, params, id."""
Guests: TypeAlias = Callable[[str, Peer], Serve | None]
"""From a key and the way back to whoever serves its session; none if the key opens nothing."""


class Keys:
    """Nothing is kept: a key is the session's id and a seal that only this process can make."""

    def __init__(self) -> None:
        self._seal = secrets.token_bytes(32)

    def key(self, agent_id: str) -> str:
        return f"{agent_id}.{self._sealed(agent_id)}"

    def agent_of(self, key: str) -> str | None:
        """The session that a key was made for; compared in a time that tells nothing."""
        agent_id, _, sealed = key.rpartition(".")
        is_ours = hmac.compare_digest(sealed.encode("utf-8", "replace"), self._sealed(agent_id).encode())
        return agent_id if is_ours and agent_id else None

    def _sealed(self, agent_id: str) -> str:
        return hmac.new(self._seal, agent_id.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


class _Open(msgspec.Struct):
    key: str


def key_of(params: Raw) -> str | None:
    try:
        return msgspec.json.decode(params, type=_Open).key
    except UNREADABLE:
        return None
