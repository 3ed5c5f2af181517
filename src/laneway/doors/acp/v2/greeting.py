"""`initialize` in ACP 2: reads the client's capabilities and renders the answer. Pure, and quick to load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laneway.doors.acp.accounts.auth_methods import methods
from laneway.doors.acp.client import EditorClient

PROTOCOL = 2


def client_of(params: dict[str, Any]) -> EditorClient:
    """The client's capabilities; malformed ones count as absent. All clients take notices and booleans."""
    info, capabilities = _dict(params.get("info")), _dict(params.get("capabilities"))
    elicitation = _dict(capabilities.get("elicitation"))
    return EditorClient(
        protocol=PROTOCOL,
        name=str(info.get("name") or ""),
        version=str(info.get("version") or ""),
        takes_forms=isinstance(elicitation.get("form"), dict),
        takes_urls=isinstance(elicitation.get("url"), dict),
        takes_notices=True,
        takes_compaction=True,
        takes_booleans=True,
        logs_in_by_terminal=isinstance(_dict(capabilities.get("auth")).get("terminal"), dict),
    )


def answer(
    client: EditorClient, version: str, program: Sequence[str], environment: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "protocolVersion": PROTOCOL,
        "info": {"name": "laneway", "title": "Codex by Laneway", "version": version},
        "capabilities": {
            "session": {
                "prompt": {"image": {}, "embeddedContext": {}},
                "mcp": {"stdio": {}, "http": {}},
                "delete": {},
                "additionalDirectories": {},
            }
        },
        "authMethods": methods(client, program, environment),
    }


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
