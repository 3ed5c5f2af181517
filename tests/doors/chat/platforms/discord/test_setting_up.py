"""Setting up a bot on Discord: its token, its first owner by a code, a message that proves it."""

from __future__ import annotations

import asyncio

import pytest

from laneway.base.errors import UsageError
from laneway.doors.chat.platforms.discord.setting_up import introduced
from laneway.testing.fake_discord import FakeDiscord

DEADLINE_S = 30.0
CODE = "code-4711"


async def test_who_types_the_code_in_a_channel_is_found_and_answered() -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as discord:
        ada, general = discord.person("ada"), discord.channel("general")
        async with introduced(
            discord.token, api_url=discord.api_url, gateway_url=discord.gateway_url
        ) as here:
            assert here.bot.name == "laneway"
            assert here.bot.reads_words
            assert f"client_id={discord.world.application_id}" in here.bot.invite_url
            waiting = asyncio.create_task(here.wait_for(CODE))
            await discord.wait_ready()
            await discord.person("eve").write(general, "code-4712")
            await ada.write(general, f"<@{discord.world.bot.user_id}> {CODE}")
            found = await waiting
            assert (found.user_id, found.name) == (ada.user_id, "ada")
            assert (found.channel_id, found.chat_id) == (general.channel_id, general.channel_id)
            assert await here.prove(found, "It works.") == ""
        assert discord.text(general) == "It works."


async def test_in_a_private_chat_no_channel_is_listed() -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as discord:
        ada = discord.person("ada")
        async with introduced(
            discord.token, api_url=discord.api_url, gateway_url=discord.gateway_url
        ) as here:
            waiting = asyncio.create_task(here.wait_for(CODE))
            await discord.wait_ready()
            await ada.write(discord.dm(ada), CODE)
            found = await waiting
            assert found.chat_id == ""
            assert await here.prove(found, "It works.") == ""
        assert discord.text(discord.dm(ada)) == "It works."


async def test_a_bot_that_cannot_read_words_says_so_before_it_waits() -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        FakeDiscord(content_allowed=False) as discord,
        introduced(discord.token, api_url=discord.api_url, gateway_url=discord.gateway_url) as here,
    ):
        assert not here.bot.reads_words
        with pytest.raises(UsageError, match="Message Content Intent"):
            await here.wait_for(CODE)


async def test_a_wrong_token_is_refused_without_being_told() -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as discord:
        with pytest.raises(UsageError, match="refused the token") as refused:
            async with introduced("NDI.wrong", api_url=discord.api_url, gateway_url=discord.gateway_url):
                pass
    assert "NDI.wrong" not in str(refused.value)


async def test_without_a_network_it_says_so() -> None:
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(UsageError, match="could not be asked"):
            async with introduced("NDI.x", api_url="http://127.0.0.1:9/api/v10"):
                pass
