"""A scripted Claude: the Anthropic Messages API, as far as Claude Code needs it.

The prompt tells the model what to do, in the language of `laneway.rehearsal.script`; a step that
only Codex knows is answered with a sentence. Nothing is remembered between requests: which step
comes next is read off the conversation. Pure: a decoded request in, pieces of a stream out.
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
    Json,
    Pause,
    Piece,
    Refuse,
    next_steps,
    plain_answer,
)
from laneway.rehearsal.server import ModelServer

MODEL = "claude-opus-5-5"
"""What Claude Code asks for by itself; the answer must name a model that it knows."""
SEARCH = "ToolSearch"
"""Claude Code hides the tools of MCP servers behind this one until the model asks for them by name."""
MAX_SEARCHES = 100
"""A server that is still starting is not found, so the model asks again."""
SEARCH_PAUSE_S = 0.1
"""Between two searches for the same tool: with `MAX_SEARCHES`, a server has ten seconds to start."""
FAILED = "failed to connect"
"""What `ToolSearch` says of a server that will not come any more."""

Block: TypeAlias = dict[str, Any]
"""A content block of a message, as the API writes it."""

_SEARCH_ID = "toolu_search_"
_ids = itertools.count(1)


class ClaudeModel:
    """The answers of a scripted Claude, and all that it was shown: `requests`, in order."""

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
        """The `tool_result` blocks that the model was shown last, without those of tool searches."""
        messages = self.requests[-1]["messages"] if self.requests else []
        return [
            block
            for block in _blocks(messages)
            if block.get("type") == "tool_result" and not _is_search(block)
        ]


class Place(msgspec.Struct, frozen=True):
    """Where a conversation stands."""

    prompt: str = ""
    """The newest words of a person."""
    done: int = 0
    """Tool calls answered since, without searches."""
    searches: tuple[str, ...] = ()
    """What the searches since the last of those brought, as JSON."""


def answer(request: dict[str, Any]) -> Iterator[Piece]:
    """Yield the pieces of the answer to one `POST /v1/messages`."""
    place = where_are_we(request.get("messages", []))
    # Without tools it is a side errand of Claude Code (a title, a summary), not the conversation.
    steps = script.parse(place.prompt) if request.get("tools") else []
    if not steps:
        steps = [script.Say(plain_answer(place.prompt))]
    return _stream(list(next_steps(steps, place.done)), request, place.searches)


def where_are_we(messages: list[dict[str, Any]]) -> Place:
    place = Place()
    for message in messages:
        if message.get("role") != "user":
            continue
        blocks = list(_blocks([message]))
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for result in results:
            if _is_search(result):
                found = json.dumps(result.get("content"))
                place = Place(place.prompt, place.done, (*place.searches, found))
            else:
                place = Place(place.prompt, place.done + 1)
        # Claude Code wraps what it adds itself (reminders, command output) in tags, or adds it to results.
        said = [block["text"] for block in blocks if block.get("type") == "text"]
        said = [text for text in said if not text.lstrip().startswith("<")]
        if said and not results:
            place = Place("\n".join(said))
    return place


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
    told = [step.input_tokens for step in steps if isinstance(step, script.Usage)]
    usage = {"input_tokens": told[-1] if told else 100}
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
            case script.Stream(_, over_s):
                yield from _block(index, _content(step), over_s)
            case script.CallTool() | script.Run() | script.Ask():
                block = _call(step, request, searches)
                if block["type"] == "tool_use":
                    stop_reason = "tool_use"
                    if searches and block["name"] == SEARCH:
                        yield Pause(SEARCH_PAUSE_S)
                yield from _block(index, block)
            case script.Usage() | script.Fail():
                pass
            case _:
                yield from _block(index, _content(step))
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage={**usage, "output_tokens": 20})
    yield _event("message_stop")


def _content(step: script.Step) -> Block:
    match step:
        case script.Say(text):
            return _text(text)
        case script.Stream(words):
            return _text(" ".join(itertools.islice(itertools.cycle(WORDS), words)))
        case script.Think(text):
            return {"type": "thinking", "thinking": text, "signature": "rehearsed"}
        case _:
            return _text("Only Codex knows this step of a rehearsal.")


def _call(
    step: script.CallTool | script.Run | script.Ask, request: dict[str, Any], searches: tuple[str, ...]
) -> Block:
    """The call itself, or the search that makes the tool known, or a sentence if it does not exist."""
    name, arguments = _name_and_arguments(step)
    offered = {tool.get("name") for tool in request["tools"]}
    if name in offered:
        return _tool_use(f"toolu_{next(_ids)}", name, arguments)
    is_lost = len(searches) >= MAX_SEARCHES or bool(searches and FAILED in searches[-1])
    if SEARCH in offered and not is_lost:
        return _tool_use(f"{_SEARCH_ID}{next(_ids)}", SEARCH, {"query": f"select:{name}", "max_results": 1})
    return _text(f"There is no tool {name} here. {searches[-1] if searches else ''}".rstrip())


def _name_and_arguments(step: script.CallTool | script.Run | script.Ask) -> tuple[str, dict[str, Any]]:
    match step:
        case script.CallTool(name, arguments):
            return name, arguments
        case script.Run(command):
            return "Bash", {"command": command, "description": "What the rehearsal asks for"}
        case script.Ask(question, options):
            choices = [{"label": option, "description": option} for option in options]
            asked = {"question": question, "header": "Choose", "options": choices, "multiSelect": False}
            return "AskUserQuestion", {"questions": [asked]}


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
    yield Json({"input_tokens": len(json.dumps(request)) // 4})


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
