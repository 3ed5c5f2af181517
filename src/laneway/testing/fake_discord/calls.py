"""What the fake Discord was asked."""

from __future__ import annotations

import msgspec


class DiscordCall(msgspec.Struct, kw_only=True):
    """One request, once it was answered. `status` 0: the connection was cut instead."""

    route: str
    path: str
    at: float
    status: int = 0
