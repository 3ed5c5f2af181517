"""What a call of a session with a name ends with: a result, a question, or an error. Pure rendering."""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.base.errors import RemoteError
from laneway.base.plain import label, plain
from laneway.core.colleague import Colleague
from laneway.core.model import DECLINE, Answer, Question
from laneway.core.turn import TurnResult
from laneway.doors.mcp import elicitation
from laneway.doors.mcp.codes import (
    BUDGET_SPENT,
    CHILD_PROCESS_DEAD,
    REQUEST_TIMEOUT,
    SESSION_CLOSED,
    proxy_error,
)
from laneway.doors.mcp.names import Names

PARTIAL_CHARS = 2_000
"""Of an unfinished answer in an error's message, which is all that some clients show; `data` has all."""


def result(names: Names, colleague: Colleague, outcome: TurnResult, notes: list[str]) -> dict[str, Any]:
    """How a turn went that ran to its own end."""
    text, is_error = outcome.text, outcome.status != "completed"
    if is_error:
        why = outcome.failure.message if outcome.failure else "the turn was interrupted"
        text = f"{plain(why)} ({names.agent_id} {colleague.agent_id})"
    text = "\n\n".join((text, *notes))
    usage = colleague.session.usage
    shown: dict[str, Any] = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {
            "threadId": colleague.thread_id,
            "content": text,
            **names.told(colleague.agent_id),
            "identity": colleague.identity,
        },
        "_meta": {
            **names.told(colleague.agent_id),
            "turns": colleague.turns,
            "usage": msgspec.to_builtins(usage.total) if usage else None,
            "droppedEvents": colleague.session.lost_events,
        },
    }
    return {**shown, "isError": True} if is_error else shown


def parked(names: Names, colleague: Colleague, question: Question) -> dict[str, Any]:
    """A question for a client that can ask nobody: its model may decide, or fetch somebody."""
    text = (
        f"Codex waits for a decision: {elicitation.wording(question)}\n"
        f"Answer it with {names.answer} (question_id {question.question_id})."
    )
    shown = {
        "status": "input_required",
        "threadId": colleague.thread_id,
        "content": text,
        **names.told(colleague.agent_id),
        "question": told(question),
    }
    return {"content": [{"type": "text", "text": text}], "structuredContent": shown}


def answered(names: Names, colleague: Colleague) -> dict[str, Any]:
    """A question was decided that no call waits behind."""
    text = "Answered. The session goes on with its turn, which no call waits for."
    shown = {
        "status": "answered",
        "threadId": colleague.thread_id,
        "content": text,
        **names.told(colleague.agent_id),
    }
    return {"content": [{"type": "text", "text": text}], "structuredContent": shown}


def stopped(names: Names, colleague: Colleague, outcome: TurnResult, partial: str) -> RemoteError | None:
    """What ended a turn from outside is an error of the call, not an answer of the tool."""
    who = f"Session {colleague.agent_id} ({colleague.identity})"
    partial = outcome.text or partial
    facts = {**names.told(colleague.agent_id), "threadId": colleague.thread_id, "partial": partial}
    if outcome.failure is not None and outcome.failure.kind == "engine_lost":
        how = colleague.session.lost_how or outcome.failure.message
        words = colleague.session.last_words
        facts |= {"last_words": words} if words else {}
        way_out = f"Reconnect to this MCP server to start Codex again; {who} can be resumed."
        return proxy_error(CHILD_PROCESS_DEAD, f"{outcome.failure.message}. {way_out}", exit=how, **facts)
    match outcome.stopped_by:
        case "timeout":
            so_far = plain(partial[:PARTIAL_CHARS]) or "nothing"
            late = f"{who} did not finish in time; the turn was stopped and the session can be used."
            return proxy_error(REQUEST_TIMEOUT, f"{late} So far: {so_far}", **facts)
        case "close":
            return proxy_error(SESSION_CLOSED, f"{who} was closed during the turn.", **facts)
        case "budget":
            return proxy_error(BUDGET_SPENT, f"{who} has spent its budget; the turn was stopped.", **facts)
        case _:
            return None


def told(question: Question) -> dict[str, Any]:
    """A question for somebody who reads JSON."""
    about = {
        "question_id": question.question_id,
        "kind": question.kind,
        "message": elicitation.wording(question),
        "choices": [{"id": c.choice_id, "label": label(c.label)} for c in question.choices],
    }
    form = elicitation.form(question)
    return {**about, "form": form} if form.get("properties") else about


def decided(question: Question, arguments: dict[str, Any]) -> Answer:
    """What the arguments of `agent_answer` say."""
    reply = {"action": arguments.get("action"), "content": arguments.get("content")}
    return elicitation.answer(question, reply) or _stop(question)


def _stop(question: Question) -> Answer:
    """Decline and end the turn, where that is offered."""
    ending = next((c for c in question.choices if c.grants == "stop"), None)
    return Answer(choice_id=ending.choice_id) if ending else DECLINE
