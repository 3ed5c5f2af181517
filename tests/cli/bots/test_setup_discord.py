"""`laneway setup discord` as people run it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from laneway.testing.fake_discord import FakeDiscord
from tests.cli.bots.support import DEADLINE_S, begin, code_on, end, environment, settings_file, table
from tests.cli.support import in_terminal, laneway


async def test_a_person_is_led_from_the_token_to_a_message_in_the_channel(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as discord:
        ada, general = discord.person("ada"), discord.channel("general")
        env = environment(tmp_path, discord)
        async with in_terminal("setup", "discord", env=env, cwd=tmp_path) as screen:
            await screen.wait_for("Message Content Intent")
            await screen.wait_for("Paste the token")
            screen.type(f"{discord.token}\r")
            await screen.wait_for("This is the token of laneway")
            await screen.wait_for("oauth2/authorize")
            await screen.wait_for("Waiting for it")
            await discord.wait_ready()
            await ada.write(general, f"<@{discord.world.bot.user_id}> {code_on(screen.text)}")
            assert (await screen.wait_end()).code == 0
            assert "Discord is set up (~/.config/laneway/config.toml)" in screen.text
            shown = screen.raw.decode("utf-8", "replace")
        assert discord.token not in shown
        assert "Laneway is set up here" in discord.text(general)
        assert table(tmp_path, "discord") == {
            "token": discord.token,
            "allowed_users": [ada.user_id],
            "owners": [ada.user_id],
            "allowed_chats": [general.channel_id],
        }


async def test_in_a_private_chat_no_channel_is_allowed(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as discord:
        ada, env = discord.person("ada"), environment(tmp_path, discord)
        private = discord.dm(ada)
        process, _, code = await begin("discord", "--json", token=discord.token, env=env, home=tmp_path)
        await discord.wait_ready()
        await ada.write(private, code)
        returned, out, err = await end(process, bytearray())
        assert returned == 0
        assert json.loads(out)["chat_id"] == ""
        assert discord.token not in out + err
        assert "allowed_chats" not in table(tmp_path, "discord")


async def test_what_goes_wrong_is_one_sentence_without_the_token(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord(content_allowed=False) as discord:
        env = environment(tmp_path, discord)
        away = {"LANEWAY_CHAT_DISCORD_API_URL": "http://127.0.0.1:9/api/v10"}
        for token, more, problem in (
            ("MTIzNDU2.wrong.token", {}, "Discord refused the token"),
            (discord.token, away, "could not be asked"),
            (discord.token, {}, "switch on “Message Content Intent”"),
        ):
            ran = await laneway("setup", "discord", "--token-stdin", env={**env, **more}, stdin=f"{token}\n")
            assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
            assert problem in ran.err
            assert token not in ran.out + ran.err
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as discord:
        env = environment(tmp_path, discord)
        words = ("--token-stdin", "--deadline", "0.5")
        ran = await laneway("setup", "discord", *words, env=env, stdin=f"{discord.token}\n")
        assert (ran.code, ran.err) == (
            1,
            "laneway: Nobody has typed the code within 0.5 s: nothing was changed.\n",
        )
    assert not settings_file(tmp_path).exists()
