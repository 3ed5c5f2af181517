"""The model provider in Codex's configuration: whether it needs a login, and its host name.

Codex's `account/read` is about the provider of the user's own config; a thread may have another one
(by a profile, a call, a trusted project), so the provider that Codex names when it opens a thread is
looked up before anybody is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

OPENAI = "openai"
"""Codex's built-in provider; it cannot be redefined."""
_OPENAI_HOST = "api.openai.com"
_CHATGPT_HOST = "chatgpt.com"


def is_login_needed(account: Any) -> bool:
    """Whether Codex's answer to `account/read` says that somebody must log in first."""
    if not isinstance(account, dict):
        return False
    return account.get("account") is None and account.get("requiresOpenaiAuth") is True


def wants_login(provider: str, *configs: Mapping[str, Any]) -> bool:
    """Whether this provider uses a login; of several configs the last that defines it counts."""
    if provider in ("", OPENAI):
        return True
    return _table(provider, configs).get("requires_openai_auth") is True


def host(provider: str, account: Any, *configs: Mapping[str, Any]) -> str:
    """The host that Codex calls for this provider's models; empty if unknown."""
    if provider not in ("", OPENAI):
        return _host_of(_table(provider, configs).get("base_url"))
    for config in reversed(configs):
        base_host = _host_of(config.get("openai_base_url"))
        if base_host:
            return base_host
    account_json = account.get("account") if isinstance(account, dict) else None
    return (
        _CHATGPT_HOST
        if isinstance(account_json, dict) and account_json.get("type") == "chatgpt"
        else _OPENAI_HOST
    )


def _table(provider: str, configs: tuple[Mapping[str, Any], ...]) -> dict[str, Any]:
    merged_table: dict[str, Any] = {}
    for config in configs:
        tables = config.get("model_providers")
        table = tables.get(provider) if isinstance(tables, dict) else None
        merged_table |= table if isinstance(table, dict) else {}
    return merged_table


def _host_of(url: Any) -> str:
    """Only the host: a URL may contain a password or a key."""
    try:
        return (urlsplit(url).hostname or "") if isinstance(url, str) else ""
    except ValueError:
        return ""
