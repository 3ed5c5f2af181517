"""What a conversation shows, as JSON for the page: harmless texts, Markdown as trees, diffs as rows. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.base.plain import code_label, label, plain, plain_code
from laneway.core.model import Activity, FileChange, Plan, Question
from laneway.doors.chat.outputs import (
    ActivityShown,
    Button,
    FileShown,
    InputReceipt,
    PlanShown,
    QuestionOver,
    QuestionShown,
    Said,
    Shown,
    StatusNow,
    TextDone,
    Told,
    TurnBegan,
    TurnEnded,
)
from laneway.doors.chat.platforms.web.diff_rows import change_diff, turn_diffs
from laneway.doors.chat.platforms.web.markdown_tree import markdown_tree
from laneway.rendering import forms, question_texts
from laneway.rendering.activities import outcome
from laneway.rendering.as_code import as_code
from laneway.rendering.lane_titles import call_title
from laneway.rendering.outputs import shortened
from laneway.rendering.titles import relative_to

MAX_OUTPUT_CHARS = 60_000
"""Of one command in an event; the whole can be asked for."""


PLATFORM = "web"


def item_json(shown: Shown, cwd: str) -> dict[str, Any]:
    """One stored output. What is not shown is there all the same: a missing number would be a gap."""
    return {"n": shown.number, "at": shown.at, **(_body(shown, cwd) or {"kind": "hidden"})}


def whole_output(shown: Shown) -> str | None:
    """All that a command printed."""
    if isinstance(shown.output, ActivityShown):
        return plain(shown.output.activity.output or "")
    return None


def status_json(status: StatusNow) -> dict[str, Any]:
    return msgspec.to_builtins(status)  # type: ignore[no-any-return]


def searchable(shown: Shown) -> str:
    """The words of an output that a search looks at."""
    match shown.output:
        case Told(only=only) if only is not None and only.platform != PLATFORM:
            return ""
        case Said(text=text) | TextDone(text=text) | Told(text=text):
            return text
        case ActivityShown(activity=activity):
            return f"{activity.title}\n{activity.output or ''}"
        case QuestionShown(question=question):
            return f"{question.message}\n{question.command or ''}"
        case TurnBegan(task=task):
            return task
        case FileShown(name=name, caption=caption):
            return f"{name}\n{caption}"
        case _:
            return ""


def _body(shown: Shown, cwd: str) -> dict[str, Any] | None:
    match shown.output:
        case Said() as said:
            return _said(said)
        case InputReceipt() as receipt:
            return _receipt(receipt)
        case TurnBegan() as began:
            return _turn_began(began)
        case TextDone() as text:
            return _text(text)
        case ActivityShown() as activity:
            return _activity(activity.lane, activity.ticket, activity.activity, cwd)
        case PlanShown() as plan:
            return {"kind": "plan", "lane": plan.lane, "ticket": plan.ticket, **_plan(plan.plan)}
        case TurnEnded() as ended:
            return _turn_ended(ended)
        case QuestionShown() as question:
            return question_json(question, cwd)
        case QuestionOver() as over:
            return _question_over(over)
        case Told(only=only) if only is not None and only.platform != PLATFORM:
            return None
        case Told() as told:
            return _told(told)
        case FileShown() as file:
            return _file(file)
        case _:
            return None


def _said(said: Said) -> dict[str, Any]:
    return {
        "kind": "said",
        "input": said.input_id,
        "message": said.message_id,
        "sender": label(said.sender),
        "platform": label(said.platform),
        "text": plain(said.text),
        "images": said.images,
        "lane": said.lane,
    }


def _receipt(receipt: InputReceipt) -> dict[str, Any]:
    return {
        "kind": "receipt",
        "input": receipt.input_id,
        "message": receipt.message_id,
        "receipt": receipt.kind,
        "lane": receipt.lane,
        "position": receipt.position,
        "text": plain(receipt.text),
    }


def _turn_began(began: TurnBegan) -> dict[str, Any]:
    return {
        "kind": "turn_began",
        "lane": began.lane,
        "ticket": began.ticket,
        "task": plain(began.task),
        "banner": began.has_banner,
        "sender": label(began.sender),
        "caller": began.caller,
    }


def _text(text: TextDone) -> dict[str, Any]:
    return {
        "kind": text.kind,
        "lane": text.lane,
        "ticket": text.ticket,
        "part": text.part,
        "tree": markdown_tree(text.text),
    }


def _question_over(over: QuestionOver) -> dict[str, Any]:
    return {
        "kind": "question_over",
        "number": over.number,
        "lane": over.lane,
        "how": over.how,
        "by": label(over.by),
        "text": plain(over.text),
    }


def _told(told: Told) -> dict[str, Any]:
    return {
        "kind": "told",
        "level": told.level,
        "lane": told.lane,
        "tree": markdown_tree(told.text),
        "buttons": buttons_json(told.buttons),
    }


def _file(file: FileShown) -> dict[str, Any]:
    return {
        "kind": "file",
        "lane": file.lane,
        "name": code_label(file.name),
        "path": plain_code(file.path),
        "caption": plain(file.caption),
    }


def buttons_json(buttons: tuple[Button, ...]) -> list[dict[str, str]]:
    return [{"data": each.data, "label": label(each.label), "style": each.style} for each in buttons]


def _activity(lane: str, ticket: str, activity: Activity, cwd: str) -> dict[str, Any]:
    output = activity.output or ""
    return {
        "kind": "activity",
        "lane": lane,
        "ticket": ticket,
        "item": activity.item_id,
        "what": activity.kind,
        "title": call_title(activity, cwd),
        "command": plain_code(activity.title) if activity.kind == "command" else "",
        "status": activity.status,
        "exit_code": activity.exit_code,
        "outcome": outcome(activity, has_content=bool(activity.content), engine=lane) or "",
        "output": plain(shortened(output, MAX_OUTPUT_CHARS)),
        "is_whole": len(output) <= MAX_OUTPUT_CHARS,
        "lines": output.count("\n") + (not output.endswith("\n")) if output else 0,
        "input": _input(activity),
        "diffs": diffs_json(activity.changes, cwd),
    }


def _input(activity: Activity) -> list[Any]:
    """The arguments of a tool, as code."""
    if activity.kind not in ("mcp", "tool", "other") or activity.input in (None, {}, ""):
        return []
    return list(markdown_tree(as_code(activity.input)))


def diffs_json(changes: tuple[FileChange, ...], cwd: str) -> list[Any]:
    """Files below the folder are named as they are there."""
    return [msgspec.to_builtins(change_diff(_below(change, cwd))) for change in changes]


def _below(change: FileChange, cwd: str) -> FileChange:
    move_path = relative_to(change.move_path, cwd) if change.move_path else None
    return msgspec.structs.replace(change, path=relative_to(change.path, cwd), move_path=move_path)


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "steps": [{"text": plain(step.text), "status": step.status} for step in plan.steps],
        "explanation": plain(plan.explanation or ""),
    }


def _turn_ended(ended: TurnEnded) -> dict[str, Any]:
    return {
        "kind": "turn_ended",
        "lane": ended.lane,
        "ticket": ended.ticket,
        "status": ended.status,
        "banner": ended.has_banner,
        "failure": plain(ended.failure.message) if ended.failure else "",
        "tokens": ended.tokens.total if ended.tokens else 0,
        "seconds": ended.seconds,
        "stopped_by": ended.stopped_by,
        "buttons": buttons_json(ended.buttons),
        "diffs": [msgspec.to_builtins(each) for each in turn_diffs(ended.diff)] if ended.diff else [],
    }


# ── questions ──────────────────────────────────────────────────────────────


def question_json(shown: QuestionShown, cwd: str) -> dict[str, Any]:
    question = shown.question
    fields = _fields(question)
    return {
        "kind": "question",
        "number": shown.number,
        "lane": shown.lane,
        "ticket": shown.ticket,
        "what": question.kind,
        "asker": label(question_texts.asker(question)),
        "title": question_texts.question_title(question),
        "explanation": [
            node
            for paragraph in question_texts.explanation(question, question.cwd or cwd)
            for node in markdown_tree(paragraph)
        ],
        "diffs": diffs_json(question.changes, question.cwd or cwd),
        "url": question.url if question.url and question_texts.is_web(question.url) else "",
        "fields": [_field(field) for field in fields or ()],
        "is_form": bool(fields),
        "takes_words": [choice.grants for choice in question.choices if choice.takes_words],
        "buttons": buttons_json(shown.buttons),
        "for_owners": shown.for_owners,
    }


def _fields(question: Question) -> tuple[forms.Control, ...] | None:
    return forms.controls(question) if question.kind in ("input", "elicitation") else None


def _field(field: forms.Control) -> dict[str, Any]:
    return {
        "name": field.name,
        "title": label(field.title),
        "text": plain(field.text),
        "type": field.kind,
        "options": [
            {"value": each.value, "title": label(each.title), "text": plain(each.text)}
            for each in field.options
        ],
        "required": field.is_required,
        "secret": field.is_secret,
        "free": field.takes_free_text,
        "default": field.default if isinstance(field.default, str | int | float | bool) else None,
    }
