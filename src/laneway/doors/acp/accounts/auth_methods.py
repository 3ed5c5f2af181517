"""The `authMethods` of `initialize`: browser, device code, API key and terminal. Pure.

The ids of the first three are those of the official adapter, because some clients rely on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laneway.doors.acp.client import EditorClient

API_KEY = "api-key"
BROWSER = "chat-gpt"
DEVICE_CODE = "chat-gpt-device-code"
TERMINAL = "terminal"
AGENT_METHODS = (API_KEY, BROWSER, DEVICE_CODE)
LOGIN_FLAG = "--login"
"""Added to the command that starts us: log in in the terminal, then exit."""


def methods(
    client: EditorClient, program: Sequence[str], environment: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The login methods that a client is offered. `program` is the command that starts this agent."""
    offered: list[dict[str, Any]] = []
    if not environment.get("NO_BROWSER"):
        offered.append(
            {
                "id": BROWSER,
                "name": "ChatGPT",
                "description": "Log in in a browser on this machine.",
            }
        )
    offered.append(
        {
            "id": DEVICE_CODE,
            "name": "ChatGPT (device code)",
            "description": "Open a page on any device and enter a code there.",
        }
    )
    offered.append(
        {
            "id": API_KEY,
            "name": "API key",
            "description": "Use the key in CODEX_API_KEY or OPENAI_API_KEY.",
            "_meta": {API_KEY: {"provider": "openai"}},
        }
    )
    offered += _in_a_terminal(client, program)
    return offered if client.protocol == 1 else [_by_method_id(method) for method in offered]


def _by_method_id(method: dict[str, Any]) -> dict[str, Any]:
    """A method in the form of protocol 2."""
    rest = {key: value for key, value in method.items() if key != "id"}
    return {"type": "agent", "methodId": method["id"], **rest}


def _in_a_terminal(client: EditorClient, program: Sequence[str]) -> list[dict[str, Any]]:
    method = {"id": TERMINAL, "name": "Terminal", "description": "Log in with `codex login` in a terminal."}
    if client.logs_in_by_terminal:
        return [{"type": "terminal", **method, "args": [LOGIN_FLAG]}]
    if client.shows_terminal_logins:
        command, *args = program
        login_command = {"command": command, "args": [*args, LOGIN_FLAG], "label": "Codex login"}
        return [{**method, "_meta": {"terminal-auth": login_command}}]
    return []
