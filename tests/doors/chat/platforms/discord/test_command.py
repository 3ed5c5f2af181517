"""`laneway chat --platform discord` as people run it: a process of its own, with the real engines."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.testing.fake_discord import DiscordMessage, FakeDiscord
from tests.cli.support import laneway
from tests.doors.chat.platforms.bot_scenes import chatting

DEADLINE_S = 90.0


def settings(discord: FakeDiscord, tmp_path: Path, **env: str) -> dict[str, str]:
    return {
        "HOME": str(tmp_path),
        "LANEWAY_DISCORD_TOKEN": discord.token,
        "LANEWAY_CHAT_DISCORD_API_URL": discord.api_url,
        "LANEWAY_CHAT_DISCORD_GATEWAY_URL": discord.gateway_url,
        "LANEWAY_CHAT_DISCORD_ALLOWED_USERS": discord.person("ada").user_id,
        "LANEWAY_CHAT_DISCORD_ALLOWED_CHATS": discord.channel("general").channel_id,
        **env,
    }


@asynccontextmanager
async def serving(discord: FakeDiscord, tmp_path: Path, *words: str, **env: str) -> AsyncIterator[Process]:
    env = settings(discord, tmp_path, **env)
    async with chatting("discord", discord.wait_ready, tmp_path, *words, env=env) as process:
        yield process


async def test_people_work_with_both_engines_and_no_agent_sees_the_token(tmp_path: Path) -> None:
    """Neither in its environment nor in that of what it starts; it is in no line of ours either."""
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as discord:
        ada, general = discord.person("ada"), discord.channel("general")
        async with serving(discord, tmp_path, "--rehearse") as process:
            mention = f"<@{discord.world.bot.user_id}>"
            await ada.write(general, f"{mention} /codex look\n%run env >codex.txt\n%say Codex has looked.")
            thread = await discord.thread_in(general)
            await discord.message_with(thread, "Codex has looked.")
            await discord.message_with(thread, "CODEX COMPLETED")
            await ada.write(thread, "look\n%run env >claude.txt\n%say Claude has looked.")

            def asked() -> list[DiscordMessage]:
                return [each for each in discord.shown(thread) if "Allow once" in str(each.components)]

            await discord.until(lambda: bool(asked()))
            tapped = await (await ada.press(asked()[0], "Allow once")).answered()
            assert not tapped.is_late
            await discord.message_with(thread, "Claude has looked.")
            for name in ("codex.txt", "claude.txt"):
                environment = (tmp_path / name).read_text()
                assert "PATH=" in environment
                assert discord.token not in environment
                assert "DISCORD_TOKEN" not in environment
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 130
            assert process.stderr is not None
            told = (await process.stderr.read()).decode()
        assert "discord: ready as laneway" in told
        assert discord.token not in told
        assert "Traceback" not in told
        assert discord.unanswered == []


@pytest.mark.covers("003-case.11")
@pytest.mark.parametrize("is_on", [True, False])
async def test_what_codex_has_changed_is_shown_as_pictures_or_as_text(tmp_path: Path, is_on: bool) -> None:
    """As `chat.diff_images` says."""
    (tmp_path / "hello.py").write_text("one = 1\n")
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as discord:
        ada, general = discord.person("ada"), discord.channel("general")
        chosen = {"LANEWAY_CHAT_DIFF_IMAGES": str(is_on).lower()}
        async with serving(discord, tmp_path, "--rehearse", **chosen):
            mention = f"<@{discord.world.bot.user_id}>"
            await ada.write(general, f"{mention} /codex greet\n%edit hello.py one = 1 => one = 2\n%say Done.")
            thread = await discord.thread_in(general)
            shown = await discord.message_with(thread, "1 file changed")
            assert [file.data[:4] for file in shown.files] == [b"\x89PNG"] * is_on
            assert ("+one = 2" in shown.content) is not is_on
        assert discord.refused == []


async def test_a_second_process_with_the_same_token_is_refused(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as discord:
        discord.channel("general")
        async with serving(discord, tmp_path, "--rehearse") as process:
            ran = await laneway(
                "chat", "--rehearse", "--platform", "discord", env=settings(discord, tmp_path)
            )
            assert ran.code == 2
            assert f"process {process.pid}" in ran.err or "laneway chat" in ran.err
            assert discord.token not in ran.err


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        ({"LANEWAY_CHAT_DISCORD_ALLOWED_USERS": ""}, "has no allowed_users"),
        ({"LANEWAY_CHAT_DISCORD_ALLOWED_USERS": "ada"}, "numeric"),
        ({"LANEWAY_CHAT_DISCORD_OWNERS": "77"}, "owners must be allowed_users, too"),
        ({"LANEWAY_DISCORD_TOKEN": ""}, "laneway setup discord"),
        ({"LANEWAY_DISCORD_TOKEN": "NDI.wrong.token"}, "Discord refused the token"),
    ],
)
async def test_what_is_wrong_is_told_at_the_start_without_the_token(
    tmp_path: Path, env: dict[str, str], problem: str
) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeDiscord() as discord:
        given = {**settings(discord, tmp_path), **env}
        ran = await laneway("chat", "--rehearse", "--platform", "discord", env=given)
        assert ran.code == 2
        assert problem in ran.err
        assert "Traceback" not in ran.err
        token = env.get("LANEWAY_DISCORD_TOKEN") or discord.token
        assert token not in ran.err + ran.out
        assert os.environ.get("LANEWAY_DISCORD_TOKEN") is None
