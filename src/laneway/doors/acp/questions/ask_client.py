"""Asks the client one question of an engine or of an MCP server, by the best means that the client supports.

An approval is a permission request. A question that needs text is a form; else a permission request
for each field; else text in the conversation, which the next prompt answers. If the client refuses one
of these, the next is tried. An unclear reply declines, and a decline that no person chose has a note
for the user.

Called by `OpenQuestions`, which cancels it when the question is withdrawn; that cancels the client's
request.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from laneway.base.errors import RemoteError, WireError
from laneway.base.plain import plain, quoted
from laneway.core.answers import answer_granting, no_with_words, stop_answer
from laneway.core.model import DECLINE, Answer, Question
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.ids import tool_call_id
from laneway.doors.acp.questions import permission_options
from laneway.doors.acp.questions.permission_request import PermissionRequest, PermissionRequestV1
from laneway.rendering import forms, questions_in_text
from laneway.rendering.forms import Control
from laneway.rendering.question_texts import (
    asker,
    attributed,
    dismissed_text,
    explained,
    headline,
    is_web,
    subject,
)
from laneway.rendering.questions_in_text import InText
from laneway.rendering.titles import title

log = logging.getLogger(__name__)

MAX_BUTTONS = 12
"""Options of one permission request: more do not fit a dialog, and are asked in text."""

_FORM_MODES = (None, "form", "openai/form", "openaiForm")
_OTHER = {"optionId": "other", "name": "Something else (asks in the conversation)", "kind": "allow_once"}
_LEAVE_OUT = {"optionId": "leave-out", "name": "Leave this out", "kind": "reject_once"}
_NO_ANSWER = {"optionId": "decline", "name": "Give no answer", "kind": "reject_once"}


class AskOutcome(msgspec.Struct, frozen=True):
    """The outcome of a question that the client was asked."""

    answer: Answer
    note: str = ""
    """For the user, if no person decided this."""
    url_id: str = ""
    """Set if the client opened a page: `elicitation/complete` is sent when the turn ends."""
    is_client_gone: bool = False
    """Whether the client has disconnected, so that nobody waits for the turn any more."""


class _AskContext(msgspec.Struct, frozen=True):
    """The client, session and tool call of a question, and how to request permissions."""

    channel: ClientChannel
    client: EditorClient
    session_id: str
    thread_id: str
    call_id: str | None
    permission: PermissionRequest


async def ask(
    question: Question,
    channel: ClientChannel,
    client: EditorClient,
    session_id: str,
    thread_id: str,
    *,
    cwd: str = "",
    call_id: str | None = None,
    permission: PermissionRequest | None = None,
) -> AskOutcome | InText:
    """Ask the client. `call_id`: the tool call that the question is about, if the client knows one."""
    permission = permission or PermissionRequestV1(channel, client, session_id, thread_id, cwd, call_id)
    context = _AskContext(channel, client, session_id, thread_id, call_id, permission)
    try:
        return await _ask(question, context)
    except RemoteError as refused:
        log.info("the client refused to ask: %s", refused)
        return AskOutcome(DECLINE, f"Your editor could not ask you, so {subject(question)} was declined.")
    except WireError as gone:
        log.debug("the client went away with an open question: %s", gone)
        return AskOutcome(stop_answer(question), is_client_gone=True)


async def _ask(question: Question, context: _AskContext) -> AskOutcome | InText:
    if question.kind not in ("input", "elicitation"):
        return await _approval(question, context)
    if question.url is not None:
        return await _by_url(question, context)
    fields = forms.controls(question) if _mode(question) in _FORM_MODES else None
    if fields is None or (not fields and question.kind == "input"):
        return AskOutcome(DECLINE, f"{asker(question)} asked for what no editor can show: it was declined.")
    if not fields:
        return await _approval(question, context)
    return await _by_form(question, fields, context)


# ── approvals ──────────────────────────────────────────────────────────────


async def _approval(question: Question, context: _AskContext) -> AskOutcome | InText:
    offered = permission_options.options(question)
    reply = await context.permission.request_decision(question, offered)
    picked = permission_options.chosen(reply, offered)
    if picked is permission_options.SAY_WHY:
        return await _no_with_words(question, context)
    answer = permission_options.answer(question, reply)
    return AskOutcome(answer, "" if picked is not None else dismissed_text(question))


async def _no_with_words(question: Question, context: _AskContext) -> AskOutcome | InText:
    """Ask for the words that go with a no. Without any it stays a no."""
    if not context.client.takes_forms:
        return questions_in_text.ask_why(question)
    why = Control(name="words", title=f"Why not, or what should {question.engine} do instead?")
    params = {
        "mode": "form",
        "requestedSchema": forms.schema((why,)),
        **_elicitation_params(question, context),
    }
    try:
        reply = await context.channel.call("elicitation/create", params)
    except RemoteError as refused:
        log.info("the client refused a form: %s", refused)
        return questions_in_text.ask_why(question)
    values = forms.values((why,), reply.get("content")) if _action(reply) == "accept" else None
    return AskOutcome(no_with_words(question, str((values or {}).get("words", ""))))


# ── forms and pages ────────────────────────────────────────────────────────


async def _by_form(
    question: Question, fields: tuple[Control, ...], context: _AskContext
) -> AskOutcome | InText:
    # The protocol forbids forms for secrets.
    if not context.client.takes_forms or any(field.is_secret for field in fields):
        return await _by_options(question, fields, context)
    params = {
        "mode": "form",
        "requestedSchema": forms.schema(fields),
        **_elicitation_params(question, context),
    }
    try:
        reply = await context.channel.call("elicitation/create", params)
    except RemoteError as refused:
        log.info("the client refused a form: %s", refused)
        return await _by_options(question, fields, context)
    if _action(reply) != "accept":
        return _not_accepted(question, reply)
    read_values = forms.answers if question.kind == "input" else forms.values
    values = read_values(fields, reply.get("content"))
    if values is None:
        return AskOutcome(
            DECLINE, f"Your editor returned what does not fit the form, so {subject(question)} was declined."
        )
    return _accepted(question, values)


async def _by_url(question: Question, context: _AskContext) -> AskOutcome:
    url = question.url or ""
    if not is_web(url):
        return AskOutcome(
            DECLINE, f"{asker(question)} wanted {quoted(url)} opened, which is no web page: declined."
        )
    if context.client.takes_urls:
        url_id = question.question_id
        params = {
            "mode": "url",
            "url": url,
            "elicitationId": url_id,
            **_elicitation_params(question, context),
        }
        try:
            reply = await context.channel.call("elicitation/create", params)
        except RemoteError as refused:
            log.info("the client refused a URL: %s", refused)
        else:
            if _action(reply) != "accept":
                return _not_accepted(question, reply)
            return msgspec.structs.replace(_accepted(question, {}), url_id=url_id)
    offered = [
        {"optionId": "accept", "name": "I have opened it", "kind": "allow_once"},
        {"optionId": "decline", "name": "Decline", "kind": "reject_once"},
    ]
    text = f"{attributed(question)}\n\nOpen this page in your browser: {url}"
    reply = await context.permission.request_choice(
        _new_call_id(question, context), title(f"Open {url}"), text, offered
    )
    picked = permission_options.chosen(reply, offered)
    if picked is None:
        return AskOutcome(stop_answer(question), dismissed_text(question))
    return _accepted(question, {}) if picked["optionId"] == "accept" else AskOutcome(DECLINE)


def _elicitation_params(question: Question, context: _AskContext) -> dict[str, Any]:
    message = attributed(question) if question.kind == "elicitation" else question.message
    scope: dict[str, Any] = {"sessionId": context.session_id}
    if context.call_id is not None:
        scope["toolCallId"] = context.call_id
    return {"message": plain(message), **scope}


def _not_accepted(question: Question, reply: Any) -> AskOutcome:
    if _action(reply) == "decline":
        return AskOutcome(DECLINE)
    answer = stop_answer(question) if _action(reply) == "cancel" else DECLINE
    return AskOutcome(answer, dismissed_text(question))


def _accepted(question: Question, values: dict[str, Any]) -> AskOutcome:
    return AskOutcome(answer_granting(question, "once", values=values))


def _action(reply: Any) -> Any:
    return reply.get("action") if isinstance(reply, dict) else None


# ── options one by one, then text ──────────────────────────────────────────


async def _by_options(
    question: Question, fields: tuple[Control, ...], context: _AskContext
) -> AskOutcome | InText:
    values: dict[str, Any] = {}
    in_text: list[Control] = []
    for number, field in enumerate(fields, 1):
        offered = _buttons(field)
        if not offered:
            in_text.append(field)
            continue
        call_id = f"{_new_call_id(question, context)}:{number}"
        title, text = headline(question, field), explained(question, field)
        try:
            reply = await context.permission.request_choice(call_id, title, text, offered)
        except RemoteError as refused:
            log.info("the client refused to show options: %s", refused)
            in_text.append(field)
            continue
        picked = permission_options.chosen(reply, offered)
        if picked is None:
            return AskOutcome(stop_answer(question), dismissed_text(question))
        match picked["optionId"]:
            case "decline":
                return AskOutcome(DECLINE)
            case "other":
                in_text.append(field)
            case "leave-out":
                pass
            case index:
                values[field.name] = _value(field, int(index))
    return questions_in_text.ask(question, tuple(in_text), values) if in_text else _accepted(question, values)


def _buttons(field: Control) -> list[dict[str, Any]]:
    """A field as the options of a permission request; empty if it cannot be asked that way."""
    names = ["Yes", "No"] if field.kind == "boolean" else [option.title for option in field.options]
    if not names or field.kind not in ("string", "boolean"):
        return []
    buttons = [
        {"optionId": str(n), "name": title(name), "kind": "allow_once"} for n, name in enumerate(names)
    ]
    buttons += [_OTHER] if field.takes_free_text else []
    buttons += [] if field.is_required else [_LEAVE_OUT]
    buttons.append(_NO_ANSWER)
    return buttons if len(buttons) <= MAX_BUTTONS else []


def _value(field: Control, index: int) -> str | bool:
    return index == 0 if field.kind == "boolean" else field.options[index].value


# ── ids and modes ──────────────────────────────────────────────────────────


def _new_call_id(question: Question, context: _AskContext) -> str:
    return tool_call_id(context.thread_id, question.turn_id or "", question.question_id)


def _mode(question: Question) -> Any:
    return question.params.get("mode") if isinstance(question.params, dict) else None
