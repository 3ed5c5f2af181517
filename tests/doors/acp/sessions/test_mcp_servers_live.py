"""The editor's MCP servers with the real Codex: over both transports, beside the user's own."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.doors.acp import greeter
from tests.doors.acp.support import Client, Message, Stage, stage, text
from tests.doors.acp.telling import last_call
from tests.doors.acp.test_point_09_mcp_results import show_all_tools


def on_streams(name: str, who: str) -> Message:
    return {"name": name, "command": sys.executable, "args": [greeter.__file__, who], "env": []}


def over_http(name: str, url: str) -> Message:
    return {
        "type": "http",
        "name": name,
        "url": url,
        "headers": [{"name": "X-Key", "value": greeter.KEY}],
    }


def own_server(here: Stage, name: str, who: str) -> None:
    """One that the user has in config.toml."""
    show_all_tools(here)
    with (here.home / "config.toml").open("a") as config:
        config.write(f'[mcp_servers.{name}]\ncommand = "{sys.executable}"\n')
        config.write(f'args = ["{greeter.__file__}", "{who}"]\n')


async def greeted(client: Client, session: str, who: str) -> tuple[str, str]:
    """Who was called, and what came back."""
    await client.prompt(session, f"%tool greet_{who} {{}}")
    call = last_call(client, session)
    return call["name"], text(call["content"])


async def test_servers_over_both_transports_work_beside_the_users_own_and_for_one_session(
    tmp_path: Path,
) -> None:
    """One of the same name as the user's is left out, and that is said; config.toml stays as it was."""
    async with stage(tmp_path) as here:
        own_server(here, "mine", "me")
        config = (here.home / "config.toml").read_bytes()
        with greeter.over_http("web") as url:
            wanted = [on_streams("here", "ann"), over_http("there", url), on_streams("mine", "nobody")]
            async with here.agent() as client:
                session, plain = await client.new(mcpServers=wanted), await client.new()
                assert await greeted(client, session, "ann") == ("here.greet_ann", "Hello from ann.")
                assert await greeted(client, session, "web") == ("there.greet_web", "Hello from web.")
                assert await greeted(client, session, "me") == ("mine.greet_me", "Hello from me.")
                assert "mine" in client.text(session, "agent_thought_chunk")
                assert "nobody" not in str(here.requests[-1]["tools"])

                assert await greeted(client, plain, "me") == ("mine.greet_me", "Hello from me.")
                assert not [
                    who for who in ("ann", "web") if f"greet_{who}" in str(here.requests[-1]["tools"])
                ]
        assert (here.home / "config.toml").read_bytes() == config
