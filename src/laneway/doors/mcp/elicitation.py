"""Renders a question as an MCP elicitation (`elicitation/create`), and reads the client's reply to it.

Pure. The `codex_*` fields are those of the removed `codex mcp-server`, whose clients read them. A reply
is a standard `action`, or the `decision` that the old server took; what does not clearly grant something
declines, and a question that was dismissed (`cancel`) has no answer at all.

What a person reads (`message`, the texts of the form) is made visible (`laneway.base.plain`); what
programs read (the `codex_*` fields, the values of a form) is passed on as the engine sent it.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from laneway.base.plain import (
    MAX_UNSEEN_NAMED,
    UNSEEN,
    code_label,
    is_plain_code,
    label,
    plain,
    plain_code,
    prefixed,
    quoted,
    unseen,
)
from laneway.core.answers import answer_granting
from laneway.core.model import DECLINE, Answer, Choice, FileChange, Question
from laneway.doors.mcp import forms
from laneway.doors.mcp.eras import McpClient
from laneway.rendering.as_code import as_json

SHORT_CHARS = 120
"""Of a command that a dialog of three lines shows whole, together with the sentence around it."""
ENDS_CHARS = 40
REASON_CHARS = 200
"""Of the reason that the model gives: it must not push the question itself out of view."""
MAX_FILES_NAMED = 5

_STOPS = frozenset({"abort", "timed_out", "cancel"})


def can_ask(question: Question, client: McpClient, *, presumed: bool = False) -> bool:
    """Whether this client can ask its user; `presumed` holds where it does not say that it takes forms.

    Secrets may not be asked for by a form, and no page is opened whose address has invisible characters.
    """
    if question.url is not None:
        return client.takes_urls and is_plain_code(question.url)
    return (client.takes_forms or presumed) and not any(field.is_secret for field in question.fields)


def params(
    question: Question, *, request_id: str, id_fields: dict[str, Any], client: McpClient
) -> dict[str, Any]:
    """The params of `elicitation/create`. `id_fields` name the session."""
    if question.kind in ("command", "patch") and _param(question, "codex_elicitation") is not None:
        # Asked by a real mcp-server: its fields are passed on as they came, with the id of the client's call.
        message = "\n".join(_foreign_lines(str(question.params.get("message") or question.message)))
        return {**question.params, "message": message, "codex_mcp_tool_call_id": request_id, **id_fields}
    request: dict[str, Any] = {
        "message": wording(question),
        "threadId": question.thread_id,
        "codex_elicitation": _KINDS.get(question.kind, question.kind),
        "codex_mcp_tool_call_id": request_id,
        "codex_event_id": question.turn_id or "",
        "codex_call_id": question.item_id or "",
        **id_fields,
    }
    if question.url is not None:
        return {**request, "mode": "url", "url": question.url, "elicitationId": question.question_id}
    request["requestedSchema"] = forms.form(question, takes_lists=client.takes_lists)
    if question.kind == "command":
        request |= {
            "codex_command": _command_words(question),
            "codex_cwd": question.cwd or "",
            "codex_parsed_cmd": _parsed(question),
        }
    elif question.kind == "patch":
        request |= {"codex_changes": {change.path: _change(change) for change in question.changes}}
        request |= {"codex_reason": question.reason} if question.reason else {}
    return request


_KINDS = {
    "command": "exec-approval",
    "patch": "patch-approval",
    "permissions": "permissions-approval",
    "tool": "tool-approval",
    "plan": "plan-approval",
}


def wording(question: Question) -> str:
    """The question as text, the most important first: some clients show three lines, and cut those.

    A short command stands in the old server's sentence. Of a long one the first line shows both
    ends and its length, so that nobody grants half of it unseen; the whole command follows.
    """
    reason = label(" ".join((question.reason or "").split()), REASON_CHARS)
    if question.kind == "command" and question.command:
        lines = _command_lines(question)
    elif question.kind == "patch":
        files = ", ".join(code_label(change.path) for change in question.changes[:MAX_FILES_NAMED])
        more = len(question.changes) - MAX_FILES_NAMED
        lines = [f"Allow {question.engine} to apply proposed code changes?"]
        lines += [files + (f" and {more} more" if more > 0 else "")] if files else []
        hiding = unseen("".join(change.diff for change in question.changes))
        lines += [UNSEEN.format(", ".join(hiding[:MAX_UNSEEN_NAMED]))] if hiding else []
    elif question.kind == "tool":
        lines = [f"Allow {question.engine} to use {code_label(question.tool or 'a tool')}?"]
        lines += [prefixed(plain_code(as_json(question.arguments)))] if question.arguments else []
    elif question.kind == "plan":
        lines = [f"Allow {question.engine} to carry out its plan?"]
        lines += [prefixed(plain(question.plan.strip()))] if question.plan else []
    else:
        lines = _foreign_lines(question.message)
    return "\n".join([lines[0], *([f"Its reason: {reason}"] if reason else []), *lines[1:]])


def _command_lines(question: Question) -> list[str]:
    command = _command_text(question)
    where = f" in {quoted(question.cwd)}" if question.cwd else ""
    if len(command) <= SHORT_CHARS and "\n" not in command:
        return [f"Allow {question.engine} to run {quoted(command)}{where}?"]
    ends = " ".join(command[:ENDS_CHARS].split()) + " … " + " ".join(command[-ENDS_CHARS:].split())
    head = f"Allow {question.engine} to run {len(command)} characters of {quoted(ends)}{where}?"
    return [head, "All of it:", prefixed(plain_code(command))]


def _foreign_lines(message: str) -> list[str]:
    """Text of the model or of an MCP server: the first line is the question, the others are prefixed."""
    first, newline, rest = plain(message.strip()).partition("\n")
    return [first, *([prefixed(rest)] if newline else [])]


def answer(question: Question, reply: Any) -> Answer | None:
    """The answer in the client's reply; none if the question was dismissed without one."""
    if not isinstance(reply, dict):
        return DECLINE
    if "decision" in reply:
        return _decided(question, reply["decision"])
    content = reply.get("content")
    match reply.get("action"):
        case "accept" | "decline" if words := forms.answer_with_words(question, content):
            return words
        case "accept":
            values = forms.filled(question, content) if isinstance(content, dict) else {}
            return _answer_granting(question, "once", values)
        case "cancel":
            return None
        case _:
            return DECLINE


def _decided(question: Question, decision: Any) -> Answer:
    if isinstance(decision, dict):
        granted = any("amendment" in key for key in decision)
        return _answer_granting(question, "always", {}) if granted else DECLINE
    word = str(decision).lower()
    if word == "approved":
        return _answer_granting(question, "once", {})
    if word == "approved_for_session":
        return _answer_granting(question, "session", {})
    return _answer_granting(question, "stop", {}) if word in _STOPS else DECLINE


def _answer_granting(question: Question, reach: str, values: dict[str, Any]) -> Answer:
    """The choice that grants as much as the reply said, or less; never more."""
    order = {"always": ("always", "once"), "session": ("session", "once")}.get(reach, (reach,))
    return answer_granting(question, *order, values=values)


def offers(question: Question) -> list[Choice]:
    """The choices beyond a plain yes and no."""
    return [choice for choice in question.choices if choice.grants not in ("once", "nothing")]


# ── Codex's own fields ────────────────────────────────────────────────────


def _command_words(question: Question) -> list[str]:
    """The command as an argument list, as Codex runs it where it says so."""
    command = _param(question, "command")
    if isinstance(command, list):
        return [str(word) for word in command]
    text = str(command or question.command or "")
    try:
        return shlex.split(text)
    except ValueError:
        return [text]


def _command_text(question: Question) -> str:
    """The command as one would type it, shell included."""
    command = _param(question, "command")
    if isinstance(command, list):
        return shlex.join(str(word) for word in command)
    return str(command or question.command)


def _parsed(question: Question) -> list[Any]:
    """Codex's own parse of the command, under the old server's names."""
    actions = _param(question, "commandActions")
    if not isinstance(actions, list):
        return []
    return [_action(action) for action in actions if isinstance(action, dict)]


def _action(action: dict[str, Any]) -> dict[str, Any]:
    kind = re.sub(r"(?=[A-Z])", "_", str(action.get("type"))).lower()
    rest = {("cmd" if key == "command" else key): value for key, value in action.items() if key != "type"}
    return {"type": kind, **rest}


def _param(question: Question, name: str) -> Any:
    return question.params.get(name) if isinstance(question.params, dict) else None


def _change(change: FileChange) -> dict[str, Any]:
    match change.kind:
        case "add":
            return {"type": "add", "content": change.diff}
        case "delete":
            return {"type": "delete", "content": change.diff}
        case _:
            return {"type": "update", "unified_diff": change.diff, "move_path": change.move_path}
