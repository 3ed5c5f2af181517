"""The scripted model's answers to Claude Code: the Anthropic Messages API, as far as it is needed.

The prompt tells the model what to do, in the language of `laneway.rehearsal.script`; a step that only
Codex knows is answered with a sentence. Nothing is remembered between requests: the conversation shows
which step comes next. Pure: a decoded request in, pieces of a stream out.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

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
from laneway.rehearsal.server import ModelServer

MODEL = "claude-opus-5-5"
"""Claude Code's default model; the answer must name a model that it knows."""
SEARCH = "ToolSearch"
"""The tool by which a model finds tools of MCP servers, which Claude Code does not list at first."""
MAX_SEARCHES = 100
"""A server that is still starting is not found, so the model asks again."""
SEARCH_PAUSE_S = 0.1
"""Between two searches for the same tool: with `MAX_SEARCHES`, a server has ten seconds to start."""
FAILED = "failed to connect"
"""The text of `ToolSearch` about a server that failed to start."""

Block: TypeAlias = dict[str, Any]
"""A content block of a message, as the API writes it."""

_SEARCH_ID = "toolu_search_"
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
        return [
            block
            for block in _blocks(messages)
            if block.get("type") == "tool_result" and not _is_search(block)
        ]


class ConversationState(msgspec.Struct, frozen=True):
    """The state of a conversation."""

    prompt: str = ""
    """The newest prompt of a person."""
    done: int = 0
    """Tool calls answered since, without searches."""
    searches: tuple[str, ...] = ()
    """Results of the tool searches since then, as JSON."""


def answer(request: dict[str, Any]) -> Iterator[Piece]:
    """Yield the pieces of the answer to one `POST /v1/messages`."""
    state = conversation_state(request.get("messages", []))
    # Without tools it is a side request of Claude Code (a title, a summary), not the conversation.
    steps = script.parse(state.prompt) if request.get("tools") else []
    if not steps:
        steps = [script.SayStep(plain_answer(state.prompt))]
    return _stream(list(next_steps(steps, state.done)), request, state.searches)


def conversation_state(messages: list[dict[str, Any]]) -> ConversationState:
    state = ConversationState()
    for message in messages:
        if message.get("role") != "user":
            continue
        blocks = list(_blocks([message]))
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for result in results:
            if _is_search(result):
                tools_json = json.dumps(result.get("content"))
                state = ConversationState(state.prompt, state.done, (*state.searches, tools_json))
            else:
                state = ConversationState(state.prompt, state.done + 1)
        # Claude Code wraps its own additions (reminders, command output) in tags, or adds them to results.
        texts = [block["text"] for block in blocks if block.get("type") == "text"]
        texts = [text for text in texts if not text.lstrip().startswith("<")]
        if texts and not results:
            state = ConversationState("\n".join(texts))
    return state


def _is_search(result: Block) -> bool:
    return str(result.get("tool_use_id")).startswith(_SEARCH_ID)


def _blocks(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in messages:
        content = message.get("content", [])
        if isinstance(content, str):
            yield {"type": "text", "text": content}
        else:
            yield from content


def _stream(steps: list[script.Step], request: dict[str, Any], searches: tuple[str, ...]) -> Iterator[Piece]:
    for step in steps:
        if isinstance(step, script.Fail):
            yield Refuse(step.status, step.text)
            return
    token_counts = [step.input_tokens for step in steps if isinstance(step, script.UsageStep)]
    usage = {"input_tokens": token_counts[-1] if token_counts else 100}
    usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message: Block = {"id": f"msg_{next(_ids)}", "type": "message", "role": "assistant", "content": []}
    message |= {"model": request.get("model", MODEL), "stop_reason": None, "stop_sequence": None}
    yield _event("message_start", message={**message, "usage": {**usage, "output_tokens": 1}})
    stop_reason = "end_turn"
    for index, step in enumerate(steps):
        match step:
            case script.Hang():
                yield Forever()
            case script.Break():
                yield Cut()
            case script.StreamStep(_, over_s):
                yield from _block(index, _content(step), over_s)
            case script.CallTool() | script.RunStep() | script.Ask():
                block = _call(step, request, searches)
                if block["type"] == "tool_use":
                    stop_reason = "tool_use"
                    if searches and block["name"] == SEARCH:
                        yield Pause(SEARCH_PAUSE_S)
                yield from _block(index, block)
            case script.UsageStep() | script.Fail():
                pass
            case _:
                yield from _block(index, _content(step))
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage={**usage, "output_tokens": 20})
    yield _event("message_stop")


def _content(step: script.Step) -> Block:
    match step:
        case script.SayStep(text):
            return _text(text)
        case script.StreamStep(words):
            return _text(" ".join(itertools.islice(itertools.cycle(WORDS), words)))
        case script.Think(text):
            return {"type": "thinking", "thinking": text, "signature": "rehearsed"}
        case _:
            return _text("Only Codex knows this step of a rehearsal.")


def _call(
    step: script.CallTool | script.RunStep | script.Ask, request: dict[str, Any], searches: tuple[str, ...]
) -> Block:
    """The tool call, or the search that makes the tool known, or a sentence if there is no such tool."""
    name, arguments = _name_and_arguments(step)
    offered = {tool.get("name") for tool in request["tools"]}
    if name in offered:
        return _tool_use(f"toolu_{next(_ids)}", name, arguments)
    is_lost = len(searches) >= MAX_SEARCHES or bool(searches and FAILED in searches[-1])
    if SEARCH in offered and not is_lost:
        return _tool_use(f"{_SEARCH_ID}{next(_ids)}", SEARCH, {"query": f"select:{name}", "max_results": 1})
    return _text(f"There is no tool {name} here. {searches[-1] if searches else ''}".rstrip())


def _name_and_arguments(step: script.CallTool | script.RunStep | script.Ask) -> tuple[str, dict[str, Any]]:
    match step:
        case script.CallTool(name, arguments):
            return name, arguments
        case script.RunStep(command):
            return "Bash", {"command": command, "description": "What the rehearsal asks for"}
        case script.Ask(question, options):
            choices = [{"label": option, "description": option} for option in options]
            question_json = {
                "question": question,
                "header": "Choose",
                "options": choices,
                "multiSelect": False,
            }
            return "AskUserQuestion", {"questions": [question_json]}


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
