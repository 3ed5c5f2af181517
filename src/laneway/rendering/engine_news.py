"""What a user should know of an engine's news that are no events of ours. Pure."""

from __future__ import annotations

from laneway.base.plain import code_label
from laneway.core.model import Other


def words_of(news: Other) -> str:
    """Empty for the many that nobody need know."""
    method, params = news.method, news.params
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
