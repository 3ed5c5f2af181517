"""`laneway chat --platform telegram` as people run it: a process of its own, with the real engines."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.testing.fake_telegram import BotApiMessage, FakeTelegram
from tests.cli.support import laneway
from tests.doors.chat.platforms.bot_scenes import chatting

DEADLINE_S = 90.0


def settings(telegram: FakeTelegram, tmp_path: Path, **env: str) -> dict[str, str]:
    return {
        "HOME": str(tmp_path),
        "LANEWAY_TELEGRAM_TOKEN": telegram.token,
        "LANEWAY_CHAT_TELEGRAM_API_URL": telegram.api_url,
        "LANEWAY_CHAT_TELEGRAM_ALLOWED_USERS": telegram.person("ada").user_id,
        **env,
    }


@asynccontextmanager
async def serving(telegram: FakeTelegram, tmp_path: Path, *words: str, **env: str) -> AsyncIterator[Process]:
    env = settings(telegram, tmp_path, **env)
    async with chatting("telegram", telegram.wait_polled, tmp_path, *words, env=env) as process:
        yield process


async def test_people_work_with_both_engines_and_no_agent_sees_the_token(tmp_path: Path) -> None:
    """Neither in its environment nor in that of what it starts; not in the finest log, nor on disk."""
    log = tmp_path / "laneway.log"
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada, home = telegram.person("ada"), telegram.private(telegram.person("ada"))
        words = ("--rehearse", "--log-level", "trace", "--log-file", str(log))
        other = {"LANEWAY_DISCORD_TOKEN": "MTIzNDU2Nzg5.of-a-bot.that-does-not-run"}
        async with serving(telegram, tmp_path, *words, **other) as process:
            telegram.faults.fail("sendMessage", 502)  # errors have addresses in them, and those the token
            ada.write(home, "/codex look\n%run env >codex.txt\n%say Codex has looked.")
            await telegram.message_with(home, "Codex has looked.")
            await telegram.message_with(home, "CODEX COMPLETED")
            ada.write(home, "look\n%run env >claude.txt\n%say Claude has looked.")

            def asked() -> list[BotApiMessage]:
                return [each for each in telegram.shown(home) if "Allow once" in each.labels]

            await telegram.until(lambda: bool(asked()))
            ada.press(asked()[0], "Allow once")
            await telegram.message_with(home, "Claude has looked.")
            for name in ("codex.txt", "claude.txt"):
                environment = (tmp_path / name).read_text()
                assert "PATH=" in environment
                assert telegram.token not in environment
                assert other["LANEWAY_DISCORD_TOKEN"] not in environment
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 130
            assert process.stderr is not None
            told = (await process.stderr.read()).decode()
        assert "telegram: ready as @laneway_bot" in told
        assert "Traceback" not in told
        secret = telegram.token.split(":")[1]
        files = [Path(folder, name) for folder, _, names in os.walk(tmp_path) for name in names]
        assert log in files
        assert [path for path in files if secret.encode() in path.read_bytes()] == []
        assert secret not in told


async def test_a_second_process_with_the_same_token_is_refused(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        async with serving(telegram, tmp_path, "--rehearse") as process:
            env = settings(telegram, tmp_path)
            ran = await laneway("chat", "--rehearse", "--platform", "telegram", env=env)
            assert ran.code == 2
            assert f"process {process.pid}" in ran.err
            assert telegram.token not in ran.err
        async with serving(telegram, tmp_path, "--rehearse"):
            """Its lock is free as soon as the process has ended, also by a kill."""


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        ({"LANEWAY_CHAT_TELEGRAM_ALLOWED_USERS": ""}, "has no allowed_users"),
        ({"LANEWAY_CHAT_TELEGRAM_ALLOWED_USERS": "@ada"}, "numeric"),
        ({"LANEWAY_CHAT_TELEGRAM_OWNERS": "77"}, "owners must be allowed_users, too"),
        ({"LANEWAY_TELEGRAM_TOKEN": ""}, "laneway setup telegram"),
        ({"LANEWAY_TELEGRAM_TOKEN": "nonsense:token"}, "is not valid"),
        (
            {"LANEWAY_TELEGRAM_TOKEN": "7000000001:AAwrong-laneway-tests-only-token-00"},
            "Telegram refused the token",
        ),
    ],
)
async def test_what_is_wrong_is_told_at_the_start_without_the_token(
    tmp_path: Path, env: dict[str, str], problem: str
) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        given = {**settings(telegram, tmp_path), **env}
        ran = await laneway("chat", "--rehearse", "--platform", "telegram", env=given)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert problem in ran.err
        token = env.get("LANEWAY_TELEGRAM_TOKEN") or telegram.token
        assert token not in ran.err + ran.out
        assert os.environ.get("LANEWAY_TELEGRAM_TOKEN") is None
