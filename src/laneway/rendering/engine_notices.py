"""Texts for engine notifications that are no events of ours but matter to the user. Pure."""

from __future__ import annotations

from laneway.base.plain import code_label
from laneway.core.model import Other


def notice_text(notification: Other) -> str:
    """Empty for most notifications, which the user need not see."""
    method, params = notification.method, notification.params
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
