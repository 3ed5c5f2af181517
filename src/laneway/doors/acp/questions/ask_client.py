"""How a question reaches a person: by the best means that the client has, and never by silence.

The ladder: approvals are permission requests; what wants words is a form, else options one by one,
else text that the next prompt answers. A client that refuses one rung gets the next. Whatever is
not clearly granted is a no, and a no that no person said carries a note for them.

Only the room calls this; cancelled, the client hears that its request is void.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from laneway.base.errors import RemoteError, WireError
from laneway.base.plain import plain, quoted
from laneway.core.model import DECLINE, Answer, Question
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.ids import tool_call_id
from laneway.doors.acp.questions import permission_options
from laneway.doors.acp.questions.permission_request import PermissionRequest, PermissionRequestV1
from laneway.rendering import forms, questions_in_text
from laneway.rendering.choices import granting, stopped
from laneway.rendering.forms import Control
from laneway.rendering.question_words import asks, dismissed, explained, headline, is_web, subject, who
from laneway.rendering.questions_in_text import InText
from laneway.rendering.titles import title

log = logging.getLogger(__name__)

MAX_BUTTONS = 12
"""Options of one permission request: more do not fit a dialog, and are asked for in text."""

_FORM_MODES = (None, "form", "openai/form", "openaiForm")
_OTHER = {"optionId": "other", "name": "Something else (asks in the conversation)", "kind": "allow_once"}
_LEAVE_OUT = {"optionId": "leave-out", "name": "Leave this out", "kind": "reject_once"}
_NO_ANSWER = {"optionId": "decline", "name": "Give no answer", "kind": "reject_once"}


class Settled(msgspec.Struct, frozen=True):
    answer: Answer
    note: str = ""
    """For the user, where nobody decided this."""
    url_id: str = ""
    """The client has a page open for it: `elicitation/complete` is due when the turn ends."""


class _Place(msgspec.Struct, frozen=True):
    """Where a question is asked."""

    line: ClientChannel
    client: EditorClient
    session_id: str
    thread_id: str
    call_id: str | None
    permits: PermissionRequest


async def ask(
    question: Question,
    line: ClientChannel,
    client: EditorClient,
    session_id: str,
    thread_id: str,
    *,
    cwd: str = "",
    call_id: str | None = None,
    permits: PermissionRequest | None = None,
) -> Settled | InText:
    """Put it to the client's person. `call_id`: the tool call it is about, if the client knows one."""
    permits = permits or PermissionRequestV1(line, client, session_id, thread_id, cwd, call_id)
    place = _Place(line, client, session_id, thread_id, call_id, permits)
    try:
        return await _ask(question, place)
    except RemoteError as refused:
        log.info("the client refused to ask: %s", refused)
        return Settled(DECLINE, f"Your editor could not ask you, so {subject(question)} was declined.")
    except WireError as gone:
        log.debug("the client went away with an open question: %s", gone)
        return Settled(DECLINE)


async def _ask(question: Question, place: _Place) -> Settled | InText:
    if question.kind not in ("input", "elicitation"):
        return await _approval(question, place)
    if question.url is not None:
        return await _by_url(question, place)
    fields = forms.controls(question) if _mode(question) in _FORM_MODES else None
    if fields is None or (not fields and question.kind == "input"):
        return Settled(DECLINE, f"{who(question)} asked for what no editor can show: it was declined.")
    if not fields:
        return await _approval(question, place)
    return await _by_form(question, fields, place)


# ── approvals ──────────────────────────────────────────────────────────────


async def _approval(question: Question, place: _Place) -> Settled:
    return _decided(question, await place.permits.decide(question, permission_options.options(question)))


def _decided(question: Question, reply: Any) -> Settled:
    answer = permission_options.answer(question, reply)
    is_decided = permission_options.chosen(reply, permission_options.options(question)) is not None
    return Settled(answer, "" if is_decided else dismissed(question))


# ── forms and pages ────────────────────────────────────────────────────────


async def _by_form(question: Question, fields: tuple[Control, ...], place: _Place) -> Settled | InText:
    # A form is no place for a secret: the protocol forbids it.
    if not place.client.takes_forms or any(field.is_secret for field in fields):
        return await _by_options(question, fields, place)
    params = {"mode": "form", "requestedSchema": forms.schema(fields), **_elicited(question, place)}
    try:
        reply = await place.line.call("elicitation/create", params)
    except RemoteError as refused:
        log.info("the client refused a form: %s", refused)
        return await _by_options(question, fields, place)
    if _action(reply) != "accept":
        return _unfilled(question, reply)
    read = forms.answers if question.kind == "input" else forms.values
    values = read(fields, reply.get("content"))
    if values is None:
        return Settled(
            DECLINE, f"Your editor returned what does not fit the form, so {subject(question)} was declined."
        )
    return _accepted(question, values)


async def _by_url(question: Question, place: _Place) -> Settled:
    url = question.url or ""
    if not is_web(url):
        return Settled(
            DECLINE, f"{who(question)} wanted {quoted(url)} opened, which is no web page: declined."
        )
    if place.client.takes_urls:
        url_id = question.question_id
        params = {"mode": "url", "url": url, "elicitationId": url_id, **_elicited(question, place)}
        try:
            reply = await place.line.call("elicitation/create", params)
        except RemoteError as refused:
            log.info("the client refused a URL: %s", refused)
        else:
            if _action(reply) != "accept":
                return _unfilled(question, reply)
            return msgspec.structs.replace(_accepted(question, {}), url_id=url_id)
    offered = [
        {"optionId": "accept", "name": "I have opened it", "kind": "allow_once"},
        {"optionId": "decline", "name": "Decline", "kind": "reject_once"},
    ]
    words = f"{asks(question)}\n\nOpen this page in your browser: {url}"
    reply = await place.permits.pick(_own_id(question, place), title(f"Open {url}"), words, offered)
    picked = permission_options.chosen(reply, offered)
    if picked is None:
        return Settled(stopped(question), dismissed(question))
    return _accepted(question, {}) if picked["optionId"] == "accept" else Settled(DECLINE)


def _elicited(question: Question, place: _Place) -> dict[str, Any]:
    message = asks(question) if question.kind == "elicitation" else question.message
    scope: dict[str, Any] = {"sessionId": place.session_id}
    if place.call_id is not None:
        scope["toolCallId"] = place.call_id
    return {"message": plain(message), **scope}


def _unfilled(question: Question, reply: Any) -> Settled:
    if _action(reply) == "decline":
        return Settled(DECLINE)
    answer = stopped(question) if _action(reply) == "cancel" else DECLINE
    return Settled(answer, dismissed(question))


def _accepted(question: Question, values: dict[str, Any]) -> Settled:
    return Settled(granting(question, "once", values=values))


def _action(reply: Any) -> Any:
    return reply.get("action") if isinstance(reply, dict) else None


# ── options one by one, then text ──────────────────────────────────────────


async def _by_options(question: Question, fields: tuple[Control, ...], place: _Place) -> Settled | InText:
    values: dict[str, Any] = {}
    in_text: list[Control] = []
    for number, field in enumerate(fields, 1):
        offered = _buttons(field)
        if not offered:
            in_text.append(field)
            continue
        call_id = f"{_own_id(question, place)}:{number}"
        title, words = headline(question, field), explained(question, field)
        try:
            reply = await place.permits.pick(call_id, title, words, offered)
        except RemoteError as refused:
            log.info("the client refused to show options: %s", refused)
            in_text.append(field)
            continue
        picked = permission_options.chosen(reply, offered)
        if picked is None:
            return Settled(stopped(question), dismissed(question))
        match picked["optionId"]:
            case "decline":
                return Settled(DECLINE)
            case "other":
                in_text.append(field)
            case "leave-out":
                pass
            case index:
                values[field.name] = _value(field, int(index))
    return questions_in_text.ask(question, tuple(in_text), values) if in_text else _accepted(question, values)


def _buttons(field: Control) -> list[dict[str, Any]]:
    """The options of a field as a permission request; empty if it cannot be asked that way."""
    names = ["Yes", "No"] if field.kind == "boolean" else [option.title for option in field.options]
    if not names or field.kind not in ("string", "boolean"):
        return []
    shown = [{"optionId": str(n), "name": title(name), "kind": "allow_once"} for n, name in enumerate(names)]
    shown += [_OTHER] if field.takes_words else []
    shown += [] if field.is_required else [_LEAVE_OUT]
    shown.append(_NO_ANSWER)
    return shown if len(shown) <= MAX_BUTTONS else []


def _value(field: Control, index: int) -> str | bool:
    return index == 0 if field.kind == "boolean" else field.options[index].value


# ── words ──────────────────────────────────────────────────────────────────


def _own_id(question: Question, place: _Place) -> str:
    return tool_call_id(place.thread_id, question.turn_id or "", question.question_id)


def _mode(question: Question) -> Any:
    return question.params.get("mode") if isinstance(question.params, dict) else None
