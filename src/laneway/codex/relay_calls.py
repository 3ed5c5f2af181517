"""Arguments, results and approvals of the two tools of `codex mcp-server`, to and from the core's values.

Pure. The old server accepts less than app-server does; what it cannot do is refused with a sentence and
never silently left out. Knows no process and no wire.
"""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from laneway.base.errors import EngineRefused
from laneway.codex.items import maybe, plain_command
from laneway.codex.questions import ACCEPT, FOR_SESSION, NO, STOP
from laneway.core.model import Answer, FileChange, Question
from laneway.core.overrides import merged
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.wire.messages import METHOD_NOT_FOUND, UNREADABLE, Raw

REASON_SINCE = (0, 153, 0)
"""The first version whose denial has a reason; 0.133.0 cannot read one. Either denies what it cannot read."""
REASON = "The user declined."


class CallOutcome(msgspec.Struct, frozen=True):
    """The result of a tool call."""

    text: str
    is_error: bool


def unsupported(tool: str, reason: str) -> EngineRefused:
    return EngineRefused(tool, METHOD_NOT_FOUND, f"{reason} (use --backend app-server for that)")


# ── arguments ───────────────────────────────────────────────────────────────


def check_spec(spec: ThreadSpec) -> None:
    """Raise `EngineRefused` for a thread that the old server does not support."""
    if spec.ephemeral:
        raise unsupported("codex", "`codex mcp-server` keeps every thread on the disk")


def first_call(spec: ThreadSpec, turn: TurnSpec) -> dict[str, Any]:
    """The arguments of `codex`. The turn's context is appended to the caller's instructions."""
    instructions = "\n\n".join(text for text in (spec.developer_instructions, turn.context) if text)
    config = merged(spec.config, spec.extras)
    if turn.effort:
        config["model_reasoning_effort"] = turn.effort
    arguments = {
        "prompt": prompt("codex", turn),
        "cwd": str(spec.cwd),
        "model": turn.model or spec.model,
        "sandbox": spec.sandbox,
        "approval-policy": spec.approval_policy,
        "base-instructions": spec.base_instructions,
        "developer-instructions": instructions or None,
        "config": config or None,
    }
    return {name: value for name, value in arguments.items() if value is not None}


def next_call(thread_id: str, first: TurnSpec, turn: TurnSpec) -> dict[str, Any]:
    """The arguments of `codex-reply`. It takes no instructions, so the context precedes the prompt."""
    if turn.model not in (None, first.model) or turn.effort not in (None, first.effort):
        raise unsupported("codex-reply", "`codex mcp-server` cannot change the model of a thread")
    text = prompt("codex-reply", turn)
    return {"prompt": f"{turn.context}\n\n{text}" if turn.context else text, "threadId": thread_id}


def prompt(tool: str, turn: TurnSpec) -> str:
    if turn.output_schema is not None:
        raise unsupported(tool, "`codex mcp-server` takes no schema for its answer")
    texts = [part.text for part in turn.parts if isinstance(part, TextPart)]
    if len(texts) < len(turn.parts):
        raise unsupported(tool, "`codex mcp-server` takes text and nothing else")
    return "\n\n".join(texts)


# ── results ────────────────────────────────────────────────────────────────


class _ContentBlock(msgspec.Struct):
    text: str = ""


class _Result(msgspec.Struct):
    content: list[_ContentBlock] = []
    isError: bool | None = None


def outcome(raw: Raw) -> CallOutcome:
    """The result of a tool call, whatever its shape."""
    try:
        result = msgspec.json.decode(raw, type=_Result)
    except UNREADABLE:
        return CallOutcome("The answer cannot be read", is_error=True)
    return CallOutcome("\n".join(block.text for block in result.content), is_error=bool(result.isError))


# ── questions ──────────────────────────────────────────────────────────────


def question_of(params: dict[str, Any], question_id: str) -> Question | None:
    """The approval in an `elicitation/create`; none if it asks for something else."""
    match params.get("codex_elicitation"):
        case "exec-approval":
            kind, message = "command", "Run this command?"
        case "patch-approval":
            kind, message = "patch", "Apply these changes?"
        case _:
            return None
    command = params.get("codex_command")
    arguments = [str(argument) for argument in command] if isinstance(command, list) else []
    return Question(
        question_id=question_id,
        kind=kind,  # type: ignore[arg-type]
        thread_id=str(params.get("threadId") or ""),
        turn_id=maybe(params.get("codex_event_id"), str),
        item_id=maybe(params.get("codex_call_id"), str),
        message=message,
        choices=(ACCEPT, FOR_SESSION, NO, STOP),
        reason=maybe(params.get("codex_reason"), str),
        command=plain_command(shlex.join(arguments)) if arguments else None,
        cwd=maybe(params.get("codex_cwd"), str),
        changes=changes(params.get("codex_changes")),
        params=params,
    )


def changes(changes_json: Any) -> tuple[FileChange, ...]:
    """Edits in the old server's form: by path."""
    if not isinstance(changes_json, dict):
        return ()
    return tuple(_change(path, change) for path, change in changes_json.items() if isinstance(change, dict))


def _change(path: str, change: dict[str, Any]) -> FileChange:
    kind = change.get("type")
    return FileChange(
        path=path,
        kind="add" if kind == "add" else "delete" if kind == "delete" else "update",
        diff=str(change.get("unified_diff") or change.get("content") or ""),
        move_path=maybe(change.get("move_path"), str),
    )


def decision(question: Question, answer: Answer, version: tuple[int, ...]) -> dict[str, Any]:
    """The result for the old server. An answer that the question does not offer declines."""
    choice = next((c for c in question.choices if c.choice_id == answer.choice_id), NO)
    match choice.grants:
        case "once":
            return {"decision": "approved"}
        case "session":
            return {"decision": "approved_for_session"}
        case "stop":
            return {"decision": "abort"}
        case _:
            return {"decision": {"denied": {"rejection": REASON}} if version >= REASON_SINCE else "denied"}
