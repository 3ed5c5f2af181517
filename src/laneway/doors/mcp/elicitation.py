"""A question as MCP asks it, and what a client's reply means.

Pure. The `codex_*` fields are those of the removed server, whose clients read them. A reply is a
standard `action`, or the `decision` that the old server wanted; whatever grants nothing clearly
is a no, and a question that was dismissed without a word is nobody's answer at all.

What a person reads (`message`, the words of the form) is made visible (`laneway.base.plain`); what
programs read (the `codex_*` fields, the values of a form) is as Codex has it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
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
from laneway.core.model import DECLINE, Answer, Choice, FileChange, Question
from laneway.doors.mcp.eras import Client

SHORT_CHARS = 120
"""Of a command that a dialog of three lines shows whole, whatever stands around it."""
ENDS_CHARS = 40
REASON_CHARS = 200
"""The model's own words: they must not push out what is asked."""
MAX_FILES_NAMED = 5

MAX_SCHEMA_DEPTH = 32
"""Of a form's schema: real ones have four levels, and what is deeper cannot be filled in."""
_VALUES = frozenset({"enum", "const", "default", "pattern", "required", "format", "type"})
"""What of a schema programs compare; all other texts in it are for people."""

_STOPS = frozenset({"abort", "timed_out", "cancel"})


def can_ask(question: Question, client: Client, *, presumed: bool = False) -> bool:
    """Whether this client can put it to its person; `presumed` where it does not say that it can.

    Secrets may not be asked for by a form, and no page is opened whose address cannot be seen as it is.
    """
    if question.url is not None:
        return client.takes_urls and is_plain_code(question.url)
    return (client.takes_forms or presumed) and not any(field.is_secret for field in question.fields)


def params(question: Question, *, request_id: str, marks: dict[str, Any]) -> dict[str, Any]:
    """What `elicitation/create` is sent with. `marks` names the session."""
    if question.kind in ("command", "patch") and _param(question, "codex_elicitation") is not None:
        # Asked by a real mcp-server: its fields go on as they came, under the id of the client's call.
        words = "\n".join(_foreign_lines(str(question.params.get("message") or question.message)))
        return {**question.params, "message": words, "codex_mcp_tool_call_id": request_id, **marks}
    asked: dict[str, Any] = {
        "message": wording(question),
        "threadId": question.thread_id,
        "codex_elicitation": _KINDS.get(question.kind, question.kind),
        "codex_mcp_tool_call_id": request_id,
        "codex_event_id": question.turn_id or "",
        "codex_call_id": question.item_id or "",
        **marks,
    }
    if question.url is not None:
        return {**asked, "mode": "url", "url": question.url, "elicitationId": question.question_id}
    asked["requestedSchema"] = form(question)
    if question.kind == "command":
        asked |= {
            "codex_command": _words(question),
            "codex_cwd": question.cwd or "",
            "codex_parsed_cmd": _parsed(question),
        }
    elif question.kind == "patch":
        asked |= {"codex_changes": {change.path: _change(change) for change in question.changes}}
        asked |= {"codex_reason": question.reason} if question.reason else {}
    return asked


_KINDS = {"command": "exec-approval", "patch": "patch-approval", "permissions": "permissions-approval"}


def wording(question: Question) -> str:
    """The question, what matters first: some clients show three lines, and cut those.

    A short command stands in the old server's sentence. Of a long one the first lines show both
    ends and say how long it is, so that nobody grants the half of it; all of it follows.
    """
    reason = label(" ".join((question.reason or "").split()), REASON_CHARS)
    if question.kind == "command" and question.command:
        lines = _command_lines(question)
    elif question.kind == "patch":
        files = ", ".join(code_label(change.path) for change in question.changes[:MAX_FILES_NAMED])
        more = len(question.changes) - MAX_FILES_NAMED
        lines = ["Allow Codex to apply proposed code changes?"]
        lines += [files + (f" and {more} more" if more > 0 else "")] if files else []
        hiding = unseen("".join(change.diff for change in question.changes))
        lines += [UNSEEN.format(", ".join(hiding[:MAX_UNSEEN_NAMED]))] if hiding else []
    else:
        lines = _foreign_lines(question.message)
    return "\n".join([lines[0], *([f"Its reason: {reason}"] if reason else []), *lines[1:]])


def _command_lines(question: Question) -> list[str]:
    command = _line(question)
    where = f" in {quoted(question.cwd)}" if question.cwd else ""
    if len(command) <= SHORT_CHARS and "\n" not in command:
        return [f"Allow Codex to run {quoted(command)}{where}?"]
    ends = " ".join(command[:ENDS_CHARS].split()) + " … " + " ".join(command[-ENDS_CHARS:].split())
    head = f"Allow Codex to run {len(command)} characters of {quoted(ends)}{where}?"
    return [head, "All of it:", prefixed(plain_code(command))]


def _foreign_lines(message: str) -> list[str]:
    """Words of the model or of an MCP server: the first line is the question, the others are marked."""
    first, newline, rest = plain(message.strip()).partition("\n")
    return [first, *([prefixed(rest)] if newline else [])]


def answer(question: Question, reply: Any) -> Answer | None:
    """What the client's reply says; none if the question was dismissed and nobody decided."""
    if not isinstance(reply, dict):
        return DECLINE
    if "decision" in reply:
        return _decided(question, reply["decision"])
    match reply.get("action"):
        case "accept":
            content = reply.get("content")
            return _granting(question, "once", content if isinstance(content, dict) else {})
        case "cancel":
            return None
        case _:
            return DECLINE


def _decided(question: Question, decision: Any) -> Answer:
    if isinstance(decision, dict):
        granted = any("amendment" in key for key in decision)
        return _granting(question, "always", {}) if granted else DECLINE
    word = str(decision).lower()
    if word == "approved":
        return _granting(question, "once", {})
    if word == "approved_for_session":
        return _granting(question, "session", {})
    return _granting(question, "stop", {}) if word in _STOPS else DECLINE


def _granting(question: Question, reach: str, values: dict[str, Any]) -> Answer:
    """The choice that reaches as far as was said, or less; never further."""
    order = {"always": ("always", "once"), "session": ("session", "once")}.get(reach, (reach,))
    for wanted in order:
        for choice in question.choices:
            if choice.grants == wanted:
                return Answer(choice_id=choice.choice_id, values=values)
    return DECLINE


def offers(question: Question) -> list[Choice]:
    """The answers that say more than yes and no."""
    return [choice for choice in question.choices if choice.grants not in ("once", "nothing")]


# ── forms ──────────────────────────────────────────────────────────────────


def form(question: Question) -> dict[str, Any]:
    """The schema of what is asked for; without properties it is a plain yes or no."""
    if question.kind == "elicitation" and isinstance(question.schema, dict):
        visible = _visible(question.schema)
        return visible if isinstance(visible, dict) else {}
    fields: dict[str, Any] = {}
    for field in question.fields:
        shown: dict[str, Any] = {"type": "string", "title": label(field.header or field.field_id)}
        options = [label(option) for option in field.options]
        if field.text:
            shown["description"] = plain(field.text)
        if field.options and not field.allows_other:
            shown |= _choices(field.options)
        elif field.options:
            shown["description"] = plain(f"{field.text} ({', '.join(options)}, or something else)".strip())
        fields[field.field_id] = shown
    schema: dict[str, Any] = {"type": "object", "properties": fields}
    return {**schema, "required": list(fields)} if fields else schema


def _choices(values: Sequence[str]) -> dict[str, Any]:
    """What can be chosen, with names beside the values where those cannot be seen as they are."""
    names = [label(value) for value in values]
    named = {} if names == list(values) else {"enumNames": names}
    return {"enum": list(values), **named}


def _visible(part: Any, depth: int = 0) -> Any:
    """A schema that others wrote, its words made visible; its values go back to them as they came."""
    if isinstance(part, str):
        return plain(part)
    if isinstance(part, list):
        return [_visible(each, depth + 1) for each in part] if depth < MAX_SCHEMA_DEPTH else []
    if not isinstance(part, dict):
        return part
    if depth >= MAX_SCHEMA_DEPTH:
        return {}
    made = {key: value if key in _VALUES else _visible(value, depth + 1) for key, value in part.items()}
    listed = part.get("enum")
    if isinstance(listed, list) and all(isinstance(value, str) for value in listed):
        made |= {} if isinstance(part.get("enumNames"), list) else _choices(listed)
    const = part.get("const")
    if isinstance(const, str) and "title" not in part and label(const) != const:
        made["title"] = label(const)
    return made


def _words(question: Question) -> list[str]:
    """The command as the list that it is run as, where Codex says so."""
    given = _param(question, "command")
    if isinstance(given, list):
        return [str(word) for word in given]
    text = str(given or question.command or "")
    try:
        return shlex.split(text)
    except ValueError:
        return [text]


def _line(question: Question) -> str:
    """The command as one would type it, shell and all."""
    given = _param(question, "command")
    if isinstance(given, list):
        return shlex.join(str(word) for word in given)
    return str(given or question.command)


def _parsed(question: Question) -> list[Any]:
    """What Codex makes of the command, by the old names."""
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
