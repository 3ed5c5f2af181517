"""What the fake Telegram was asked."""

from __future__ import annotations

import msgspec

from laneway.testing.fake_telegram.world import Json


class BotApiCall(msgspec.Struct, kw_only=True):
    """One request, once it was answered. `status` 0: the connection was cut instead."""

    method: str
    params: Json
    at: float
    status: int = 0
