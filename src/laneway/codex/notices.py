"""Sentences for people about notifications of app-server that are no events of ours. Pure."""

from __future__ import annotations

from typing import Any

from laneway.base.plain import code_label


def notice_text(method: str, params: Any) -> str:
    """Empty for most notifications, which the user need not see."""
    if not isinstance(params, dict):
        return ""
    if method == "mcpServer/startupStatus/updated" and params.get("status") == "failed":
        return (
            f"The MCP server {code_label(str(params.get('name')))} did not start: "
            f"{params.get('error') or 'no reason given'}"
        )
    if method == "model/rerouted":
        return f"The model {params.get('fromModel')} was not used, but {params.get('toModel')}."
    return ""
