"""Setting up a bot on Telegram: its token, its first owner by a code, a message that proves it."""

from __future__ import annotations

import asyncio

import pytest

from laneway.base.errors import UsageError
from laneway.doors.chat.platforms.telegram.setting_up import introduced
from laneway.testing.clock import QuickClock
from laneway.testing.fake_telegram import FakeTelegram

DEADLINE_S = 30.0
CODE = "4711-0815-4242"


async def test_who_presses_start_is_found_and_answered_and_the_code_starts_no_conversation() -> None:
    """Telegram forgets the code's message: `laneway chat` would take it for the first words of its owner."""
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada, eve = telegram.person("ada"), telegram.person("eve")
        async with introduced(telegram.token, api_url=telegram.api_url) as here:
            assert (here.bot.name, here.bot.webhook) == ("laneway_bot", "")
            assert here.bot.chat_url(CODE) == f"https://t.me/laneway_bot?start={CODE}"
            waiting = asyncio.create_task(here.wait_for(CODE))
            await telegram.until(lambda: telegram.server.is_polled)
            eve.write(telegram.private(eve), "4711-0815-4243")
            ada.write(telegram.private(ada), f"/start {CODE}")
            eve.write(telegram.private(eve), "after it")
            found = await waiting
            assert (found.user_id, found.name) == (ada.user_id, "Ada")
            assert (found.chat_id, found.is_private) == (str(telegram.private(ada).chat_id), True)
            assert found.passed_over == 1
            assert [each["message"]["text"] for each in telegram.world.updates] == ["after it"]
            assert await here.prove(found, "It works.") == ""
        assert telegram.text(telegram.private(ada)) == "It works."
        assert telegram.text(telegram.private(eve)) == ""


async def test_a_code_typed_in_a_group_names_the_group() -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada, team = telegram.person("ada"), telegram.group("Team")
        async with introduced(telegram.token, api_url=telegram.api_url) as here:
            waiting = asyncio.create_task(here.wait_for(CODE))
            ada.write(team, f"@laneway_bot {CODE}")
            found = await waiting
            assert (found.chat_id, found.is_private) == (str(team.chat_id), False)
            assert await here.prove(found, "It works.") == ""
        assert telegram.text(team) == "It works."


async def test_a_code_that_somebody_forwards_makes_nobody_the_owner() -> None:
    """A forwarded message has the name of whoever passed it on, who may not know what it is."""
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada, ben = telegram.person("ada"), telegram.person("ben")
        async with introduced(telegram.token, api_url=telegram.api_url) as here:
            waiting = asyncio.create_task(here.wait_for(CODE))
            ben.write(telegram.private(ben), CODE, forwarded_from="Ada")
            ada.write(telegram.private(ada), CODE)
            assert (await waiting).user_id == ada.user_id


async def test_a_webhook_is_told_by_its_host_alone_and_can_be_removed() -> None:
    """The path of a webhook is often a secret."""
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        telegram.world.webhook = "https://bots.example.org/hook/s3cret"
        async with introduced(telegram.token, api_url=telegram.api_url) as here:
            assert here.bot.webhook == "bots.example.org"
            with pytest.raises(UsageError, match="Another program asks"):
                await here.wait_for(CODE)
            await here.remove_webhook()
        assert telegram.world.webhook == ""


async def test_another_program_that_polls_is_told_in_a_sentence() -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        FakeTelegram() as telegram,
        introduced(telegram.token, api_url=telegram.api_url) as here,
        introduced(telegram.token, api_url=telegram.api_url) as other,
    ):
        waiting = asyncio.create_task(here.wait_for(CODE))
        await telegram.until(lambda: telegram.server.is_polled)
        theirs = asyncio.create_task(other.wait_for(CODE))
        with pytest.raises(UsageError, match="Another program asks for this bot's messages"):
            await waiting
        theirs.cancel()
        await asyncio.gather(theirs, return_exceptions=True)


async def test_a_wait_goes_on_after_a_cut_and_a_limit() -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada = telegram.person("ada")
        telegram.faults.cut("getUpdates")
        telegram.faults.fail("getUpdates", 502)
        telegram.faults.fail("getUpdates", 429, description="Too Many Requests")
        async with introduced(telegram.token, api_url=telegram.api_url, clock=QuickClock()) as here:
            ada.write(telegram.private(ada), CODE)
            assert (await here.wait_for(CODE)).user_id == ada.user_id


async def test_a_message_that_cannot_be_sent_is_told() -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada = telegram.person("ada")
        async with introduced(telegram.token, api_url=telegram.api_url) as here:
            ada.write(telegram.private(ada), CODE)
            found = await here.wait_for(CODE)
            telegram.private(ada).blocked_by_user = True
            assert "bot was blocked by the user" in await here.prove(found, "It works.")
            telegram.faults.cut("sendMessage")
            assert "could not be reached" in await here.prove(found, "It works.")


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        ("7000000001:AAwrong-laneway-tests-only-token-00", "Telegram refused the token"),
        ("no token at all", "is not valid: it is a number, a colon"),
    ],
)
async def test_a_wrong_token_is_refused_without_being_told(token: str, problem: str) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        with pytest.raises(UsageError, match=problem) as refused:
            async with introduced(token, api_url=telegram.api_url):
                pass
    assert token not in str(refused.value)


async def test_without_a_network_it_says_so() -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        with pytest.raises(UsageError, match="Telegram could not be reached"):
            async with introduced(telegram.token, api_url="http://127.0.0.1:9"):
                pass


async def test_a_server_of_another_kind_is_told() -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        telegram.faults.fail("getMe", 403, description="Forbidden")
        with pytest.raises(UsageError, match="Forbidden"):
            async with introduced(telegram.token, api_url=telegram.api_url):
                pass
