"""`laneway login --engine claude`: runs `claude auth login` with the Claude Code that Laneway uses."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import Any

import msgspec

from laneway.base.engines import CLAUDE
from laneway.base.errors import EngineLost, UsageError
from laneway.base.plain import plain
from laneway.base.programs import Binary
from laneway.base.settings import Settings
from laneway.claude import locate, version
from laneway.claude.login import LOGIN_REMEDY, is_login_missing
from laneway.claude.setup import ClaudeSetup

STATUS_S = 30.0
"""For `--status`: Claude Code answers in half a second."""


def login_claude(options: argparse.Namespace, settings: Settings) -> int:
    claude = locate.find(options.claude_bin, settings.claude_bin)
    if options.status:
        if options.rest:
            raise UsageError(f"--status takes no {options.rest[0]}.")
        return asyncio.run(status(claude, as_json=options.json))
    sys.stdout.flush()
    try:
        # Replaces this process: the terminal, the signals and the exit code are Claude Code's own.
        words = [claude.path, "auth", "login", *options.rest]
        os.execve(claude.path, words, locate.claude_environment(os.environ))
    except OSError as problem:
        raise version.cannot_run(claude.path, problem) from problem


async def status(claude: Binary, *, as_json: bool) -> int:
    try:
        async with asyncio.timeout(STATUS_S):
            hello = await ClaudeSetup(claude, os.environ).greet()
    except TimeoutError:
        raise EngineLost(f"no answer within {STATUS_S:g} s", engine=CLAUDE) from None
    is_missing = is_login_missing(hello)
    if as_json:
        print(msgspec.json.encode({"logged_in": not is_missing, "type": way_of(hello)}).decode())
    else:
        print(plain(sentence(hello)))
    return 1 if is_missing else 0


def sentence(hello: dict[str, Any]) -> str:
    """Whether somebody is logged in, and how, by the answer to the handshake."""
    if is_login_missing(hello):
        return f"Nobody is logged in to {CLAUDE}: {LOGIN_REMEDY}."
    return f"Logged in to {CLAUDE} with {way_of(hello)}."


def way_of(hello: dict[str, Any]) -> str | None:
    """By what Claude Code would call its model: a key, a subscription, or another provider."""
    account = hello.get("account")
    account = account if isinstance(account, dict) else {}
    if account.get("apiKeySource"):
        return str(account["apiKeySource"])
    provider = str(account.get("apiProvider") or "")
    if provider not in ("", "firstParty"):
        return provider
    source = str(account.get("subscriptionType") or account.get("tokenSource") or "none")
    return None if source == "none" else source
