"""The fake Discord is what discord.py takes for Discord, and refuses what Discord refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import discord
import pytest
import yarl
from discord import app_commands
from discord.gateway import DiscordWebSocket
from discord.http import Route

from laneway.testing.clock import HandClock
from laneway.testing.fake_discord import DiscordRate, FakeDiscord

DEADLINE_S = 30.0


class Bot(discord.Client):
    """An ordinary bot of discord.py's."""

    def __init__(self, intents: discord.Intents) -> None:
        super().__init__(intents=intents, guild_ready_timeout=0.05)
        self.tree = app_commands.CommandTree(self)
        self.heard: asyncio.Queue[Any] = asyncio.Queue()

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Without discord.py's five seconds before a second session."""

    async def on_message(self, message: discord.Message) -> None:
        if message.author != self.user:
            await self.heard.put(message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        await self.heard.put(interaction)


def all_intents() -> discord.Intents:
    intents = discord.Intents.default()
    intents.message_content = True
    return intents


@asynccontextmanager
async def bot_at(
    fake: FakeDiscord, monkeypatch: pytest.MonkeyPatch, make: Callable[[], Bot] | None = None
) -> AsyncIterator[Bot]:
    monkeypatch.setattr(Route, "BASE", fake.api_url)
    monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(fake.gateway_url))
    bot = make() if make is not None else Bot(all_intents())
    running = asyncio.create_task(bot.start(fake.token))
    try:
        await asyncio.wait(
            [running, asyncio.create_task(bot.wait_until_ready())], return_when="FIRST_COMPLETED"
        )
        if running.done():
            running.result()
        yield bot
    finally:
        await bot.close()
        await asyncio.gather(running, return_exceptions=True)


async def test_discord_py_sends_edits_replies_uploads_and_opens_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as fake:
        general = fake.channel("general")
        ada = fake.person("ada")
        async with bot_at(fake, monkeypatch) as bot:
            written = await ada.write(general, "hello")
            heard = await bot.heard.get()
            assert (heard.content, heard.author.name, heard.channel.name) == ("hello", "ada", "general")
            sent = await heard.reply("**hi** @everyone", allowed_mentions=discord.AllowedMentions.none())
            await sent.edit(content="hi again")
            thread = await heard.create_thread(name="work")
            await thread.send("here", file=discord.File(BytesIO(b"abc"), "notes.txt"))
            assert [message.content async for message in thread.history(limit=5)] == ["here"]
        replied = fake.shown(general)[0]
        assert replied.versions == ["**hi** @everyone", "hi again"]
        assert replied.pings == set()
        assert replied.reference is not None
        assert replied.reference["message_id"] == written.message_id
        assert fake.threads(general)[0].channel_id == written.message_id
        assert [file.data for file in fake.shown(fake.threads(general)[0])[0].files] == [b"abc"]
        assert fake.refused == []
        assert fake.gateway.closed_with == []


async def test_slash_commands_buttons_and_dialogs_pass_through_discord_py(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as fake:
        general, ada = fake.channel("general"), fake.person("ada")
        async with bot_at(fake, monkeypatch) as bot:

            @bot.tree.command(name="ask", description="Ask")
            async def ask(interaction: discord.Interaction, task: str) -> None:
                view = discord.ui.View(timeout=None)
                view.add_item(discord.ui.Button(label="Words", custom_id="words:1"))
                await interaction.response.send_message(f"asked {task}", view=view)

            await bot.tree.sync()
            asked = await (await ada.command(general, "ask", task="now")).answered()
            assert asked.text == "asked now"
            await bot.heard.get()
            pressed = await ada.press(fake.shown(general)[0], "Words")
            tapped = await bot.heard.get()
            assert tapped.data["custom_id"] == "words:1"
            modal = discord.ui.Modal(title="Words", custom_id="words:1")
            modal.add_item(discord.ui.TextInput(label="Which?", custom_id="w"))
            await tapped.response.send_modal(modal)
            await ada.submit(await pressed.answered(), w="these")
            filled = await bot.heard.get()
            assert filled.type is discord.InteractionType.modal_submit
            await filled.response.send_message("thanks", ephemeral=True)
        assert fake.text(general, ada).endswith("thanks")
        assert "thanks" not in fake.text(general)
        assert fake.unanswered == []


async def test_a_cut_connection_is_resumed_and_nothing_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as fake:
        general, ada = fake.channel("general"), fake.person("ada")
        async with bot_at(fake, monkeypatch) as bot:
            await fake.gateway.cut()
            await ada.write(general, "while you were away")
            heard = await bot.heard.get()
            assert heard.content == "while you were away"
            assert (fake.gateway.resumed, fake.gateway.identified) == (1, 1)


async def test_a_session_that_is_forgotten_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as fake, bot_at(fake, monkeypatch):
        fake.gateway.forget_sessions()
        await fake.gateway.cut()
        await fake.until(lambda: fake.gateway.identified == 2)
        assert fake.gateway.resumed == 0


async def test_without_the_privileged_intent_it_refuses_or_shows_no_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord(content_allowed=False) as fake:
        general, ada = fake.channel("general"), fake.person("ada")
        with pytest.raises(discord.PrivilegedIntentsRequired):
            async with bot_at(fake, monkeypatch):
                pass
        assert fake.gateway.closed_with == [4014]
        async with bot_at(fake, monkeypatch, lambda: Bot(discord.Intents.default())) as bot:
            await ada.write(general, "secret words")
            assert (await bot.heard.get()).content == ""


async def test_a_wrong_token_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as fake:
        right, fake.token = fake.token, "wrong"
        with pytest.raises(discord.LoginFailure):
            async with bot_at(fake, monkeypatch):
                pass
        assert right not in str(fake.calls)


async def test_wrong_requests_get_discords_own_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as fake:
        general, ada = fake.channel("general"), fake.person("ada")
        async with bot_at(fake, monkeypatch) as bot:
            channel = bot.get_channel(int(general.channel_id))
            assert isinstance(channel, discord.TextChannel)
            await channel.send("😀" * 2000)
            for content, code in (("x" * 2001, 50035), ("", 50006)):
                with pytest.raises(discord.HTTPException) as refused:
                    await channel.send(content)
                assert (refused.value.status, refused.value.code) == (400, code)
            view = discord.ui.View(timeout=None)
            view.add_item(discord.ui.Button(label="x" * 81, custom_id="a"))
            view.add_item(discord.ui.Button(label="y", custom_id="a"))
            with pytest.raises(discord.HTTPException) as refused:
                await channel.send("buttons", view=view)
            assert "label" in refused.value.text
            theirs = await ada.write(general, "mine")
            with pytest.raises(discord.Forbidden):
                await channel.get_partial_message(int(theirs.message_id)).edit(content="no, mine")
            thread = await channel.create_thread(name="work", type=discord.ChannelType.public_thread)
            message = await thread.send("one")
            stored = fake.threads(general)[0]
            await fake.archive(stored)
            with pytest.raises(discord.HTTPException) as refused:
                await message.edit(content="two")
            assert refused.value.code == 50083
            await thread.send("a message opens it again")
            assert not stored.is_archived
            await fake.archive(stored, locked=True)
            with pytest.raises(discord.HTTPException) as refused:
                await thread.send("no")
            assert refused.value.code == 160005


async def test_a_nonce_is_taken_once_also_after_an_answer_that_got_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as fake:
        general = fake.channel("general")
        async with bot_at(fake, monkeypatch) as bot:
            channel = bot.get_channel(int(general.channel_id))
            assert isinstance(channel, discord.TextChannel)
            fake.faults.cut("POST /channels/{channel}/messages", takes_effect=True)
            with pytest.raises(Exception, match=r"disconnected|reset|Disconnected"):
                await channel.send("once", nonce="n1")
            await channel.send("once", nonce="n1")
        assert [message.content for message in fake.shown(general)] == ["once"]


async def test_too_many_calls_get_429_until_their_window_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {"POST /channels/{channel}/messages": DiscordRate(2, 0.2)}
    async with asyncio.timeout(DEADLINE_S), FakeDiscord(rates=rates) as fake:
        general = fake.channel("general")
        async with bot_at(fake, monkeypatch) as bot:
            channel = bot.get_channel(int(general.channel_id))
            assert isinstance(channel, discord.TextChannel)
            fake.limits.hold_next("POST /channels/{channel}/messages", 0.05)
            for number in range(5):
                await channel.send(str(number))
        assert [message.content for message in fake.shown(general)] == list("01234")
        assert fake.limits.told >= 1
        assert fake.limits.broken == 0


async def test_an_answer_after_three_seconds_or_a_second_one_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = HandClock()
    async with asyncio.timeout(DEADLINE_S), FakeDiscord(clock=clock) as fake:
        general, ada = fake.channel("general"), fake.person("ada")
        async with bot_at(fake, monkeypatch) as bot:
            fake.world.commands = [{"id": "1", "name": "ask", "description": "x"}]
            in_time = await ada.command(general, "ask")
            interaction = await bot.heard.get()
            clock.advance(2.9)
            await interaction.response.defer(ephemeral=True)
            with pytest.raises(discord.HTTPException) as refused:
                await interaction._state.http.request(
                    Route(
                        "POST",
                        "/interactions/{id}/{token}/callback",
                        id=interaction.id,
                        token=interaction.token,
                    ),
                    json={"type": 5},
                )
            assert refused.value.code == 40060
            late = await ada.command(general, "ask")
            interaction = await bot.heard.get()
            clock.advance(3.1)
            with pytest.raises(discord.NotFound):
                await interaction.response.defer()
        assert not in_time.is_late
        assert fake.unanswered == [late]
