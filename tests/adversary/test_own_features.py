"""An editor is not told of the features that Laneway itself switches on; of the user's own it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.rehearsal.server import ModelServer
from tests.adversary.json_client import ACP_HELLO, json_client, own_places

CONFIG = """\
model_provider = "mine"
[model_providers.mine]
name = "mine"
base_url = "{url}"
wire_api = "responses"
[features]
shell_snapshot = false
"""
THEIRS = "bedrock_setup_wizard"
"""A feature that Codex calls under development, and Laneway leaves alone."""


async def heard(tmp_path: Path, *flags: str, feature: str = "") -> str:
    """All that an editor is told from its first message to the end of its first prompt."""
    home = tmp_path / "codex-home"
    home.mkdir()
    env = {**own_places(tmp_path), "CODEX_HOME": str(home)}
    async with ModelServer() as model:
        (home / "config.toml").write_text(CONFIG.format(url=model.base_url) + feature)
        return await _heard(tmp_path, env, flags)


async def _heard(tmp_path: Path, env: dict[str, str], flags: tuple[str, ...]) -> str:
    async with json_client("acp", *flags, hello=ACP_HELLO, env=env) as client:
        opened = await client.call("session/new", cwd=str(tmp_path), mcpServers=[])
        prompt = [{"type": "text", "text": "%say hi"}]
        session_id = opened["result"]["sessionId"]
        await client.call("session/prompt", sessionId=session_id, prompt=prompt)
    return str(client.notifications)


@pytest.mark.parametrize("flags", [(), ("--rehearse",)])
async def test_an_editor_hears_nothing_of_the_features_that_we_switch_on(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """In a rehearsal neither, which hides nothing that a user would see."""
    assert "Under-development" not in await heard(tmp_path, *flags)


async def test_a_feature_of_the_users_own_is_still_warned_about(tmp_path: Path) -> None:
    """Beside ours."""
    told = await heard(tmp_path, feature=f"{THEIRS} = true\n")
    assert "Under-development features enabled" in told
    assert THEIRS in told
