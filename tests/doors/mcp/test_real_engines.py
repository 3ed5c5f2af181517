"""`laneway mcp` with both engines, the real Codex and the real Claude Code, each on a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from laneway.rehearsal.claude_home import throwaway_claude
from laneway.rehearsal.messages import ClaudeModel
from tests.doors.mcp.support import FORMS, stage

Message = dict[str, Any]


def accepting(asked: list[str]) -> Any:
    """A person who says yes to everything, with what was asked."""

    def answer(request: Message) -> Message:
        asked.append(request["params"]["message"])
        return {"action": "accept", "content": {}}

    return answer


async def with_claude(tmp_path: Path, play: Any, *words: str) -> None:
    """Run `play` with a server that has both engines; Claude's home outlives the servers."""
    model = ClaudeModel()
    async with model.server() as server, stage(tmp_path) as here:
        with throwaway_claude(server.origin) as folder:
            await play(here, folder.variables, model)


async def test_both_engines_work_side_by_side(tmp_path: Path) -> None:
    """Each under an identity of its own; a reply, the lists, a close and a resume by another server."""

    async def play(here: Any, env: dict[str, str], model: ClaudeModel) -> None:
        async with here.server("mcp", env=env) as client:
            claude = await client.content("codex", prompt="%say from Claude", engine="claude")
            codex = await client.content("codex", prompt="%say from Codex")
            assert (claude["content"], codex["content"]) == ("from Claude", "from Codex")
            reply = await client.content("codex-reply", prompt="%say more", agent_id=claude["agent_id"])
            assert reply["content"] == "more"
            rows = (await client.content("agent_sessions"))["sessions"]
            assert {row["identity"]: row["backend"] for row in rows} == {
                "codex": "claude",
                "codex-2": "codex",
            }
            await client.content("agent_close", agent_id=claude["agent_id"])
        async with here.server("mcp", env=env) as client:
            again = await client.content("codex", prompt="%say back", agent_id=claude["agent_id"])
            assert (again["content"], again["threadId"]) == ("back", claude["threadId"])
            assert "from Claude" in json.dumps(model.requests[-1]["messages"])

    await with_claude(tmp_path, play)


async def test_claudes_questions_come_to_the_clients_person(tmp_path: Path) -> None:
    """A command and a plan; without somebody to ask, the answer is no."""

    async def play(here: Any, env: dict[str, str], model: ClaudeModel) -> None:
        asked: list[str] = []
        script = f"%run touch {tmp_path}/made.txt\n%plan look; build\n%say done"
        async with here.server("mcp", env=env, capabilities=FORMS) as client:
            client.on_ask = accepting(asked)
            result = await client.content("codex", prompt=script, engine="claude")
            assert result["content"] == "done"
        assert len(asked) == 2
        assert f"touch {tmp_path}/made.txt" in asked[0]
        assert "1. look" in asked[1]
        assert (tmp_path / "made.txt").exists()
        async with here.server("mcp", env=env) as client:
            script = f"%run touch {tmp_path}/not.txt\n%say went on"
            result = await client.content("codex", prompt=script, engine="claude")
            assert result["content"].startswith("went on\n\nDeclined, because this client can ask nobody")
        assert not (tmp_path / "not.txt").exists()

    await with_claude(tmp_path, play)


@pytest.mark.parametrize("words", [(), ("--readonly",)])
async def test_read_only_leaves_claude_three_tools_and_ours(tmp_path: Path, words: tuple[str, ...]) -> None:
    """By the call or by the server; the user's own MCP servers are left out, too."""

    async def play(here: Any, env: dict[str, str], model: ClaudeModel) -> None:
        more = {} if words else {"sandbox": "read-only"}
        async with here.server("mcp", *words, env=env) as client:
            await client.content("codex", prompt="%say hi", engine="claude", **more)
        names = {tool["name"] for tool in model.requests[-1]["tools"]}
        own = {name for name in names if not name.startswith("mcp__laneway__")}
        assert own <= {"Read", "Grep", "Glob", "DeferredToolPlaceholder"}
        assert "mcp__laneway__atm_send" in names

    await with_claude(tmp_path, play)


async def test_without_a_claude_code_there_is_no_choice(tmp_path: Path) -> None:
    """The tool is as it was; one that is named and wrong is an error at the start."""
    env = {"LANEWAY_CLAUDE_BIN": "/nowhere/claude"}
    async with stage(tmp_path) as here, here.server("mcp", env=env, greet=False) as client:
        assert await client.process.wait() == 3
