"""The words of `codex mcp-server`: what its two tools are called with, what it asks and is answered.

Pure. The old server takes less than app-server does; what it cannot take is refused in a
sentence and never left out in silence. Nothing here knows a process or a wire.
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

REASONED = (0, 153, 0)
"""From here on a no carries a reason; 0.133.0 cannot read one. Either takes what it cannot read for a no."""
REASON = "The user declined."


class CallOutcome(msgspec.Struct, frozen=True):
    """The result of a tool call."""

    text: str
    is_error: bool


def refused(tool: str, why: str) -> EngineRefused:
    return EngineRefused(tool, METHOD_NOT_FOUND, f"{why} (use --backend app-server for that)")


# ── calling ────────────────────────────────────────────────────────────────


def check_spec(spec: ThreadSpec) -> None:
    """Raise `EngineRefused` for a thread that the old server cannot have."""
    if spec.ephemeral:
        raise refused("codex", "`codex mcp-server` keeps every thread on the disk")


def first_call(spec: ThreadSpec, turn: TurnSpec) -> dict[str, Any]:
    """The arguments of `codex`. What is to be known in this turn goes behind the caller's instructions."""
    instructions = "\n\n".join(text for text in (spec.developer_instructions, turn.context) if text)
    config = merged(spec.config, spec.extras)
    if turn.effort:
        config["model_reasoning_effort"] = turn.effort
    wanted = {
        "prompt": prompt("codex", turn),
        "cwd": str(spec.cwd),
        "model": turn.model or spec.model,
        "sandbox": spec.sandbox,
        "approval-policy": spec.approval_policy,
        "base-instructions": spec.base_instructions,
        "developer-instructions": instructions or None,
        "config": config or None,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def next_call(thread_id: str, first: TurnSpec, turn: TurnSpec) -> dict[str, Any]:
    """The arguments of `codex-reply`. It takes no instructions, so the context goes in front of the words."""
    if turn.model not in (None, first.model) or turn.effort not in (None, first.effort):
        raise refused("codex-reply", "`codex mcp-server` cannot change the model of a thread")
    words = prompt("codex-reply", turn)
    return {"prompt": f"{turn.context}\n\n{words}" if turn.context else words, "threadId": thread_id}


def prompt(tool: str, turn: TurnSpec) -> str:
    if turn.output_schema is not None:
        raise refused(tool, "`codex mcp-server` takes no schema for its answer")
    texts = [part.text for part in turn.parts if isinstance(part, TextPart)]
    if len(texts) < len(turn.parts):
        raise refused(tool, "`codex mcp-server` takes text and nothing else")
    return "\n\n".join(texts)


# ── answers ────────────────────────────────────────────────────────────────


class _ContentBlock(msgspec.Struct):
    text: str = ""


class _Result(msgspec.Struct):
    content: list[_ContentBlock] = []
    isError: bool | None = None


def outcome(raw: Raw) -> CallOutcome:
    """What a tool call came to, whatever stands in it."""
    try:
        result = msgspec.json.decode(raw, type=_Result)
    except UNREADABLE:
        return CallOutcome("The answer cannot be read", is_error=True)
    return CallOutcome("\n".join(block.text for block in result.content), is_error=bool(result.isError))


# ── questions ──────────────────────────────────────────────────────────────


def question(params: dict[str, Any], question_id: str) -> Question | None:
    """The approval behind an `elicitation/create`; none if it asks for something else."""
    match params.get("codex_elicitation"):
        case "exec-approval":
            kind, message = "command", "Run this command?"
        case "patch-approval":
            kind, message = "patch", "Apply these changes?"
        case _:
            return None
    command = params.get("codex_command")
    words = [str(word) for word in command] if isinstance(command, list) else []
    return Question(
        question_id=question_id,
        kind=kind,  # type: ignore[arg-type]
        thread_id=str(params.get("threadId") or ""),
        turn_id=maybe(params.get("codex_event_id"), str),
        item_id=maybe(params.get("codex_call_id"), str),
        message=message,
        choices=(ACCEPT, FOR_SESSION, NO, STOP),
        reason=maybe(params.get("codex_reason"), str),
        command=plain_command(shlex.join(words)) if words else None,
        cwd=maybe(params.get("codex_cwd"), str),
        changes=changes(params.get("codex_changes")),
        params=params,
    )


def changes(told: Any) -> tuple[FileChange, ...]:
    """Edits as the old server told them: by path."""
    if not isinstance(told, dict):
        return ()
    return tuple(_change(path, change) for path, change in told.items() if isinstance(change, dict))


def _change(path: str, change: dict[str, Any]) -> FileChange:
    kind = change.get("type")
    return FileChange(
        path=path,
        kind="add" if kind == "add" else "delete" if kind == "delete" else "update",
        diff=str(change.get("unified_diff") or change.get("content") or ""),
        move_path=maybe(change.get("move_path"), str),
    )


def decision(asked: Question, answer: Answer, version: tuple[int, ...]) -> dict[str, Any]:
    """What the old server is told. An answer that the question does not offer counts as decline."""
    choice = next((c for c in asked.choices if c.choice_id == answer.choice_id), NO)
    match choice.grants:
        case "once":
            return {"decision": "approved"}
        case "session":
            return {"decision": "approved_for_session"}
        case "stop":
            return {"decision": "abort"}
        case _:
            return {"decision": {"denied": {"rejection": REASON}} if version >= REASONED else "denied"}
