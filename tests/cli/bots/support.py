"""A home for `laneway setup telegram`, and the code that a person reads from its output."""

from __future__ import annotations

import asyncio
import re
import tomllib
from asyncio.subprocess import Process
from pathlib import Path
from typing import Any

from laneway.testing.fake_discord import FakeDiscord
from laneway.testing.fake_telegram import FakeTelegram
from tests.cli.support import start

DEADLINE_S = 90.0
_CODE = re.compile(rb"\b(\d{4}-\d{4}-\d{4})\b")


def environment(home: Path, service: FakeTelegram | FakeDiscord) -> dict[str, str]:
    """Without a token: that is what the setup asks for."""
    if isinstance(service, FakeTelegram):
        return {"HOME": str(home), "LANEWAY_CHAT_TELEGRAM_API_URL": service.api_url}
    return {
        "HOME": str(home),
        "LANEWAY_CHAT_DISCORD_API_URL": service.api_url,
        "LANEWAY_CHAT_DISCORD_GATEWAY_URL": service.gateway_url,
    }


def settings_file(home: Path) -> Path:
    return home / ".config" / "laneway" / "config.toml"


def table(home: Path, platform: str = "telegram") -> dict[str, Any]:
    """The bot's table in the user's own settings; empty if there is none."""
    file = settings_file(home)
    if not file.exists():
        return {}
    found = tomllib.loads(file.read_text()).get("laneway", {}).get("chat", {}).get(platform, {})
    assert isinstance(found, dict)
    return found


async def begin(
    platform: str, *words: str, token: str, env: dict[str, str], home: Path
) -> tuple[Process, bytearray, str]:
    """A setup that got its token from a pipe: the process, what it has told so far, and its code."""
    process = await start(
        "setup",
        platform,
        "--token-stdin",
        *words,
        env=env,
        cwd=str(home),
        stdin=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(f"{token}\n".encode())
    process.stdin.close()
    told = bytearray()
    stream = process.stderr if "--json" in words else process.stdout
    assert stream is not None
    while not (found := _CODE.search(told)):
        piece = await stream.readline()
        assert piece, (bytes(told), await process.stderr.read() if process.stderr else b"")
        told += piece
    return process, told, found[1].decode()


async def end(process: Process, told: bytearray) -> tuple[int, str, str]:
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, (bytes(told) + out).decode(), err.decode()


def code_on(text: str) -> str:
    found = _CODE.search(text.encode())
    assert found is not None, text
    return found[1].decode()


def everything(home: Path) -> str:
    """All that is on disk but for the settings and the records for `--undo`."""
    allowed = {"changes", "backups", settings_file(home).name}
    paths = [path for path in home.rglob("*") if path.is_file() and not allowed & set(path.parts)]
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in paths)
