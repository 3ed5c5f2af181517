"""The scripted model's answers to Claude Code: the Anthropic Messages API, as far as it is needed.

The prompt tells the model what to do, in the language of `laneway.rehearsal.script`. Nothing is
remembered between requests: the conversation (`claude_conversation`) shows which step comes next.
Pure: a decoded request in, pieces of a stream out.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from laneway.rehearsal import script
from laneway.rehearsal.answer import (
    WORDS,
    Cut,
    Forever,
    JsonReply,
    Pause,
    Piece,
    Refuse,
    next_steps,
    plain_answer,
)
from laneway.rehearsal.claude_conversation import (
    PREPARING_ID,
    SEARCH_ID,
    Block,
    ConversationState,
    blocks,
    conversation_state,
    is_step,
)
from laneway.rehearsal.server import ModelServer

MODEL = "claude-opus-5-5"
"""Claude Code's default model; the answer must name a model that it knows."""
SEARCH = "ToolSearch"
"""The tool by which a model finds tools of MCP servers, which Claude Code does not list at first."""
STRUCTURED = "StructuredOutput"
"""The tool by which a model answers where the answer must follow a schema."""
MAX_SEARCHES = 100
"""A server that is still starting is not found, so the model asks again."""
SEARCH_PAUSE_S = 0.1
"""Between two searches for the same tool: with `MAX_SEARCHES`, a server has ten seconds to start."""
FAILED = "failed to connect"
"""The text of `ToolSearch` about a server that failed to start."""

OF_SERVERS = "mcp__"
"""The beginning of the names of tools of MCP servers, which may still be starting."""

_ids = itertools.count(1)


class ClaudeModel:
    """A scripted Claude, with all requests that it got, in order: `requests`."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def answer(self, request: dict[str, Any]) -> Iterator[Piece]:
        """Answer one `POST /v1/messages`."""
        self.requests.append(request)
        return answer(request)

    def server(self) -> ModelServer:
        """`async with model.server() as server:`, and `server.origin` is `ANTHROPIC_BASE_URL`."""
        return ModelServer(routes={"/v1/messages": self.answer, "/v1/messages/count_tokens": _count})

    def results(self) -> list[dict[str, Any]]:
        """The `tool_result` blocks of the last request, without those of tool searches."""
        messages = self.requests[-1]["messages"] if self.requests else []
        return [block for block in blocks(messages) if block.get("type") == "tool_result" and is_step(block)]


def answer(request: dict[str, Any]) -> Iterator[Piece]:
    """Yield the pieces of the answer to one `POST /v1/messages`."""
    state = conversation_state(request.get("messages", []))
    # Without tools it is a side request of Claude Code (a title, a summary), not the conversation.
    steps = script.parse(state.prompt) if request.get("tools") else []
    if not steps:
        steps = [script.SayStep(plain_answer(state.prompt))]
    # A connection that was cut stays so: else Claude Code would go on with what it got.
    answer_steps = list(next_steps(steps, state.done))
    if state.is_cut:
        answer_steps = [script.Break()]
    if not request.get("stream", True):
        return _whole(answer_steps, request, state)
    return _stream(answer_steps, request, state)


def _whole(steps: list[script.Step], request: dict[str, Any], state: ConversationState) -> Iterator[Piece]:
    """An answer that is not streamed: Claude Code asks for one where streaming fails, and to check models."""
    message = _message(request, _usage(steps))
    for step in steps:
        match step:
            case script.Fail(status, text):
                yield Refuse(status, text)
                return
            case script.Hang():
                yield Forever()
            case script.Break():
                yield Cut()
                return
            case script.UsageStep():
                pass
            case _:
                message["content"].append(_content(step, request, state))
    message["stop_reason"] = _stop_reason(message["content"])
    yield JsonReply(message)


def _stop_reason(content: list[Block]) -> str:
    return "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"


def _usage(steps: list[script.Step]) -> dict[str, int]:
    token_counts = [step.input_tokens for step in steps if isinstance(step, script.UsageStep)]
    return {
        "input_tokens": token_counts[-1] if token_counts else 100,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 1,
    }


def _message(request: dict[str, Any], usage: dict[str, int]) -> Block:
    message: Block = {"id": f"msg_{next(_ids)}", "type": "message", "role": "assistant", "content": []}
    message |= {"model": request.get("model", MODEL), "stop_reason": None, "stop_sequence": None}
    return {**message, "usage": usage}


def _stream(steps: list[script.Step], request: dict[str, Any], state: ConversationState) -> Iterator[Piece]:
    for step in steps:
        if isinstance(step, script.Fail):
            yield Refuse(step.status, step.text)
            return
    usage = _usage(steps)
    yield _event("message_start", message=_message(request, usage))
    content: list[Block] = []
    for step in steps:
        match step:
            case script.Hang():
                yield Forever()
            case script.Break():
                yield Cut()
            case script.UsageStep() | script.Fail():
                pass
            case _:
                block = _content(step, request, state)
                if state.searches and block.get("name") == SEARCH:
                    yield Pause(SEARCH_PAUSE_S)
                over_s = step.over_s if isinstance(step, script.StreamStep) else 0.0
                yield from _block(len(content), block, over_s)
                content.append(block)
    delta = {"stop_reason": _stop_reason(content), "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage={**usage, "output_tokens": 20})
    yield _event("message_stop")


def _structured(text: str, request: dict[str, Any]) -> dict[str, Any] | None:
    """The answer as an object, where the caller wants one and the text is one."""
    if not any(tool.get("name") == STRUCTURED for tool in request.get("tools") or ()):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _content(step: script.Step, request: dict[str, Any], state: ConversationState) -> Block:
    match step:
        case script.SayStep(text) if (value := _structured(text, request)) is not None:
            return _tool_use(f"toolu_{next(_ids)}", STRUCTURED, value)
        case script.SayStep(text):
            return _text(text)
        case script.StreamStep(words):
            return _text(" ".join(itertools.islice(itertools.cycle(WORDS), words)))
        case script.Think(text):
            return {"type": "thinking", "thinking": text, "signature": "rehearsed"}
        case _:
            return _call(step, request, state)


def _call(step: script.Step, request: dict[str, Any], state: ConversationState) -> Block:
    """The tool call, or the search that makes the tool known, or a sentence if there is no such tool."""
    id_start, name, arguments = _wanted_call(step, state)
    if any(tool.get("name") == name for tool in request["tools"]):
        return _tool_use(f"{id_start}{next(_ids)}", name, arguments)
    tries = MAX_SEARCHES if name.startswith(OF_SERVERS) else 1
    is_lost = len(state.searches) >= tries or bool(state.searches and FAILED in state.searches[-1])
    if not is_lost and any(tool.get("name") == SEARCH for tool in request["tools"]):
        return _tool_use(f"{SEARCH_ID}{next(_ids)}", SEARCH, {"query": f"select:{name}", "max_results": 1})
    return _text(f"There is no tool {name} here. {state.searches[-1] if state.searches else ''}".rstrip())


def _wanted_call(step: script.Step, state: ConversationState) -> tuple[str, str, dict[str, Any]]:
    """The beginning of the call's id, the name of the tool, and its arguments."""
    match step:
        case script.CallTool(name, arguments):
            return "toolu_", name, arguments
        case script.RunStep(command):
            return "toolu_", "Bash", {"command": command, "description": "What the rehearsal asks for"}
        case script.AddFile(path, text):
            return "toolu_", "Write", {"file_path": path, "content": text}
        case script.EditFile(path, old, new):
            return "toolu_", "Edit", {"file_path": path, "old_string": old, "new_string": new}
        case script.MakePlan(steps):
            return _planning_call(steps, state)
        case script.Ask(question, options):
            question_json = {
                "question": question,
                "header": "Choose",
                "options": [{"label": option, "description": option} for option in options],
                "multiSelect": False,
            }
            return "toolu_", "AskUserQuestion", {"questions": [question_json]}
        case _:
            raise AssertionError(step)


def _planning_call(steps: tuple[str, ...], state: ConversationState) -> tuple[str, str, dict[str, Any]]:
    """A plan is written to a file in plan mode; leaving that mode asks the user for approval."""
    if not state.plan_file and "enter" not in state.prepared:
        return f"{PREPARING_ID}enter_", "EnterPlanMode", {}
    if state.plan_file and "write" not in state.prepared:
        plan = "\n".join(f"{number}. {text}" for number, text in enumerate(steps, 1))
        return f"{PREPARING_ID}write_", "Write", {"file_path": state.plan_file, "content": plan + "\n"}
    return "toolu_", "ExitPlanMode", {}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _tool_use(call_id: str, name: str, arguments: dict[str, Any]) -> Block:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def _block(index: int, block: Block, over_s: float = 0.0) -> Iterator[Piece]:
    """One content block as the API streams it: an empty one, deltas that fill it, an end."""
    match block["type"]:
        case "text":
            words = block["text"].split(" ")
            deltas = [{"type": "text_delta", "text": w} for w in (words[0], *(" " + w for w in words[1:]))]
            empty = {**block, "text": ""}
        case "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
            empty = {**block, "thinking": "", "signature": ""}
        case _:
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            empty = {**block, "input": {}}
    yield _event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
        if over_s:
            yield Pause(over_s / len(deltas))
    yield _event("content_block_stop", index=index)


def _count(request: dict[str, Any]) -> Iterator[Piece]:
    """Answer `POST /v1/messages/count_tokens`: a guess of four characters to the token."""
    yield JsonReply({"input_tokens": len(json.dumps(request)) // 4})


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
