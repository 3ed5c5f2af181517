"""Checks of Codex: its version, whether app-server answers, the login, the config, its own warnings."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from laneway.base.engines import DEFAULT_BACKEND
from laneway.base.errors import BinaryError, DiskFull, EngineLost, EngineRefused
from laneway.base.redact import redact
from laneway.cli.checks.model import UNTESTED, Check, CheckContext, in_thread, sentence
from laneway.codex import binary, locate
from laneway.codex.engine import CodexEngine, app_server, home_of
from laneway.codex.link import Link

MAX_OTHERS = 4
"""Further executables that are asked for their version; ten seconds each if they hang."""
SHOWN_WARNING_CHARS = 300


async def look_for_binary(context: CheckContext) -> list[Check]:
    versions = Check(
        "codex-versions",
        "ok",
        f"Tested with this Laneway: {', '.join(binary.TESTED)}; any from"
        f" {binary.spell(binary.OLDEST)} on can be used.",
        facts={"tested": binary.TESTED, "oldest": binary.spell(binary.OLDEST)},
    )
    try:
        configured = context.settings.codex_bin if context.settings else None
        codex = context.binary = locate.find(context.codex_bin, configured, context.environment)
        context.version = await in_thread(lambda: binary.probe(codex))
        binary.check_age(context.version, codex.path)
    except BinaryError as error:
        return [_missing(context, str(error)), versions]
    return [_about(codex, context.version), versions, *await in_thread(lambda: _others(context, codex))]


def _missing(context: CheckContext, problem: str) -> Check:
    """Without a usable Codex: only a note where sessions run on another engine and none was named."""
    settings = context.settings
    is_named = bool(context.codex_bin or (settings and settings.codex_bin))
    if settings is None or settings.engine == DEFAULT_BACKEND or is_named:
        return Check("codex", "error", problem)
    return Check("codex", "note", problem, "Only needed for Codex as an engine, and for background jobs.")


def _about(codex: locate.Binary, version: tuple[int, ...]) -> Check:
    spelled = binary.spell(version)
    is_tested = spelled in binary.TESTED
    facts = {"version": spelled, "path": codex.path, "source": codex.source, "tested": is_tested}
    message = f"Codex {spelled} at {codex.path} (from {codex.source})"
    if is_tested:
        return Check("codex", "ok", f"{message}, tested with this Laneway.", facts=facts)
    return Check("codex", "note", f"{message}, not tested with this Laneway.", UNTESTED, facts)


def _others(context: CheckContext, codex: locate.Binary) -> list[Check]:
    """Other programs called `codex` on PATH: the usual reason why two clients see different versions."""
    known = {os.path.realpath(codex.path)}
    others: list[str] = []
    for folder in context.environment.get("PATH", "").split(os.pathsep):
        path = Path(folder, "codex")
        real = os.path.realpath(path)
        if folder and real not in known and path.is_file() and os.access(path, os.X_OK):
            known.add(real)
            others.append(str(path))
    if not others:
        return []
    facts = {"others": [{"path": path, "version": _version_of(path)} for path in others[:MAX_OTHERS]]}
    listed = ", ".join(f"{other['path']} ({other['version'] or 'no version'})" for other in facts["others"])
    remedy = "Nothing to do, unless you meant another one: name it with --codex-bin."
    return [Check("codex-others", "note", f"Also on PATH, and not used: {listed}.", remedy, facts)]


def _version_of(path: str) -> str | None:
    try:
        return binary.spell(binary.probe(locate.Binary(path, "PATH")))
    except BinaryError:
        return None


async def look_at_handshake(context: CheckContext) -> list[Check]:
    if context.binary is None:
        return [not_checked("app-server", "there is no Codex")]
    home = home_of(context.codex_environment)
    context.engine = CodexEngine(
        app_server(context.binary, context.codex_environment), is_handshake_sent=True, home=home
    )
    began = time.perf_counter()
    try:
        link = context.link = await context.engine.link()
    except DiskFull as full:
        return [Check("app-server", "error", "app-server does not start: the disk is full.", str(full))]
    except EngineLost as lost:
        context.stderr_tail = lost.stderr_tail
        words = " ".join(lost.last_words.split())
        problem = f"app-server does not start: {lost.how}{f', after it said: {words}' if words else ''}"
        return [Check("app-server", "error", sentence(problem), UNTESTED)]
    took_s = time.perf_counter() - began
    message = f"app-server {link.abilities.version} answered within {took_s * 1000:.0f} ms."
    facts = {"version": link.abilities.version, "seconds": round(took_s, 3)}
    return [Check("app-server", "ok", message, facts=facts)]


async def look_at_login(context: CheckContext) -> list[Check]:
    if context.link is None or not context.link.is_alive:
        return [not_checked("login", "app-server does not answer")]
    return [on_login(await read_login(context.link))]


class AccountAnswer(msgspec.Struct, frozen=True):
    """The account in Codex's answer to `account/read`."""

    type: str
    email: str | None = None
    planType: str | None = None


class LoginAnswer(msgspec.Struct, frozen=True):
    """Codex's answer to `account/read`, as far as we need it."""

    account: AccountAnswer | None = None
    requiresOpenaiAuth: bool | None = None


async def read_login(link: Link) -> LoginAnswer:
    return msgspec.convert(await link.call("account/read", {"refreshToken": False}), LoginAnswer)


def on_login(login: LoginAnswer) -> Check:
    account = login.account
    facts = {"type": account.type if account else None, "needed": login.requiresOpenaiAuth}
    if account is not None:
        return Check("login", "ok", f"Logged in {_with(account)}.", facts=facts)
    if login.requiresOpenaiAuth is False:
        message = "Nobody is logged in, and the configured model provider does not need it."
        return Check("login", "ok", message, facts=facts)
    if login.requiresOpenaiAuth is None:
        return Check("login", "warning", "Codex did not say whether somebody is logged in.", UNTESTED, facts)
    remedy = "Run `laneway login`, or configure a model provider with its own key in Codex's config.toml."
    return Check("login", "warning", "Nobody is logged in.", remedy, facts)


def _with(account: AccountAnswer) -> str:
    match account.type:
        case "apiKey":
            return "with an API key"
        case "chatgpt":
            user = f" as {_masked(account.email)}" if account.email else ""
            return f"with ChatGPT{user}{f', plan {account.planType}' if account.planType else ''}"
        case "amazonBedrock":
            return "with Amazon Bedrock"
        case other:
            return f"with {redact(other)}"


def _masked(email: str) -> str:
    """Masked, but still recognisable for its owner."""
    name, _, domain = email.partition("@")
    return f"{name[:1]}…@{domain[:1]}…"


async def look_at_config(context: CheckContext) -> list[Check]:
    if context.link is None or not context.link.is_alive:
        return [not_checked("codex-config", "app-server does not answer")]
    try:
        await context.link.call("config/read", {})
    except EngineRefused as refused:
        problem = (
            f"Codex cannot use its configuration and runs on defaults: {' '.join(refused.message.split())}"
        )
        return [Check("codex-config", "error", sentence(redact(problem)), "Correct that file.")]
    return [Check("codex-config", "ok", "Codex can read its configuration.")]


async def look_at_warnings(context: CheckContext) -> list[Check]:
    """Warnings that Codex gave meanwhile. Only notes: the other probes prove whether something is wrong."""
    if context.link is not None:
        context.warnings += context.link.warnings
        context.stderr_tail = context.link.stderr_tail
    return [
        Check("codex-says", "note", sentence("Codex says: " + redact(warning)[:SHOWN_WARNING_CHARS]))
        for warning in dict.fromkeys(context.warnings)
    ]


def not_checked(name: str, reason: str) -> Check:
    return Check(name, "note", f"Not checked, because {reason}.")
