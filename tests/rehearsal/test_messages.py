"""The scripted Claude: its texts, its tool calls, and its search for tools that Claude Code hides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from laneway.rehearsal.answer import Pause, Piece, Refuse
from laneway.rehearsal.messages import (
    MAX_SEARCHES,
    ClaudeModel,
    ConversationState,
    answer,
    conversation_state,
)

BASH = {"name": "Bash"}
SEARCH = {"name": "ToolSearch"}
CODEX = {"name": "mcp__codex__codex", "defer_loading": True}
CALL_CODEX = '%tool mcp__codex__codex {"prompt": "%say hello"}'


def user(*blocks: dict[str, Any] | str) -> dict[str, Any]:
    texts = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"role": "user", "content": texts}


def result(call_id: str, content: Any = "fine") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def message(pieces: Iterable[Piece]) -> tuple[list[dict[str, Any]], str]:
    """The content blocks and the stop reason of a streamed answer, put together as a client does."""
    blocks: list[dict[str, Any]] = []
    stop_reason = ""
    for piece in pieces:
        if isinstance(piece, Pause):
            continue
        assert isinstance(piece, bytes)
        event = json.loads(piece.decode().partition("data: ")[2])
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(blocks)
                blocks.append(event["content_block"])
            case "content_block_delta":
                delta = dict(event["delta"])
                if delta.pop("type") == "input_json_delta":
                    blocks[-1]["input"] = json.loads(delta["partial_json"])
                else:
                    for name, text in delta.items():
                        blocks[-1][name] += text
            case "message_delta":
                stop_reason = event["delta"]["stop_reason"]
    return blocks, stop_reason


def said(prompt: str, *more: dict[str, Any], tools: Iterable[dict[str, Any]] = (BASH,)) -> Any:
    return message(answer({"model": "m", "tools": list(tools), "messages": [user(prompt), *more]}))


@given(st.text())
def test_a_text_is_streamed_whole(text: str) -> None:
    """Whatever the pieces, a client puts the same text together."""
    line = "".join(text.split("%"))
    assert said(f"%say x{' '.join(line.split())}") == (
        [{"type": "text", "text": f"x{' '.join(line.split())}".replace("\\n", "\n")}],
        "end_turn",
    )


def test_a_tool_that_is_offered_is_called_at_once() -> None:
    """With the arguments of the script, and the model stops there."""
    (block,), stop_reason = said('%tool Bash {"command": "ls"}\n%say later')
    assert (block["name"], block["input"], stop_reason) == ("Bash", {"command": "ls"}, "tool_use")


def test_a_shell_command_becomes_a_call_of_bash() -> None:
    """The script language is the one of Codex's rehearsals."""
    (block,), _ = said("%run ls")
    assert (block["name"], block["input"]["command"]) == ("Bash", "ls")


def test_a_hidden_tool_is_searched_by_its_name_first() -> None:
    """Claude Code offers the tools of MCP servers only after that."""
    (search,), stop_reason = said(CALL_CODEX, tools=[SEARCH])
    assert (search["name"], search["input"]["query"]) == ("ToolSearch", "select:mcp__codex__codex")
    assert stop_reason == "tool_use"
    found = user(result(search["id"], [{"type": "tool_reference"}]), "Tool loaded.")
    (call,), _ = said(CALL_CODEX, found, tools=[SEARCH, CODEX])
    assert (call["name"], call["input"]) == ("mcp__codex__codex", {"prompt": "%say hello"})
    ended = said(CALL_CODEX, found, user(result(call["id"])), tools=[SEARCH, CODEX])
    assert ended == ([{"type": "text", "text": "Done."}], "end_turn")


def test_a_server_that_failed_is_not_searched_again() -> None:
    """The model says what the search said."""
    failed = user(result("toolu_search_1", "Note: these servers failed to connect: codex"))
    (block,), stop_reason = said(CALL_CODEX, failed, tools=[SEARCH])
    assert "failed to connect: codex" in block["text"]
    assert stop_reason == "end_turn"


def test_a_server_that_never_comes_is_given_up() -> None:
    """Not before it was searched many times, because servers start in the background."""
    searches = [user(result(f"toolu_search_{n}", "No match.")) for n in range(MAX_SEARCHES)]
    assert said(CALL_CODEX, *searches[:-1], tools=[SEARCH])[1] == "tool_use"
    assert said(CALL_CODEX, *searches, tools=[SEARCH])[1] == "end_turn"


def test_what_claude_code_adds_is_no_prompt() -> None:
    """Reminders come in tags, remarks beside results, and searches are not steps."""
    messages = [
        user("<system-reminder>%say no</system-reminder>", "%say yes"),
        user(result("toolu_1"), "Something else."),
        user(result("toolu_search_2", "none")),
    ]
    assert conversation_state(messages) == ConversationState("%say yes", 1, ('"none"',))


def test_an_errand_without_tools_gets_a_plain_answer() -> None:
    """Claude Code asks for titles with the user's words in the request; those are not steps then."""
    (block,), _ = message(answer({"messages": [user("%hang")]}))
    assert "%hang" in block["text"]


def test_a_step_that_only_codex_knows_says_so() -> None:
    """Instead of an empty answer."""
    assert "Only Codex" in said("%patch a.txt hello")[0][0]["text"]


def test_thoughts_and_questions_have_their_own_blocks() -> None:
    """As the API writes them."""
    blocks, _ = said("%think why\n%ask Which? A | B", tools=[{"name": "AskUserQuestion"}])
    assert [block["type"] for block in blocks] == ["thinking", "tool_use"]
    assert blocks[0]["thinking"] == "why"
    assert [x["label"] for x in blocks[1]["input"]["questions"][0]["options"]] == ["A", "B"]


def test_a_failure_is_told_before_the_first_byte() -> None:
    """As an HTTP status, not as a stream."""
    pieces = list(answer({"tools": [BASH], "messages": [user("%fail 429 slow down")]}))
    assert pieces == [Refuse(429, "slow down")]


async def test_the_model_is_served_on_loopback_and_remembers_what_it_was_shown() -> None:
    """One request that is streamed, one that is counted, one that nobody knows."""
    model = ClaudeModel()
    request = {"model": "m", "tools": [BASH], "messages": [user("%say hello")]}
    async with asyncio.timeout(20), model.server() as server:
        assert b"text_delta" in await post(server.port, "/v1/messages?beta=true", request)
        assert b'"input_tokens": ' in await post(server.port, "/v1/messages/count_tokens", request)
        assert b"404" in await post(server.port, "/v1/elsewhere", request)
    assert model.requests == [request]


async def post(port: int, path: str, value: Any) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps(value).encode()
    writer.write(f"POST {path} HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
