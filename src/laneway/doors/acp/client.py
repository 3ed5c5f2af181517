"""What a client said of itself in `initialize`. Whatever is missing or odd counts as not there."""

from __future__ import annotations

from typing import Any

import msgspec

JUPYTER = "Jupyter AI"
"""JupyterLab's client says by its name what it has no capability for (jupyter-ai-acp-client 0.3.3)."""


class EditorClient(msgspec.Struct, frozen=True):
    protocol: int = 1
    """The version of ACP that was agreed on."""
    name: str = ""
    version: str = ""
    takes_forms: bool = False
    """Can show a form and return what a person filled in."""
    takes_urls: bool = False
    takes_notices: bool = False
    takes_compaction: bool = False
    takes_booleans: bool = False
    """Knows config options that are a plain switch."""
    takes_terminal_output: bool = False
    """Shows terminals of ours from `_meta`, as Zed does."""
    reads_raw_output: bool = False
    """Shows of a tool call only its `rawOutput`, and only where that is a text."""
    keeps_history: bool = False
    """Drops what `session/load` tells; but what comes in behind the answer it shows a second time."""
    logs_in_by_terminal: bool = False
    shows_terminal_logins: bool = False
    """Runs a login in a terminal by `_meta.terminal-auth`, as Zed did before there was a standard."""
    is_unstable: bool = False
    """Asked for methods that are not in the stable protocol yet."""


def client_of(params: dict[str, Any]) -> EditorClient:
    can = _dict(params.get("clientCapabilities"))
    info = _dict(params.get("clientInfo"))
    session = _dict(can.get("session"))
    elicitation = _dict(can.get("elicitation"))
    meta = _dict(can.get("_meta"))
    return EditorClient(
        name=str(info.get("name") or ""),
        version=str(info.get("version") or ""),
        takes_forms=_given(elicitation, "form"),
        takes_urls=_given(elicitation, "url"),
        takes_notices=_given(session, "notices"),
        takes_compaction=_given(session, "compaction"),
        takes_booleans=_given(_dict(session.get("configOptions")), "boolean"),
        takes_terminal_output=meta.get("terminal_output") is True,
        reads_raw_output=info.get("name") == JUPYTER,
        keeps_history=info.get("name") == JUPYTER,
        logs_in_by_terminal=_dict(can.get("auth")).get("terminal") is True,
        shows_terminal_logins=meta.get("terminal-auth") is True,
        is_unstable=_dict(meta.get("laneway")).get("unstable") is True,
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _given(table: dict[str, Any], name: str) -> bool:
    """ACP declares a capability by an object, empty or not."""
    return isinstance(table.get(name), dict)
