"""Checks of the bots that are set up: packages, token, people, what the service says of the bot, its health.

Asks for no messages, which would take them from a bot that runs: whether another program does is read from
what the bot has told last. No token is in any check.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from pathlib import Path

from laneway.app.bots import BOTS, access_of, bot_health, holder_of, variables
from laneway.app.chat_platforms import PLATFORMS, missing_modules
from laneway.base.counting import counted
from laneway.base.errors import StoreError, UsageError
from laneway.base.installed import installed_how
from laneway.base.paths import state_home
from laneway.base.setting_values import Source
from laneway.base.settings import Settings
from laneway.cli.bots import service_files
from laneway.cli.checks.model import Check, CheckContext, Severity, in_thread, sentence
from laneway.cli.clients.show import short

ANSWER_S = 15.0
"""For a service's answer; two bots have room within the time of this probe."""
FRESH_S = 7 * 24 * 3600.0
"""What a bot told longer ago says nothing of today."""
TITLES = {"telegram": "Telegram", "discord": "Discord"}


async def look(context: CheckContext) -> list[Check]:
    settings = context.settings
    if settings is None:
        return []
    checks = []
    for platform in BOTS:
        if settings.value(f"chat.{platform}.token") or settings.value(f"chat.{platform}.allowed_users"):
            checks += await _on_bot(platform, settings, state_home(context.environment, context.home))
    return [*checks, *await in_thread(lambda: on_service(context))]


async def _on_bot(platform: str, settings: Settings, state: Path) -> list[Check]:
    source = settings.values[("chat", platform, "token")].source
    checks = [*on_people(platform, settings), *await in_thread(lambda: on_file(platform, source))]
    token = str(settings.value(f"chat.{platform}.token") or "")
    if missing := missing_modules(PLATFORMS[platform]):
        told = f"The bot for {TITLES[platform]} needs {' and '.join(missing)}."
        remedy = f"Add the extra laneway[{platform}]: {installed_how().adding(platform)}"
        return [*checks, Check(platform, "error", told, remedy)]
    if not token:
        remedy = f"Run `laneway setup {platform}`, or set {variables(platform)[0]}."
        told = f"There is no token for the bot on {TITLES[platform]}."
        return [*checks, Check(platform, "warning", told, remedy)]
    try:
        async with asyncio.timeout(ANSWER_S):
            ask = _on_telegram if platform == "telegram" else _on_discord
            checks += await ask(token, settings)
    except TimeoutError:
        told = f"{TITLES[platform]} has not answered within {ANSWER_S:g} s."
        checks.append(Check(platform, "warning", told, "Check the network."))
    return [*checks, *await in_thread(lambda: on_health(platform, token, state))]


# ── what can be seen here ──────────────────────────────────────────────────


def on_people(platform: str, settings: Settings) -> list[Check]:
    name = f"{platform}-people"
    try:
        access = access_of(platform, settings)
    except UsageError as problem:
        return [Check(name, "warning", str(problem), f"Until then `laneway chat` refuses {platform}.")]
    facts = {"users": len(access.users), "owners": len(access.owners), "chats": len(access.chats)}
    told = (
        f"{counted(facts['users'], 'user')} may speak to the bot on {TITLES[platform]}, "
        f"{facts['owners']} may approve; {counted(facts['chats'], 'group is', 'groups are')} allowed."
    )
    checks = [Check(name, "ok", told, facts=facts)]
    if len(access.users) > 1 and not settings.value(f"chat.{platform}.owners"):
        told = f"No owners are set for {TITLES[platform]}, so every allowed user can approve."
        remedy = f"Name those who may: `laneway config set chat.{platform}.owners ID,ID`."
        checks.append(Check(name, "note", told, remedy))
    return checks


def on_file(platform: str, source: Source) -> list[Check]:
    """Whether other users can read the token."""
    if source.kind not in ("global", "named"):
        return []
    file = Path(source.name)
    if not stat.S_IMODE(file.stat().st_mode) & 0o077:
        return []
    told = f"Other users can read {short(file)}, where the token for {TITLES[platform]} is."
    return [Check(f"{platform}-token", "warning", told, f"Run `chmod 600 '{file}'`.")]


def on_health(platform: str, token: str, state: Path) -> list[Check]:
    """Who runs the bot, and what it has told last: a conflict with another program, above all."""
    name = f"{platform}-health"
    holder = holder_of(platform, token, state)
    try:
        line = bot_health(platform, state)
    except StoreError as problem:
        return [Check(name, "note", f"What the bot has told last cannot be read: {sentence(str(problem))}")]
    facts = {"running": bool(holder), "well": None if line is None else line.is_well}
    if line is None or (not holder and time.time() - line.since > FRESH_S):
        running = f"runs now ({holder})" if holder else "does not run now, as far as this machine can tell"
        return [Check(name, "ok", f"The bot on {TITLES[platform]} {running}.", facts=facts)]
    if line.is_well:
        told = f"The bot on {TITLES[platform]} runs now ({holder}): {line.text}."
        if not holder:
            told = f"The bot on {TITLES[platform]} does not run now; it told last: {line.text}."
        return [Check(name, "ok", told, facts=facts)]
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(line.since))
    told = f"The bot on {TITLES[platform]} has told a problem at {when}: {sentence(line.text)}"
    return [Check(name, "warning" if holder else "note", told, facts=facts)]


def on_service(context: CheckContext) -> list[Check]:
    service = service_files.place(context.home, context.environment)
    if not os.path.lexists(service.file):
        return []
    if not service_files.is_ours(service.file):
        return [Check("bot-service", "note", f"{short(service.file)} was not written by this Laneway.")]
    return [Check("bot-service", "ok", f"A service for your bots is written ({short(service.file)}).")]


# ── what the services say ──────────────────────────────────────────────────


async def _on_telegram(token: str, settings: Settings) -> list[Check]:
    from laneway.doors.chat.platforms.telegram.api import API_URL, TelegramApi
    from laneway.doors.chat.platforms.telegram.setting_up import UNREACHABLE, look_up

    try:
        async with TelegramApi(token, settings.chat_telegram_api_url or API_URL) as api:
            bot = await look_up(api)
    except UsageError as problem:
        severity: Severity = "warning" if str(problem) == UNREACHABLE else "error"
        return [Check("telegram", severity, sentence(str(problem)))]
    checks = [Check("telegram", "ok", f"The token of the bot on Telegram is valid: @{bot.name}.")]
    if bot.webhook:
        told = f"Telegram sends the bot's messages to a webhook at {bot.webhook}, so none reach Laneway."
        checks.append(Check("telegram", "warning", told, "`laneway setup telegram` removes it."))
    if bot.reads_groups and settings.chat_telegram_allowed_chats:
        told = "Privacy mode is off: Telegram tells the bot every word in its groups."
        remedy = (
            "Laneway needs only mentions, replies and commands: /setprivacy at @BotFather switches it on."
        )
        checks.append(Check("telegram-privacy", "note", told, remedy))
    return checks


async def _on_discord(token: str, settings: Settings) -> list[Check]:
    import aiohttp

    from laneway.doors.chat.platforms.discord.api import DiscordApi
    from laneway.doors.chat.platforms.discord.gateway import API_URL
    from laneway.doors.chat.platforms.discord.platform import BAD_TOKEN
    from laneway.doors.chat.platforms.discord.setting_up import look_up

    try:
        async with aiohttp.ClientSession(trust_env=True) as session:
            bot = await look_up(DiscordApi(session, settings.chat_discord_api_url or API_URL, token))
    except UsageError as problem:
        severity: Severity = "error" if str(problem) == BAD_TOKEN else "warning"
        return [Check("discord", severity, sentence(str(problem)))]
    checks = [Check("discord", "ok", f"The token of the bot on Discord is valid: {bot.name}.")]
    if not bot.reads_words:
        told = "“Message Content Intent” is off, so the bot cannot read what people write."
        remedy = "Switch it on in the developer portal: Bot, Privileged Gateway Intents."
        checks.append(Check("discord", "error", told, remedy))
    return checks
