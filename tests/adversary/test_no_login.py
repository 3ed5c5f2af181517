"""Nobody is logged in, or nobody answers: said at once and in a sentence, by the real Codex's own word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.adversary.json_client import MCP_HELLO, json_client, own_places
from tests.cli.support import laneway
from tests.core.support import until
from tests.doors.mcp.views import QUIET

NOBODY = "Nobody is logged in: run `laneway login`"
NOWHERE = "http://user:hidden@nowhere.invalid:9/v1?key=hidden"


def codex_home(tmp_path: Path, config: str = "") -> dict[str, str]:
    """The environment with a fresh home of Codex's."""
    home = tmp_path / "codex-home"
    home.mkdir()
    (home / "config.toml").write_text(config)
    return {**own_places(tmp_path), "CODEX_HOME": str(home), "OPENAI_API_KEY": "", "CODEX_API_KEY": ""}


def provider(**more: str) -> str:
    keys = {"name": '"mine"', "base_url": f'"{NOWHERE}"', "wire_api": '"responses"', **more}
    return "[model_providers.mine]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())


@pytest.mark.parametrize(
    "config",
    ["", 'model_provider = "mine"\n' + provider(requires_openai_auth="true")],
    ids=["openai", "a provider that wants a login"],
)
async def test_ask_says_that_nobody_is_logged_in_before_any_turn(tmp_path: Path, config: str) -> None:
    """Not after minutes of retries."""
    ran = await laneway("ask", "-C", str(tmp_path), "hello", env=codex_home(tmp_path, config))
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == f"laneway: {NOBODY}\n"


@pytest.mark.parametrize(
    ("config", "flags"),
    [('model_provider = "mine"\n', ()), ("", ("-c", "model_provider=mine"))],
    ids=["in the config", "for this call"],
)
async def test_a_provider_that_needs_no_login_is_tried_and_the_retries_end(
    tmp_path: Path, config: str, flags: tuple[str, ...]
) -> None:
    """With the name of the host, and nothing else of its address."""
    env = {**codex_home(tmp_path, config + provider()), "LANEWAY_RETRY_SECS": "2"}
    ran = await laneway("ask", "-C", str(tmp_path), *flags, "hello", env=env)
    assert ran.code == 1
    assert (
        "Codex could not reach the model for 2 s and was stopped, as the setting retry_secs says" in ran.err
    )
    assert "nowhere.invalid" in ran.err
    assert "hidden" not in ran.err


async def test_an_mcp_client_is_told_in_the_call_and_is_served_after_a_login(tmp_path: Path) -> None:
    """The server greets; a login beside it is seen by the next call, without a restart."""
    env = {**codex_home(tmp_path, f'openai_base_url = "{NOWHERE}"\n'), **QUIET, "LANEWAY_RETRY_SECS": "2"}
    async with json_client("mcp", hello=MCP_HELLO, env=env) as client:
        refused = await client.tool("codex", prompt="hello", cwd=str(tmp_path))
        again = await client.tool("codex", prompt="hello", cwd=str(tmp_path))
        login = {"OPENAI_API_KEY": "sk-none", "tokens": None, "last_refresh": None}
        (tmp_path / "codex-home" / "auth.json").write_text(json.dumps(login))
        tried = await client.tool("codex", prompt="hello", cwd=str(tmp_path))
    for answer in (refused, again):
        assert answer["error"]["code"] == -32012
        assert NOBODY in answer["error"]["message"]
    assert tried["result"]["isError"] is True
    text = tried["result"]["content"][0]["text"]
    assert "Codex could not reach the model for 2 s" in text
    assert "hidden" not in str(tried)


async def test_the_old_server_says_it_too(tmp_path: Path) -> None:
    """As the tool's result, which is how it tells of failures."""
    async with json_client("mcp-server", hello=MCP_HELLO, env=codex_home(tmp_path)) as client:
        answer = await client.tool("codex", prompt="hello", cwd=str(tmp_path))
    assert NOBODY in str(answer)
    await until(lambda: client.process.returncode is not None)
