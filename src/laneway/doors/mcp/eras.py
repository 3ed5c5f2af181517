"""The two eras of MCP: those that shake hands first, and the one that says everything with each request.

Pure. Up to 2025-11-25 a client introduces itself once, by `initialize`; from 2026-07-28 on
every request carries the version, the client and its capabilities in `_meta`, and nothing can
be asked of the client but by a result that says `input_required`. One pipe serves both.
"""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.base.errors import RemoteError

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSION = "2026-07-28"
UNSUPPORTED_VERSION = -32022

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

WITH_BATCHES = frozenset(HANDSHAKE_VERSIONS[:2])
"""2025-06-18 took batches out again."""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, as it said of itself."""

    version: str
    name: str = ""
    capabilities: dict[str, Any] = {}

    @property
    def is_stateless(self) -> bool:
        return self.version == STATELESS_VERSION

    @property
    def takes_forms(self) -> bool:
        """Whether it can ask its person. An empty `elicitation` means forms, as it did at first."""
        elicitation = self.capabilities.get("elicitation")
        return isinstance(elicitation, dict) and ("form" in elicitation or "url" not in elicitation)

    @property
    def takes_urls(self) -> bool:
        elicitation = self.capabilities.get("elicitation")
        return isinstance(elicitation, dict) and "url" in elicitation


STRANGER = Client(version=HANDSHAKE_VERSIONS[-1])
"""A client of the first era that has not introduced itself: it is served, and can be asked nothing."""


def introduced(params: dict[str, Any]) -> Client:
    """The client behind an `initialize`, with the version that both of us speak."""
    asked = params.get("protocolVersion")
    version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return Client(
        version=version,
        name=_name(params.get("clientInfo")),
        capabilities=_object(params.get("capabilities")),
    )


def of_request(meta: dict[str, Any]) -> Client | None:
    """The client behind a request of the stateless era; none if it is of the other one."""
    version = meta.get(VERSION_KEY)
    if version is None:
        return None
    if version != STATELESS_VERSION:
        raise RemoteError(
            UNSUPPORTED_VERSION,
            f"Protocol version {version!s:.40} is not supported",
            {"supported": [STATELESS_VERSION], "requested": version},
        )
    return Client(
        version=version,
        name=_name(meta.get(CLIENT_KEY)),
        capabilities=_object(meta.get(CAPABILITIES_KEY)),
    )


def shaped(result: dict[str, Any], client: Client, server: dict[str, Any]) -> dict[str, Any]:
    """A result as its era wants it: the stateless one names its type and its server."""
    if not client.is_stateless:
        return result
    meta = {**result.get("_meta", {}), SERVER_KEY: server}
    return {"resultType": "complete", **result, "_meta": meta}


def cached(result: dict[str, Any], client: Client) -> dict[str, Any]:
    """A list or a resource, with how long it may be kept: not at all, what it tells may change."""
    return {**result, "ttlMs": 0, "cacheScope": "private"} if client.is_stateless else result


def _name(info: Any) -> str:
    return str(_object(info).get("name") or "")[:200]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
