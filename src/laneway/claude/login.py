"""Logins of Claude Code: whether there is one, and what to tell a person whose login is refused. Pure."""

from __future__ import annotations

from typing import Any

LOGIN_REMEDY = "run `laneway login --engine claude`"
REFUSED = "authentication_failed"
"""Claude Code's name for an error of a login that its model does not accept."""
_FIRST_PARTY = "firstParty"


def is_login_missing(hello: dict[str, Any]) -> bool:
    """Whether nobody is logged in, by the answer to the handshake: no model call is needed to know."""
    account = hello.get("account")
    if not isinstance(account, dict) or account.get("apiProvider", _FIRST_PARTY) != _FIRST_PARTY:
        return False
    return account.get("tokenSource") == "none" and not account.get("apiKeySource")


def with_remedy(kind: str, message: str) -> str:
    """The text of a failure. Claude Code names a command of its own, which is not there for its host."""
    if kind != REFUSED:
        return message
    end = "" if message.endswith((".", "!", "?")) else "."
    return f"{message}{end} If your login has expired, {LOGIN_REMEDY}."
