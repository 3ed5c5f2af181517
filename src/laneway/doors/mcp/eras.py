"""The two eras of the MCP protocol: versions with an `initialize` handshake, and the stateless version.

Pure. Up to 2025-11-25 a client introduces itself once, by `initialize`; from 2026-07-28 on
every request carries the version, the client and its capabilities in `_meta`, and the client can
be asked only by a result that says `input_required`. One connection serves both.
"""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.base.errors import RemoteError

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSION = "2026-07-28"
TASKS_VERSION = "2025-11-25"
"""The only version of the handshake eras with tasks."""
LISTS_VERSION = "2025-11-25"
"""The first version whose forms have lists of options."""
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
"""By this name a client and a server of the stateless era say that they know tasks."""
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

WITH_BATCHES = frozenset(HANDSHAKE_VERSIONS[:2])
"""Versions with JSON-RPC batches: 2025-06-18 took them out again."""


class McpClient(msgspec.Struct, frozen=True, kw_only=True):
    """The client of a request, as it describes itself."""

    version: str
    name: str = ""
    capabilities: dict[str, Any] = {}

    @property
    def is_stateless(self) -> bool:
        return self.version == STATELESS_VERSION

    @property
    def takes_forms(self) -> bool:
        """Whether it can ask its user by a form. An empty `elicitation` means forms, as it did at first."""
        elicitation = self.capabilities.get("elicitation")
        return isinstance(elicitation, dict) and ("form" in elicitation or "url" not in elicitation)

    @property
    def takes_lists(self) -> bool:
        """Whether a form may ask for several of its options at once."""
        return self.version >= LISTS_VERSION  # versions are dates

    @property
    def takes_urls(self) -> bool:
        elicitation = self.capabilities.get("elicitation")
        return isinstance(elicitation, dict) and "url" in elicitation

    @property
    def takes_tasks(self) -> bool:
        """Whether a call may be answered by a task unasked: such a client says so on each request."""
        extensions = _object(self.capabilities.get("extensions"))
        return self.is_stateless and isinstance(extensions.get(TASKS_EXTENSION), dict)

    @property
    def requests_tasks(self) -> bool:
        """Whether it is of the version in which a call itself asks to be answered by a task."""
        return self.version == TASKS_VERSION


UNKNOWN_CLIENT = McpClient(version=HANDSHAKE_VERSIONS[-1])
"""A client that sent no `initialize`: it is served, and cannot be asked anything."""


def client_from_initialize(params: dict[str, Any]) -> McpClient:
    """The client that sent `initialize`, with the version agreed on."""
    requested = params.get("protocolVersion")
    version = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return McpClient(
        version=version,
        name=_name(params.get("clientInfo")),
        capabilities=_object(params.get("capabilities")),
    )


def client_from_meta(meta: dict[str, Any]) -> McpClient | None:
    """The client of a request of the stateless era; none if the request is of the handshake eras."""
    version = meta.get(VERSION_KEY)
    if version is None:
        return None
    if version != STATELESS_VERSION:
        raise RemoteError(
            UNSUPPORTED_VERSION,
            f"Protocol version {version!s:.40} is not supported",
            {"supported": [STATELESS_VERSION], "requested": version},
        )
    return McpClient(
        version=version,
        name=_name(meta.get(CLIENT_KEY)),
        capabilities=_object(meta.get(CAPABILITIES_KEY)),
    )


def shape_result(result: dict[str, Any], client: McpClient, server: dict[str, Any]) -> dict[str, Any]:
    """A result in the shape of its era: the stateless one names its type and its server."""
    if not client.is_stateless:
        return result
    meta = {**result.get("_meta", {}), SERVER_KEY: server}
    return {"resultType": "complete", **result, "_meta": meta}


def cached(result: dict[str, Any], client: McpClient) -> dict[str, Any]:
    """A list or a resource, marked as not to be cached: it may change at any time."""
    return {**result, "ttlMs": 0, "cacheScope": "private"} if client.is_stateless else result


def _name(info: Any) -> str:
    return str(_object(info).get("name") or "")[:200]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
