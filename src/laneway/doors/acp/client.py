"""The client's name and capabilities from `initialize`, as a value.

A capability that is missing or malformed counts as absent.
"""

from __future__ import annotations

from typing import Any

import msgspec

JUPYTER = "Jupyter AI"
"""JupyterLab's client is known by its name: it declares no capability for what it needs (0.3.3)."""


class EditorClient(msgspec.Struct, frozen=True):
    protocol: int = 1
    """The negotiated version of ACP."""
    name: str = ""
    version: str = ""
    takes_forms: bool = False
    """Can show a form and return its values."""
    takes_urls: bool = False
    takes_notices: bool = False
    takes_compaction: bool = False
    takes_booleans: bool = False
    """Supports config options of type boolean."""
    takes_terminal_output: bool = False
    """Shows our terminals from `_meta`, as Zed does."""
    reads_raw_output: bool = False
    """Shows only the `rawOutput` of a tool call, and only if it is a string."""
    keeps_history: bool = False
    """Ignores the updates of `session/load`, and would show twice those that follow its answer."""
    logs_in_by_terminal: bool = False
    shows_terminal_logins: bool = False
    """Runs a terminal login by `_meta.terminal-auth`, as Zed did before the protocol had a way."""
    is_unstable: bool = False
    """Asks for methods that are not in the stable protocol yet."""


def client_of(params: dict[str, Any]) -> EditorClient:
    capabilities = _dict(params.get("clientCapabilities"))
    info = _dict(params.get("clientInfo"))
    session = _dict(capabilities.get("session"))
    elicitation = _dict(capabilities.get("elicitation"))
    meta = _dict(capabilities.get("_meta"))
    return EditorClient(
        name=str(info.get("name") or ""),
        version=str(info.get("version") or ""),
        takes_forms=_has_capability(elicitation, "form"),
        takes_urls=_has_capability(elicitation, "url"),
        takes_notices=_has_capability(session, "notices"),
        takes_compaction=_has_capability(session, "compaction"),
        takes_booleans=_has_capability(_dict(session.get("configOptions")), "boolean"),
        takes_terminal_output=meta.get("terminal_output") is True,
        reads_raw_output=info.get("name") == JUPYTER,
        keeps_history=info.get("name") == JUPYTER,
        logs_in_by_terminal=_dict(capabilities.get("auth")).get("terminal") is True,
        shows_terminal_logins=meta.get("terminal-auth") is True,
        is_unstable=_dict(meta.get("laneway")).get("unstable") is True,
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _has_capability(capabilities: dict[str, Any], name: str) -> bool:
    """Whether a capability is declared: in ACP by an object, empty or not."""
    return isinstance(capabilities.get(name), dict)
