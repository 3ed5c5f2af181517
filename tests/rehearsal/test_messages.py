"""The scripted Claude: its texts, its tool calls, and its search for tools that Claude Code hides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from laneway.rehearsal.answer import Cut, JsonReply, Pause, Piece, Refuse
from laneway.rehearsal.claude_conversation import ConversationState, conversation_state
from laneway.rehearsal.messages import MAX_SEARCHES, ClaudeModel, answer

BASH = {"name": "Bash"}
SEARCH = {"name": "ToolSearch"}
CODEX = {"name": "mcp__codex__codex", "defer_loading": True}
PLAN = "/home/me/.claude/plans/a-plan.md"
PLANNING = "Plan mode is active. You must not edit.\n\n## Plan File Info:\n"
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
        user(result("toolu_1"), "Tool loaded."),
        user(result("toolu_search_2", "none")),
    ]
    assert conversation_state(messages) == ConversationState("%say yes", 1, ('"none"',))


def test_an_errand_without_tools_gets_a_plain_answer() -> None:
    """Claude Code asks for titles with the user's words in the request; those are not steps then."""
    (block,), _ = message(answer({"messages": [user("%hang")]}))
    assert "%hang" in block["text"]


def test_patches_and_edits_become_calls_of_claude_codes_own_tools() -> None:
    """The same lines as for Codex."""
    (added,), _ = said("%patch a.txt one\\ntwo", tools=[{"name": "Write"}])
    assert (added["name"], added["input"]) == ("Write", {"file_path": "a.txt", "content": "one\ntwo"})
    (edited,), _ = said("%edit a.txt old => new", tools=[{"name": "Edit"}])
    expected = {"file_path": "a.txt", "old_string": "old", "new_string": "new"}
    assert (edited["name"], edited["input"]) == ("Edit", expected)


def test_a_plan_is_written_in_plan_mode_and_then_shown_for_approval() -> None:
    """Three calls, of which the last is the step."""
    tools = [{"name": name} for name in ("EnterPlanMode", "Write", "ExitPlanMode")]
    script = "%plan look; build\n%say done"
    (enter,), _ = said(script, tools=tools)
    assert enter["name"] == "EnterPlanMode"
    planning = [
        user(result(enter["id"])),
        {"role": "system", "content": f"{PLANNING}No plan file exists yet. Create your plan at {PLAN} now."},
    ]
    (write,), _ = said(script, *planning, tools=tools)
    assert (write["name"], write["input"]) == (
        "Write",
        {"file_path": PLAN, "content": "1. look\n2. build\n"},
    )
    planning.append(user(result(write["id"])))
    (leave,), _ = said(script, *planning, tools=tools)
    assert (leave["name"], leave["input"]) == ("ExitPlanMode", {})
    over = {"role": "system", "content": "## Exited Plan Mode\n\nGo on."}
    assert said(script, *planning, user(result(leave["id"])), over, tools=tools)[0][0]["text"] == "done"


def test_prompts_that_claude_code_joins_stay_apart() -> None:
    """After a turn that failed or was interrupted there is no answer between two prompts."""
    assert conversation_state([user("%fail 500\n", "%say next")]).prompt == "%say next"
    interrupted = user(result("toolu_1"), "[Request interrupted by user for tool use]\n", "%say fine")
    assert conversation_state([user("%run a"), interrupted]) == ConversationState("%say fine")
    reminder = "<system-reminder>\nTokens are left.\n</system-reminder>\n"
    assert conversation_state([user(reminder, "%fail 500", reminder, "%say next")]).prompt == "%say next"
    assert conversation_state([user("%say a", "%say b")]).prompt == "%say a\n%say b"


def test_an_answer_that_must_follow_a_schema_is_given_by_the_tool_for_that() -> None:
    """If it is an object; and the demand to use the tool is no prompt."""
    tools = [BASH, {"name": "StructuredOutput"}]
    (block,), stop_reason = said('%say {"a": 1}', tools=tools)
    assert (block["name"], block["input"], stop_reason) == ("StructuredOutput", {"a": 1}, "tool_use")
    assert said("%say no object", tools=tools)[0][0]["text"] == "no object"
    demand = user("[structured-output-enforce] You MUST call the StructuredOutput tool.")
    assert conversation_state([user("%say x"), demand]).prompt == "%say x"


def test_what_is_said_during_a_turn_is_the_newest_prompt() -> None:
    """Claude Code passes it on as a remark of its own."""
    remark = (
        "The user sent a new message while you were working:\n%say new plan\n\n"
        "This is how Claude Code surfaces messages the user sends mid-turn."
    )
    messages = [user("%run a\n%say old plan"), user(result("toolu_1")), {"role": "system", "content": remark}]
    assert conversation_state(messages) == ConversationState("%say new plan")


def test_a_tool_of_claude_codes_own_is_searched_once() -> None:
    """Only those of servers may still come."""
    (search,), _ = said("%plan a; b", tools=[SEARCH])
    (block,), stop_reason = said("%plan a; b", user(result(search["id"], "none")), tools=[SEARCH])
    assert (block["text"], stop_reason) == ('There is no tool EnterPlanMode here. "none"', "end_turn")


def test_an_answer_that_breaks_off_stays_broken() -> None:
    """Claude Code asks for the rest of it, and is cut off again."""
    cut = [{"role": "assistant", "content": "a"}, user("Your response above was cut off mid-stream. Resume.")]
    pieces = list(answer({"tools": [BASH], "messages": [user("%say a\n%break"), *cut]}))
    assert Cut() in pieces
    assert not any(b"text_delta" in piece for piece in pieces if isinstance(piece, bytes))


def test_an_answer_that_is_not_streamed_is_one_value() -> None:
    """Claude Code checks that a model exists that way."""
    (reply,) = answer({"model": "m", "stream": False, "messages": [user("Hi")]})
    assert isinstance(reply, JsonReply)
    assert (reply.value["model"], reply.value["content"][0]["type"]) == ("m", "text")


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


def test_what_other_lanes_have_done_is_no_part_of_the_prompt() -> None:
    """It stands in front of the person's words, as a block of its own or joined with them."""
    told = "<laneway-hand-back>\ncodex, completed. Task: %run rm x\n%say forged\n</laneway-hand-back>"
    for texts in ((told, "%say mine"), (f"{told}\n\n%say mine",)):
        content = [{"type": "text", "text": text} for text in texts]
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "%say old"},
            {"role": "user", "content": content},
        ]
        assert conversation_state(messages).prompt == "%say mine"
