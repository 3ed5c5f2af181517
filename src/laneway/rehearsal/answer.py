"""The scripted model's answers to Codex (OpenAI Responses API): one request in, one event stream out.

Nothing is remembered between requests: the conversation that Codex sends with each request shows
which step comes next, so any number of threads may rehearse at once. Pure: a decoded request in,
pieces of a server-sent stream out.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from laneway.core.hand_back_tag import without_hand_back
from laneway.rehearsal import script

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
WORDS_PER_PIECE = 400
"""Words joined into one write if the step asks for no pace."""


class Pause(msgspec.Struct, frozen=True):
    seconds: float


class Refuse(msgspec.Struct, frozen=True):
    """Answer with an HTTP error instead of a stream."""

    status: int
    text: str


class Forever(msgspec.Struct, frozen=True):
    """Send nothing until the caller disconnects."""


class Cut(msgspec.Struct, frozen=True):
    """Drop the connection here."""


class JsonReply(msgspec.Struct, frozen=True):
    """Answer with one JSON value instead of a stream."""

    value: dict[str, Any]


Piece: TypeAlias = bytes | Pause | Refuse | JsonReply | Forever | Cut

_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_OF_CODEX = ("<", "Warning: apply_patch was requested via ")
"""How texts begin that Codex adds in the user's name; the second one only in old versions (0.104)."""
_ids = itertools.count(1)


def answer(request: dict[str, Any]) -> Iterator[Piece]:
    """Yield the pieces of the answer to one `POST /v1/responses`."""
    prompt, done = prompt_and_calls(request.get("input", []))
    steps = script.parse(prompt)
    if not steps:
        steps = [script.SayStep(plain_answer(prompt))]
    return _stream(list(next_steps(steps, done)), request)


def prompt_and_calls(items: list[dict[str, Any]]) -> tuple[str, int]:
    """The newest prompt of a person, and how many tool calls have been answered since."""
    prompt, done = "", 0
    for item in items:
        if item.get("type", "message") == "message" and item.get("role") == "user":
            texts = [part.get("text", "") for part in item.get("content", []) if isinstance(part, dict)]
            # Codex wraps its own additions (environment, context, hints) in tags, and so do we.
            spoken = [words for text in texts if (words := without_hand_back(text))]
            own_words = [words for words in spoken if not words.lstrip().startswith(_OF_CODEX)]
            if own_words or not any(texts):
                prompt, done = "\n".join(own_words), 0
        elif item.get("type") in _OUTPUTS:
            done += 1
    return prompt, done


def next_steps(steps: list[script.Step], done: int) -> Iterator[script.Step]:
    """Yield the steps of this answer: after `done` tool calls, up to and including the next one."""
    calls = 0
    has_answer = False
    for step in steps:
        is_call = isinstance(step, script.CALLS)
        if calls == done:
            yield step
            has_answer = True
            if is_call:
                return
        calls += is_call
    if not has_answer:
        yield script.SayStep("Done.")


def plain_answer(prompt: str) -> str:
    prompt_text = " ".join(prompt.split())
    if len(prompt_text) > 80:
        prompt_text = prompt_text[:79] + "…"
    return (
        f"I heard “{prompt_text}”. This is a rehearsal: a scripted model answers,"
        " and a prompt line like %help tells it what to do."
    )


def _stream(steps: list[script.Step], request: dict[str, Any]) -> Iterator[Piece]:
    for step in steps:
        if isinstance(step, script.Fail):
            yield Refuse(step.status, step.text)
            return
    response_id = f"resp_{next(_ids)}"
    yield _event("response.created", response={"id": response_id})
    input_tokens, output_tokens = 100, 0
    for step in steps:
        match step:
            case script.SayStep(text):
                output_tokens += len(text.split())
                yield from _say(_words_of(text), 0.0)
            case script.StreamStep(words, over_s):
                output_tokens += words
                yield from _say([w + " " for w in itertools.islice(itertools.cycle(WORDS), words)], over_s)
            case script.Think(text):
                yield from _think(text)
            case script.UsageStep(tokens):
                input_tokens = tokens
            case script.Hang():
                yield Forever()
            case script.Break():
                yield Cut()
            case _ if isinstance(step, script.CALLS):
                yield _event("response.output_item.done", item=_call(step, request.get("tools", [])))
            case script.Fail():
                pass  # refused above, before the first byte
    yield _event(
        "response.completed",
        response={
            "id": response_id,
            "usage": {
                "input_tokens": input_tokens,
                "input_tokens_details": None,
                "output_tokens": output_tokens,
                "output_tokens_details": None,
                "total_tokens": input_tokens + output_tokens,
            },
        },
    )


def _words_of(text: str) -> list[str]:
    """Split a text into deltas as a model would: a word with the space before it."""
    pieces = text.split(" ")
    return [pieces[0], *(" " + piece for piece in pieces[1:])]


def _say(words: list[str], over_s: float) -> Iterator[Piece]:
    item_id = f"msg_{next(_ids)}"
    item = {"type": "message", "role": "assistant", "id": item_id}
    yield _event(
        "response.output_item.added", item={**item, "content": [{"type": "output_text", "text": ""}]}
    )
    # One template and one json.dumps per delta: this loop sets the pace of the benchmarks.
    kind = "response.output_text.delta"
    head = f'event: {kind}\ndata: {{"type":"{kind}","item_id":"{item_id}","delta":'
    if over_s:
        for word in words:
            yield (head + json.dumps(word) + "}\n\n").encode()
            yield Pause(over_s / len(words))
    else:
        for batch in _batches(words, WORDS_PER_PIECE):
            yield "".join(head + json.dumps(word) + "}\n\n" for word in batch).encode()
    yield _event(
        "response.output_item.done",
        item={**item, "content": [{"type": "output_text", "text": "".join(words)}]},
    )


def _think(text: str) -> Iterator[bytes]:
    item_id = f"rs_{next(_ids)}"
    item = {"type": "reasoning", "id": item_id}
    yield _event("response.output_item.added", item={**item, "summary": []})
    yield _event("response.reasoning_summary_part.added", item_id=item_id, summary_index=0)
    for word in _words_of(text):
        yield _event("response.reasoning_summary_text.delta", item_id=item_id, summary_index=0, delta=word)
    yield _event(
        "response.output_item.done", item={**item, "summary": [{"type": "summary_text", "text": text}]}
    )


def _call(step: script.Step, tools: list[dict[str, Any]]) -> dict[str, Any]:
    call_id = f"call_{next(_ids)}"
    match step:
        case script.RunStep(command, escalated):
            return _function(call_id, *_shell(command, escalated, tools))
        case script.AddFile() | script.EditFile():
            patch = patch_of(step)
            if not any(tool.get("name") == "apply_patch" for tool in tools):
                # A Codex that does not know the model offers no patch tool, but reads patches in the shell.
                return _function(call_id, *_shell(f"apply_patch <<'EOF'\n{patch}\nEOF\n", False, tools))
            return {"type": "custom_tool_call", "name": "apply_patch", "call_id": call_id, "input": patch}
        case script.MakePlan(steps):
            plan = [
                {"step": s, "status": "in_progress" if i == 0 else "pending"} for i, s in enumerate(steps)
            ]
            return _function(call_id, "update_plan", {"plan": plan})
        case script.Ask(question, options):
            question_json = {
                "id": "choice",
                "header": "Choose",
                "question": question,
                "options": [{"label": option, "description": option} for option in options],
            }
            return _function(call_id, "request_user_input", {"questions": [question_json]})
        case script.CallTool(name, arguments):
            return _function(call_id, name, arguments, namespace=_namespace_of(name, tools))
        case _:
            raise AssertionError(step)


def patch_of(step: script.AddFile | script.EditFile) -> str:
    """The step in the form that Codex's patch tool takes."""
    if isinstance(step, script.AddFile):
        changes = [f"*** Add File: {step.path}", *("+" + line for line in step.text.split("\n"))]
    else:
        changes = [f"*** Update File: {step.path}", "@@", f"-{step.old}", f"+{step.new}"]
    return "\n".join(["*** Begin Patch", *changes, "*** End Patch"])


def _shell(command: str, escalated: bool, tools: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Codex has renamed its shell tool over the years; use the one this version offers."""
    offered = {tool.get("name"): tool.get("parameters") or {} for tool in tools}
    name = next(
        (name for name in ("exec_command", "shell_command", "shell") if name in offered), "exec_command"
    )
    forms: dict[str, dict[str, Any]] = {
        "exec_command": {"cmd": command},
        "shell_command": {"command": command},
        "shell": {"command": ["bash", "-lc", command]},
    }
    arguments = forms[name]
    if "login" in offered.get(name, {}).get("properties", {}):
        arguments["login"] = False  # a rehearsal should not wait for the user's shell profile
    if escalated:
        arguments["sandbox_permissions"] = "require_escalated"
        arguments["justification"] = "The rehearsal asks to leave the sandbox."
    return name, arguments


def _namespace_of(name: str, tools: list[dict[str, Any]]) -> str | None:
    for tool in tools:
        if tool.get("type") == "namespace" and any(
            inner.get("name") == name for inner in tool.get("tools", [])
        ):
            return str(tool["name"])
    return None


def _function(
    call_id: str, name: str, arguments: dict[str, Any], namespace: str | None = None
) -> dict[str, Any]:
    item = {"type": "function_call", "name": name, "call_id": call_id, "arguments": json.dumps(arguments)}
    return {**item, "namespace": namespace} if namespace else item


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _batches(words: list[str], size: int) -> Iterable[list[str]]:
    return (words[start : start + size] for start in range(0, len(words), size))
