"""`initialize` in protocol 2: what the client can do, and what we can. Pure, and quick to load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laneway.doors.acp.accounts.auth_methods import methods
from laneway.doors.acp.client import EditorClient

PROTOCOL = 2


def client_of(params: dict[str, Any]) -> EditorClient:
    """Whatever is missing or odd counts as not there. Notices and switches need no word of the client's."""
    info, can = _dict(params.get("info")), _dict(params.get("capabilities"))
    elicitation = _dict(can.get("elicitation"))
    return EditorClient(
        protocol=PROTOCOL,
        name=str(info.get("name") or ""),
        version=str(info.get("version") or ""),
        takes_forms=isinstance(elicitation.get("form"), dict),
        takes_urls=isinstance(elicitation.get("url"), dict),
        takes_notices=True,
        takes_compaction=True,
        takes_booleans=True,
        logs_in_by_terminal=isinstance(_dict(can.get("auth")).get("terminal"), dict),
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
