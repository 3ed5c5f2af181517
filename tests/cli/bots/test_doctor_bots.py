"""`laneway doctor` on bots: token, people, webhook, privacy, another program that polls; never the token."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from laneway.app.bots import lock_name
from laneway.base.settings import load
from laneway.cli.checks import bots
from laneway.cli.checks.model import Check, CheckContext
from laneway.doors.chat.platforms.bots.health import BotHealth
from laneway.doors.chat.platforms.telegram.polling import CONFLICT
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database
from laneway.testing.fake_discord import FakeDiscord
from laneway.testing.fake_telegram import FakeTelegram
from tests.cli.bots.support import DEADLINE_S, environment, settings_file
from tests.cli.support import laneway


def told(checks: list[Check]) -> list[tuple[str, str]]:
    return [(check.name, check.severity) for check in checks]


def context(home: Path, **variables: str) -> CheckContext:
    found = CheckContext(home, home, {"HOME": str(home), **variables}, None)
    found.settings = load({}, found.environment, home, home)
    return found


def telegram_variables(telegram: FakeTelegram, **more: str) -> dict[str, str]:
    return {
        "LANEWAY_CHAT_TELEGRAM_API_URL": telegram.api_url,
        "LANEWAY_TELEGRAM_TOKEN": telegram.token,
        "LANEWAY_CHAT_TELEGRAM_ALLOWED_USERS": "1,2",
        "LANEWAY_CHAT_TELEGRAM_OWNERS": "1",
        **more,
    }


async def test_without_a_bot_nothing_is_asked_and_nothing_said(tmp_path: Path) -> None:
    assert await bots.look(context(tmp_path)) == []


async def test_a_bot_that_is_set_up_is_told_with_its_name_and_its_people(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        checks = await bots.look(context(tmp_path, **telegram_variables(telegram)))
        assert {check.severity for check in checks} == {"ok"}
        texts = [check.message for check in checks]
        assert texts[0] == "2 users may speak to the bot on Telegram, 1 may approve; 0 groups are allowed."
        assert texts[1] == "The token of the bot on Telegram is valid: @laneway_bot."
        assert telegram.token not in repr(checks)
        assert {call.method for call in telegram.calls} == {"getMe", "getWebhookInfo"}


async def test_a_webhook_and_a_switched_off_privacy_mode_are_told(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        telegram.world.webhook = "https://bots.example.org/hook/s3cret"
        variables = telegram_variables(telegram, LANEWAY_CHAT_TELEGRAM_ALLOWED_CHATS="-100")
        checks = await bots.look(context(tmp_path, **variables))
        worse = [check for check in checks if check.severity != "ok"]
        assert told(worse) == [("telegram", "warning"), ("telegram-privacy", "note")]
        assert "bots.example.org" in worse[0].message
        assert "s3cret" not in repr(checks)


@pytest.mark.parametrize(
    ("more", "expected", "words"),
    [
        (
            {"LANEWAY_TELEGRAM_TOKEN": "7000000001:AAwrong-laneway-tests-only-token-00"},
            ("telegram", "error"),
            "refused the token",
        ),
        ({"LANEWAY_TELEGRAM_TOKEN": "nonsense"}, ("telegram", "error"), "is not valid"),
        ({"LANEWAY_TELEGRAM_TOKEN": ""}, ("telegram", "warning"), "no token"),
        (
            {"LANEWAY_CHAT_TELEGRAM_API_URL": "http://127.0.0.1:9"},
            ("telegram", "warning"),
            "could not be reached",
        ),
        (
            {"LANEWAY_CHAT_TELEGRAM_ALLOWED_USERS": "", "LANEWAY_CHAT_TELEGRAM_OWNERS": ""},
            ("telegram-people", "warning"),
            "has no allowed_users",
        ),
        (
            {"LANEWAY_CHAT_TELEGRAM_OWNERS": "3"},
            ("telegram-people", "warning"),
            "owners must be allowed_users, too",
        ),
        ({"LANEWAY_CHAT_TELEGRAM_OWNERS": ""}, ("telegram-people", "note"), "every allowed user can approve"),
    ],
)
async def test_what_is_wrong_is_one_check_without_the_token(
    tmp_path: Path, more: dict[str, str], expected: tuple[str, str], words: str
) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        variables = telegram_variables(telegram, **more)
        checks = await bots.look(context(tmp_path, **variables))
        worse = [check for check in checks if check.severity != "ok"]
        assert told(worse) == [expected]
        assert words in worse[0].message
        assert telegram.token not in repr(checks)
        assert not variables["LANEWAY_TELEGRAM_TOKEN"] or variables["LANEWAY_TELEGRAM_TOKEN"] not in repr(
            checks
        )


async def test_a_token_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        file = settings_file(tmp_path)
        file.parent.mkdir(parents=True)
        file.write_text(f'[laneway.chat.telegram]\ntoken = "{telegram.token}"\nallowed_users = ["1"]\n')
        api_url = {"LANEWAY_CHAT_TELEGRAM_API_URL": telegram.api_url}
        for mode, expected in ((0o644, [("telegram-token", "warning")]), (0o600, [])):
            file.chmod(mode)
            checks = await bots.look(context(tmp_path, **api_url))
            assert told([check for check in checks if check.severity != "ok"]) == expected
            assert telegram.token not in repr(checks)


async def test_a_conflict_that_the_bot_has_told_is_shown_with_who_runs_it(tmp_path: Path) -> None:
    """By the process and its settings: a warning while it runs, a note afterwards."""
    state = tmp_path / ".local" / "state" / "laneway"
    locks = ConversationLockFiles(state / "bots")
    with Database(state / "laneway.db") as database:
        store = StoredConversations(database, locks)
        health = BotHealth("telegram", store, lambda line: None, time.time)
        health.is_now(CONFLICT, is_well=False)
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        env = {**environment(tmp_path, telegram), **telegram_variables(telegram)}
        release = locks.hold(lock_name("telegram", telegram.token))
        running = await laneway("doctor", "--rehearse", env=env)
        release()
        ended = await bots.look(context(tmp_path, **telegram_variables(telegram)))
    assert "! telegram-health" in running.out
    assert "another program asks for this bot's messages" in running.out
    assert running.code == 1
    (afterwards,) = [check for check in ended if check.name == "telegram-health"]
    assert afterwards.severity == "note"
    assert telegram.token not in running.out + running.err + repr(ended)


async def test_the_report_for_a_bug_has_no_token(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        env = {**environment(tmp_path, telegram), **telegram_variables(telegram)}
        report = tmp_path / "report.json"
        await laneway("doctor", "--rehearse", "--report", str(report), env=env)
        text = report.read_text()
        assert "telegram" in text
        assert telegram.token not in text
        assert telegram.token.split(":")[1] not in text


async def test_a_bot_on_discord_is_told_and_so_is_a_missing_intent(tmp_path: Path) -> None:
    for allowed, expected in ((True, []), (False, [("discord", "error")])):
        async with asyncio.timeout(DEADLINE_S), FakeDiscord(content_allowed=allowed) as discord:
            variables = {
                "LANEWAY_CHAT_DISCORD_API_URL": discord.api_url,
                "LANEWAY_DISCORD_TOKEN": discord.token,
                "LANEWAY_CHAT_DISCORD_ALLOWED_USERS": "1",
            }
            checks = await bots.look(context(tmp_path, **variables))
            assert told([check for check in checks if check.severity != "ok"]) == expected
            assert "The token of the bot on Discord is valid: laneway." in [each.message for each in checks]
            wrong = {**variables, "LANEWAY_DISCORD_TOKEN": "MTIzNDU2.wrong.token"}
            refused = await bots.look(context(tmp_path, **wrong))
            assert ("discord", "error") in told(refused)
            assert "MTIzNDU2" not in repr(refused)
