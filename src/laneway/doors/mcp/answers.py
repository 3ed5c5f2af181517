"""Renders how a session tool's call ends: with a result, an open question or a JSON-RPC error. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.base.errors import RemoteError
from laneway.base.plain import label, plain
from laneway.core.answers import answer_granting
from laneway.core.model import Answer, Question
from laneway.core.named.session import NamedSession
from laneway.core.turn import TurnResult
from laneway.doors.mcp import elicitation, forms
from laneway.doors.mcp.codes import (
    BUDGET_SPENT,
    CHILD_PROCESS_DEAD,
    REQUEST_TIMEOUT,
    SESSION_CLOSED,
    proxy_error,
    way_out_of,
)
from laneway.doors.mcp.names import Names

PARTIAL_CHARS = 2_000
"""Of an unfinished answer in an error's message, which is all that some clients show; `data` has all."""


def result(names: Names, named: NamedSession, outcome: TurnResult, notes: list[str]) -> dict[str, Any]:
    """The tool result of a turn that was not stopped from outside."""
    text, is_error = outcome.text, outcome.status != "completed"
    if is_error:
        why = outcome.failure.message if outcome.failure else "the turn was interrupted"
        text = f"{plain(why)} ({names.agent_id} {named.agent_id})"
    text = "\n\n".join((text, *notes))
    usage = named.session.usage
    tool_result: dict[str, Any] = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {
            "threadId": named.thread_id,
            "content": text,
            **names.id_fields(named.agent_id),
            "identity": named.identity,
        },
        "_meta": {
            **names.id_fields(named.agent_id),
            "turns": named.turns,
            "usage": msgspec.to_builtins(usage.total) if usage else None,
            "droppedEvents": named.session.lost_events,
        },
    }
    return {**tool_result, "isError": True} if is_error else tool_result


def parked(names: Names, named: NamedSession, question: Question) -> dict[str, Any]:
    """A question for a client that cannot ask its user: its model may decide it, or ask."""
    text = (
        f"{question.engine} waits for a decision: {elicitation.wording(question)}\n"
        f"Answer it with {names.answer} (question_id {question.question_id})."
    )
    data = {
        "status": "input_required",
        "threadId": named.thread_id,
        "content": text,
        **names.id_fields(named.agent_id),
        "question": question_json(question),
    }
    return {"content": [{"type": "text", "text": text}], "structuredContent": data}


def answered(names: Names, named: NamedSession) -> dict[str, Any]:
    """The tool result for a decided question that no call waits behind."""
    text = "Answered. The session goes on with its turn, which no call waits for."
    data = {
        "status": "answered",
        "threadId": named.thread_id,
        "content": text,
        **names.id_fields(named.agent_id),
    }
    return {"content": [{"type": "text", "text": text}], "structuredContent": data}


def stopped(names: Names, named: NamedSession, outcome: TurnResult, partial: str) -> RemoteError | None:
    """The error of a call whose turn was stopped from outside; none if the turn ended by itself."""
    who = f"Session {named.agent_id} ({named.identity})"
    partial = outcome.text or partial
    facts = {**names.id_fields(named.agent_id), "threadId": named.thread_id, "partial": partial}
    if outcome.failure is not None and outcome.failure.kind == "engine_lost":
        is_shared = named.session.engine.shares_process
        how = named.session.lost_how or outcome.failure.message
        words = named.session.last_words
        facts |= {"last_words": words} if words else {}
        way_out = way_out_of(named.session.engine.name, f"{who} can be resumed", is_shared=is_shared)
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


def question_json(question: Question) -> dict[str, Any]:
    """A question as JSON, for a model that decides it by `agent_answer`."""
    question_fields = {
        "question_id": question.question_id,
        "kind": question.kind,
        "message": elicitation.wording(question),
        "choices": [{"id": c.choice_id, "label": label(c.label)} for c in question.choices],
    }
    form = forms.form(question)
    return {**question_fields, "form": form} if form.get("properties") else question_fields


def decided(question: Question, arguments: dict[str, Any]) -> Answer:
    """The answer that the arguments of `agent_answer` give."""
    reply = {"action": arguments.get("action"), "content": arguments.get("content")}
    return elicitation.answer(question, reply) or answer_granting(question, "stop")
