"""The era without a handshake: every request says who asks, and questions are results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.doors.mcp.support import FORMS, Client, Message, stage

RUN = "%run! echo outside > granted.txt"
CALL = {"name": "codex", "arguments": {"prompt": RUN, "cwd": "."}}


async def called(client: Client, **beside: Any) -> Message:
    answer = await client.stateless("tools/call", {**CALL, **beside}, FORMS)
    assert "result" in answer, answer
    result: Message = answer["result"]
    return result


@pytest.mark.parametrize("words", [("mcp-server",), ("mcp",)])
async def test_a_question_is_a_result_and_the_next_call_brings_the_answer(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Codex goes on waiting in between; the state that comes along finds it again."""
    async with stage(tmp_path) as here, here.server(*words, greet=False) as client:
        asked = await called(client)
        ((key, question),) = asked["inputRequests"].items()
        assert asked["resultType"] == "input_required"
        assert question["method"] == "elicitation/create"
        assert question["params"]["mode"] == "form"
        assert not (here.work / "granted.txt").exists()

        done = await called(
            client, requestState=asked["requestState"], inputResponses={key: {"action": "accept"}}
        )

        assert done["resultType"] == "complete"
        assert done["structuredContent"]["content"] == "Done."
        assert (here.work / "granted.txt").exists()


@pytest.mark.parametrize(
    "replies", [{}, {"other": {"action": "accept"}}, None, [], {"KEY": {"action": "decline"}}]
)
async def test_an_answer_that_does_not_come_is_a_no(tmp_path: Path, replies: Any) -> None:
    """Whatever comes back in its place grants nothing, and the turn goes on."""
    async with stage(tmp_path) as here, here.server("mcp", greet=False) as client:
        asked = await called(client)
        (key,) = asked["inputRequests"]
        if isinstance(replies, dict):
            replies = {key if name == "KEY" else name: value for name, value in replies.items()}
        done = await called(client, requestState=asked["requestState"], inputResponses=replies)

        assert done["structuredContent"]["content"].startswith("Done.")
        assert not (here.work / "granted.txt").exists()


async def test_a_state_works_once_and_cannot_be_guessed(tmp_path: Path) -> None:
    """A second use, or an invented one, is an error and decides nothing."""
    async with stage(tmp_path) as here, here.server("mcp", greet=False) as client:
        asked = await called(client)
        (key,) = asked["inputRequests"]
        back = {"requestState": asked["requestState"], "inputResponses": {key: {"action": "accept"}}}
        await called(client, **back)
        again = await client.stateless("tools/call", {**CALL, **back}, FORMS)
        guessed = await client.stateless("tools/call", {**CALL, "requestState": "x"}, FORMS)

    assert [again["error"]["code"], guessed["error"]["code"]] == [-32602, -32602]


async def test_a_client_that_can_ask_nobody_is_told_what_was_declined(tmp_path: Path) -> None:
    """Nobody saw the question: the result says so, for whoever reads it."""
    async with stage(tmp_path) as here, here.server("mcp", greet=False) as client:
        done = (await client.stateless("tools/call", CALL))["result"]

        assert "Declined, because this client can ask nobody" in done["structuredContent"]["content"]
        assert not (here.work / "granted.txt").exists()


async def test_both_eras_are_served_on_one_pipe(tmp_path: Path) -> None:
    """Request by request; a version that nobody knows is refused with those we speak."""
    async with stage(tmp_path) as here, here.server("mcp", greet=False) as client:
        discovered = (await client.stateless("server/discover", {}))["result"]
        tools = (await client.stateless("tools/list", {}))["result"]
        shaken = (await client.greet({}))["result"]
        same = (await client.ask("tools/list"))["result"]
        wrong = await client.ask(
            "tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}}
        )

    assert discovered["supportedVersions"] == ["2026-07-28"]
    assert discovered["_meta"]["io.modelcontextprotocol/serverInfo"] == shaken["serverInfo"]
    assert tools["resultType"] == "complete"
    assert tools["tools"] == same["tools"]
    assert "resultType" not in same
    assert wrong["error"]["code"] == -32022
    assert wrong["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2030-01-01"}
