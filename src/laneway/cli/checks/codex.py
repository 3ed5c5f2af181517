"""Which Codex, whether its app-server answers, who is logged in, and what it complains about."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from laneway.base.errors import BinaryError, DiskFull, EngineLost, EngineRefused
from laneway.base.redact import redact
from laneway.cli.checks.model import UNTESTED, Case, Check, in_thread, sentence
from laneway.codex import binary, locate
from laneway.codex.engine import CodexEngine, app_server, home_of
from laneway.codex.link import Link

MAX_OTHERS = 4
"""Further executables that are asked for their version; ten seconds each if they hang."""
SHOWN_WARNING_CHARS = 300


async def look_for_binary(case: Case) -> list[Check]:
    versions = Check(
        "codex-versions",
        "ok",
        f"Tested with this Laneway: {', '.join(binary.TESTED)}; any from"
        f" {binary.spell(binary.OLDEST)} on can be used.",
        facts={"tested": binary.TESTED, "oldest": binary.spell(binary.OLDEST)},
    )
    try:
        configured = case.settings.codex_bin if case.settings else None
        found = case.found = locate.find(case.codex_bin, configured, case.environment)
        case.version = await in_thread(lambda: binary.probe(found))
        binary.check_age(case.version, found.path)
    except BinaryError as error:
        return [Check("codex", "error", str(error)), versions]
    return [_about(found, case.version), versions, *await in_thread(lambda: _others(case, found))]


def _about(found: locate.Binary, version: tuple[int, ...]) -> Check:
    spelled = binary.spell(version)
    is_tested = spelled in binary.TESTED
    facts = {"version": spelled, "path": found.path, "source": found.source, "tested": is_tested}
    message = f"Codex {spelled} at {found.path} (from {found.source})"
    if is_tested:
        return Check("codex", "ok", f"{message}, tested with this Laneway.", facts=facts)
    return Check("codex", "note", f"{message}, not tested with this Laneway.", UNTESTED, facts)


def _others(case: Case, found: locate.Binary) -> list[Check]:
    """What else is called `codex` on PATH: the usual reason why two programs see different versions."""
    seen = {os.path.realpath(found.path)}
    others: list[str] = []
    for folder in case.environment.get("PATH", "").split(os.pathsep):
        path = Path(folder, "codex")
        real = os.path.realpath(path)
        if folder and real not in seen and path.is_file() and os.access(path, os.X_OK):
            seen.add(real)
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


async def look_at_handshake(case: Case) -> list[Check]:
    if case.found is None:
        return [not_looked("app-server", "there is no Codex")]
    home = home_of(case.codex_environment)
    case.engine = CodexEngine(app_server(case.found, case.codex_environment), is_greeted=True, home=home)
    began = time.perf_counter()
    try:
        link = case.link = await case.engine.link()
    except DiskFull as full:
        return [Check("app-server", "error", "app-server does not start: the disk is full.", str(full))]
    except EngineLost as lost:
        case.stderr_tail = lost.stderr_tail
        words = " ".join(lost.last_words.split())
        problem = f"app-server does not start: {lost.how}{f', after it said: {words}' if words else ''}"
        return [Check("app-server", "error", sentence(problem), UNTESTED)]
    took = time.perf_counter() - began
    message = f"app-server {link.abilities.version} answered within {took * 1000:.0f} ms."
    facts = {"version": link.abilities.version, "seconds": round(took, 3)}
    return [Check("app-server", "ok", message, facts=facts)]


async def look_at_login(case: Case) -> list[Check]:
    if case.link is None or not case.link.is_alive:
        return [not_looked("login", "app-server does not answer")]
    return [on_login(await read_login(case.link))]


class Account(msgspec.Struct, frozen=True):
    type: str
    email: str | None = None
    planType: str | None = None


class Login(msgspec.Struct, frozen=True):
    """Codex's answer to `account/read`, as far as we need it."""

    account: Account | None = None
    requiresOpenaiAuth: bool | None = None


async def read_login(link: Link) -> Login:
    return msgspec.convert(await link.call("account/read", {"refreshToken": False}), Login)


def on_login(login: Login) -> Check:
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


def _with(account: Account) -> str:
    match account.type:
        case "apiKey":
            return "with an API key"
        case "chatgpt":
            whose = f" as {_masked(account.email)}" if account.email else ""
            return f"with ChatGPT{whose}{f', plan {account.planType}' if account.planType else ''}"
        case "amazonBedrock":
            return "with Amazon Bedrock"
        case other:
            return f"with {redact(other)}"


def _masked(email: str) -> str:
    """Enough for its owner to know it again."""
    name, _, domain = email.partition("@")
    return f"{name[:1]}…@{domain[:1]}…"


async def look_at_config(case: Case) -> list[Check]:
    if case.link is None or not case.link.is_alive:
        return [not_looked("codex-config", "app-server does not answer")]
    try:
        await case.link.call("config/read", {})
    except EngineRefused as refused:
        problem = (
            f"Codex cannot use its configuration and runs on defaults: {' '.join(refused.message.split())}"
        )
        return [Check("codex-config", "error", sentence(redact(problem)), "Correct that file.")]
    return [Check("codex-config", "ok", "Codex can read its configuration.")]


async def look_at_warnings(case: Case) -> list[Check]:
    """What Codex told meanwhile. Only notes: whether it hurts is for the other probes to prove."""
    if case.link is not None:
        case.said += case.link.warnings
        case.stderr_tail = case.link.stderr_tail
    return [
        Check("codex-says", "note", sentence("Codex says: " + redact(said)[:SHOWN_WARNING_CHARS]))
        for said in dict.fromkeys(case.said)
    ]


def not_looked(name: str, why: str) -> Check:
    return Check(name, "note", f"Not checked, because {why}.")
