"""A Codex that ends, hangs or says nothing: every front end tells what it said last, and no secret."""

from __future__ import annotations

from pathlib import Path

from tests.adversary.json_client import ACP_HELLO, MCP_HELLO, json_client, own_places
from tests.cli.support import laneway, misbehaving_codex

WORDS = "the gears are stuck, api_key=[redacted]"


def check(text: str) -> None:
    """It has the last words, and nothing that must not be shown."""
    assert WORDS in text
    assert "exit code 7" in text
    for hidden in ("sk-abc", "\x1b", "\u202e", "<unknown>"):
        assert hidden not in text


def broken_codex(folder: Path) -> str:
    """One that tells its version, and does not start."""
    codex = Path(misbehaving_codex(folder, "--broken"))
    version = '[ "$1" = --version ] && echo codex-cli 0.163.0 && exit'
    codex.write_text(codex.read_text().replace("exec ", f"{version}\nexec "))
    return str(codex)


async def test_ask_tells_the_last_words(tmp_path: Path) -> None:
    """Of a Codex that ends in the middle of a turn."""
    ran = await laneway(
        "ask", "--codex-bin", misbehaving_codex(tmp_path), "complain", env=own_places(tmp_path)
    )
    assert ran.code == 4
    check(ran.err)


async def test_ask_tells_the_last_words_of_a_codex_that_does_not_start(tmp_path: Path) -> None:
    """As long as it is a Codex at all, by its version."""
    codex = broken_codex(tmp_path)
    ran = await laneway("ask", "--codex-bin", codex, "hello", env=own_places(tmp_path))
    assert ran.code == 4
    check(ran.err)
    doctor = await laneway("doctor", "--codex-bin", codex)
    line = next(line for line in doctor.out.splitlines() if "app-server does not start" in line)
    check(line)


async def test_an_mcp_client_is_told_the_last_words(tmp_path: Path) -> None:
    """In the message, for models, and in the data, for programs."""
    codex = misbehaving_codex(tmp_path)
    async with json_client("mcp", "--codex-bin", codex, hello=MCP_HELLO, env=own_places(tmp_path)) as client:
        first = await client.tool("codex", prompt="complain", cwd=str(tmp_path))
        second = await client.tool("codex", prompt="hello", cwd=str(tmp_path))
    for answer in (first, second):
        assert answer["error"]["code"] == -32005
        check(answer["error"]["message"])
        assert answer["error"]["data"]["exit"] == "exit code 7"
        assert WORDS in answer["error"]["data"]["last_words"]


async def test_an_editor_is_told_the_last_words(tmp_path: Path) -> None:
    """In the error that it shows for the prompt."""
    codex = misbehaving_codex(tmp_path)
    async with json_client("acp", "--codex-bin", codex, hello=ACP_HELLO, env=own_places(tmp_path)) as client:
        opened = await client.call("session/new", cwd=str(tmp_path), mcpServers=[])
        session_id = opened["result"]["sessionId"]
        prompt = [{"type": "text", "text": "complain"}]
        answer = await client.call("session/prompt", sessionId=session_id, prompt=prompt)
    check(answer["error"]["message"])
