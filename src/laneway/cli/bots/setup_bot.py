"""`laneway setup telegram` and `laneway setup discord`: token, first owner, proof, in this order.

The token is asked for without an echo, or comes from the environment or standard input; it is on no command
line and in no output. The owner is whoever types a code that only this terminal shows.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import secrets
import sys
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.app.bot_setup import GETTING_A_TOKEN, TITLES, BotGuest, BotIntroduction, introduction
from laneway.app.bots import variables
from laneway.app.chat_platforms import require
from laneway.base.errors import LanewayError, SettingError, UsageError
from laneway.base.plain import plain
from laneway.base.settings import Settings
from laneway.cli.bots import bot_table
from laneway.cli.bots.bot_dialog import BotDialog
from laneway.cli.bots.bot_table import SavedTable, Table
from laneway.cli.clients.show import short
from laneway.cli.command_settings import settings_in

CODE_S = 600.0
"""For the code to be typed: time to find the bot, or to add it to a server."""
TRIES = 3
"""For a token that is typed."""
MAX_TOKEN_CHARS = 500
PROOF = "✅ Laneway is set up here. Start it with `laneway chat --platform {}`, then send a message."

Action: TypeAlias = Literal["added", "replaced", "unchanged", "put back", "removed", "absent"]


class BotSetupResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, as `--json` prints it. Has no token."""

    client: str
    file: str
    action: Action
    bot: str = ""
    user_id: str = ""
    name: str = ""
    chat_id: str = ""
    """The group or channel that is allowed now; empty in private."""
    is_token_stored: bool = False
    can_undo: bool = False
    problem: str = ""
    notes: list[str] = []

    @property
    def exit_code(self) -> int:
        return 1 if self.action == "put back" else 0


def run(options: argparse.Namespace) -> int:
    platform: str = options.client
    dialog = BotDialog(is_json=options.json)
    result = _remove(platform) if options.remove else asyncio.run(set_up(options, dialog))
    dialog.result(result, [] if options.json else list(_lines(platform, result)))
    return result.exit_code


async def set_up(options: argparse.Namespace, dialog: BotDialog) -> BotSetupResult:
    platform: str = options.client
    require([platform])
    before = bot_table.existing(platform)  # a file that cannot be edited is told before anything is asked
    settings = settings_in({})
    async with contextlib.AsyncExitStack() as stack:
        token, is_stored, bot = await _introduced(options, settings, before, dialog, stack)
        await _solve(bot, dialog, is_forced=options.force)
        guest = await _guest(bot, dialog, options.deadline or CODE_S)
        table = _table(before, token if is_stored else None, guest, is_forced=options.force)
        saved = bot_table.save(platform, table)
        try:
            problem = await bot.prove(PROOF.format(platform))
        except BaseException:
            _take_back(saved)  # interrupted: what is not proved does not stay
            raise
        notes = [*saved.notes, *bot.notes, *_notes(platform, guest, is_stored=is_stored)]
        action: Action = "unchanged" if saved.applied is None else "replaced" if before else "added"
        if problem and not options.force:
            _take_back(saved)
            action = "put back"
        return BotSetupResult(
            client=platform,
            file=str(saved.file),
            action=action,
            bot=bot.name,
            user_id=guest.user_id,
            name=guest.name,
            chat_id=guest.group_id,
            is_token_stored=is_stored and action != "put back",
            can_undo=saved.applied is not None and action != "put back",
            problem=problem,
            notes=notes,
        )


def _take_back(saved: SavedTable) -> None:
    if saved.applied is not None:
        saved.applied.take_back()


# ── the token ──────────────────────────────────────────────────────────────


async def _introduced(
    options: argparse.Namespace,
    settings: Settings,
    before: Table,
    dialog: BotDialog,
    stack: contextlib.AsyncExitStack,
) -> tuple[str, bool, BotIntroduction]:
    """The token, whether it is to be stored, and its bot. One that was typed wrongly is asked for again."""
    platform: str = options.client
    for tries in range(TRIES, 0, -1):
        token, is_stored, is_typed = await _token(options, settings, before, dialog)
        try:
            bot = await stack.enter_async_context(introduction(platform, token, settings))
        except UsageError as problem:
            if not is_typed or tries == 1:
                raise
            dialog.say(f"✘ {plain(str(problem))}")
            continue
        dialog.say(f"✔ This is the token of {plain(bot.name)}.\n")
        return token, is_stored, bot
    raise AssertionError("the last try raises")


async def _token(
    options: argparse.Namespace, settings: Settings, before: Table, dialog: BotDialog
) -> tuple[str, bool, bool]:
    """The token, whether it is to be stored, and whether a person has typed it."""
    platform: str = options.client
    if options.token_stdin:
        if sys.stdin.isatty():
            raise UsageError(
                "--token-stdin is for a pipe, as a terminal would show it: leave it out to be asked."
            )
        token = sys.stdin.readline(MAX_TOKEN_CHARS).strip()
        if not token:
            raise UsageError("--token-stdin: there is no token on standard input.")
        return token, True, False
    variable = next((name for name in variables(platform) if os.environ.get(name, "").strip()), None)
    if variable is not None:
        dialog.say(f"The token comes from {variable}, and is not stored.")
        return os.environ[variable].strip(), False, False
    known = str(before.get("token") or settings.value(f"chat.{platform}.token") or "")
    if not dialog.can_ask:
        if not known:
            raise UsageError(
                "There is no terminal to ask for the token. Pass it by --token-stdin "
                f"or {variables(platform)[0]}."
            )
        dialog.say("The token that is stored is used.")
        return known, True, False
    dialog.say(f"You need a bot of your own on {TITLES[platform]}.")
    for number, step in enumerate(GETTING_A_TOKEN[platform], 1):
        dialog.say(f"  {number}. {step}")
    keeps = "Paste the token; it is not shown. Enter alone keeps the stored one: "
    typed = await dialog.hidden(keeps if known else "Paste the token; it is not shown: ")
    if typed:
        return typed, True, True
    if not known:
        raise UsageError("No token was given: nothing was changed.")
    return known, True, False


# ── the owner ──────────────────────────────────────────────────────────────


async def _solve(bot: BotIntroduction, dialog: BotDialog, *, is_forced: bool) -> None:
    problem = bot.problem
    if problem is None:
        return
    if not problem.fix:
        raise UsageError(problem.text)
    if not is_forced:
        if not dialog.can_ask:
            raise UsageError(f"{problem.text} With --force it is removed.")
        dialog.say(problem.text)
        if not await dialog.agrees(problem.question):
            raise UsageError("Nothing was changed.")
    await bot.solve()


async def _guest(bot: BotIntroduction, dialog: BotDialog, deadline_s: float) -> BotGuest:
    """Whoever types a code that only this terminal shows."""
    code = new_code()
    dialog.say("Now show who you are:")
    for step in bot.steps(code):
        dialog.say(f"  {step}")
    minutes = f"{deadline_s / 60:g} minutes" if deadline_s >= 60 else f"{deadline_s:g} s"
    dialog.say(f"Waiting for it, at most {minutes} …")
    try:
        async with asyncio.timeout(deadline_s):
            guest = await bot.wait_for(code)
    except TimeoutError:
        raise LanewayError(f"Nobody has typed the code within {minutes}: nothing was changed.") from None
    dialog.say(f"✔ {plain(guest.name)} (user {guest.user_id}) has typed it.\n")
    return guest


def new_code() -> str:
    """Twelve digits: no letter case for a phone to change, and too many for a stranger to guess."""
    digits = "".join(secrets.choice("0123456789") for _ in range(12))
    return f"{digits[:4]}-{digits[4:8]}-{digits[8:]}"


# ── the settings ───────────────────────────────────────────────────────────


def _table(before: Mapping[str, Any], token: str | None, guest: BotGuest, *, is_forced: bool) -> Table:
    """The table with this person in it; with `--force` they are the only one."""
    table: Table = dict(before)
    if token is not None:
        table["token"] = token
    if is_forced:
        for key in ("allowed_users", "owners", "allowed_chats"):
            table.pop(key, None)
    others = _ids(table, "allowed_users")
    table["allowed_users"] = _with(others, guest.user_id)
    if "owners" in table or not others:
        table["owners"] = _with(_ids(table, "owners"), guest.user_id)
    if guest.group_id:
        table["allowed_chats"] = _with(_ids(table, "allowed_chats"), guest.group_id)
    return table


def _ids(table: Mapping[str, Any], key: str) -> list[str]:
    value = table.get(key)
    return [str(each) for each in value] if isinstance(value, list) else []


def _with(ids: list[str], new: str) -> list[str]:
    return ids if new in ids else [*ids, new]


def _notes(platform: str, guest: BotGuest, *, is_stored: bool) -> list[str]:
    notes = []
    if guest.passed_over:
        notes.append(f"{guest.passed_over} older messages had waited for the bot; they were passed over.")
    try:
        holds = settings_in({})
    except SettingError as problem:
        return [*notes, str(problem)]
    if guest.user_id not in holds.value(f"chat.{platform}.allowed_users"):
        source = holds.values[("chat", platform, "allowed_users")].source
        notes.append(f"chat.{platform}.allowed_users still comes from {source}, without this user.")
    if not is_stored:
        notes.append(f"Set {variables(platform)[0]} wherever `laneway chat` runs: the token is not stored.")
    return notes


def _remove(platform: str) -> BotSetupResult:
    saved = bot_table.remove(platform)
    if saved.applied is None:
        return BotSetupResult(client=platform, file=str(saved.file), action="absent")
    where = "/revoke at @BotFather" if platform == "telegram" else "“Reset Token” in the developer portal"
    notes = [
        *saved.notes,
        f"The bot and its token still exist. {where} makes the token worthless.",
    ]
    return BotSetupResult(client=platform, file=str(saved.file), action="removed", can_undo=True, notes=notes)


# ── output ─────────────────────────────────────────────────────────────────


def _lines(platform: str, result: BotSetupResult) -> list[str]:
    from pathlib import Path

    file, title = short(Path(result.file)), TITLES[platform]
    lines = [
        {
            "added": f"{title} is set up ({file}); a message in the chat says so.",
            "replaced": f"{title} is set up anew ({file}); a message in the chat says so.",
            "unchanged": f"{title} was set up like this already ({file}); a message in the chat says so.",
            "put back": f"{title} was not set up, and {file} is as it was: {result.problem}",
            "removed": f"{title} is no longer set up ({file}).",
            "absent": f"There is nothing to remove: {title} is not set up in {file}.",
        }[result.action]
    ]
    if result.problem and result.action != "put back":
        lines[0] = f"{title} is set up ({file}), but no message could be sent: {result.problem}"
    lines += [f"  {note}" for note in result.notes]
    if result.action in ("added", "replaced", "unchanged"):
        lines += [
            f"  laneway chat --platform {platform:<10} starts it",
            "  laneway setup service             has it run without a terminal",
        ]
    if result.can_undo:
        lines.append("  `laneway setup --undo` takes this back.")
    return [plain(line) for line in lines]
