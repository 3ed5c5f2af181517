"""A question as MCP asks it, and what a client's reply means.

Pure. The `codex_*` fields are those of the removed server, whose clients read them. A reply is a
standard `action`, or the `decision` that the old server wanted; whatever grants nothing clearly
is a no, and a question that was dismissed without a word is nobody's answer at all.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from laneway.core.model import DECLINE, Answer, Choice, FileChange, Question
from laneway.doors.mcp.eras import Client

SHORT_CHARS = 120
"""Of a command that a dialog of three lines shows whole, whatever stands around it."""
ENDS_CHARS = 40
REASON_CHARS = 200
"""The model's own words: they must not push out what is asked."""
MAX_FILES_NAMED = 5

_STOPS = frozenset({"abort", "timed_out", "cancel"})


def can_ask(question: Question, client: Client, *, presumed: bool = False) -> bool:
    """Whether this client can put it to its person; `presumed` where it does not say that it can.

    Secrets may not be asked for by a form.
    """
    if question.url is not None:
        return client.takes_urls
    return (client.takes_forms or presumed) and not any(field.is_secret for field in question.fields)


def params(question: Question, *, request_id: str, marks: dict[str, Any]) -> dict[str, Any]:
    """What `elicitation/create` is sent with. `marks` names the session."""
    if question.kind in ("command", "patch") and _param(question, "codex_elicitation") is not None:
        # Asked by a real mcp-server: its words go on as they came, under the id of the client's call.
        return {**question.params, "codex_mcp_tool_call_id": request_id, **marks}
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
    reason = " ".join((question.reason or "").split())[:REASON_CHARS]
    if question.kind == "command" and question.command:
        lines = _command_lines(question)
    elif question.kind == "patch":
        files = ", ".join(change.path for change in question.changes[:MAX_FILES_NAMED])
        more = len(question.changes) - MAX_FILES_NAMED
        lines = ["Allow Codex to apply proposed code changes?"]
        lines += [files + (f" and {more} more" if more > 0 else "")] if files else []
    else:
        lines = [question.message]
    return "\n".join([lines[0], *([f"Its reason: {reason}"] if reason else []), *lines[1:]])


def _command_lines(question: Question) -> list[str]:
    command = _line(question)
    where = f" in `{question.cwd}`" if question.cwd else ""
    if len(command) <= SHORT_CHARS and "\n" not in command:
        return [f"Allow Codex to run `{command}`{where}?"]
    ends = " ".join(command[:ENDS_CHARS].split()) + " … " + " ".join(command[-ENDS_CHARS:].split())
    return [f"Allow Codex to run {len(command)} characters of `{ends}`{where}?", "All of it:", command]


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
        return question.schema
    fields: dict[str, Any] = {}
    for field in question.fields:
        shown: dict[str, Any] = {"type": "string", "title": field.header or field.field_id}
        if field.text:
            shown["description"] = field.text
        if field.options and not field.allows_other:
            shown["enum"] = list(field.options)
        elif field.options:
            shown["description"] = f"{field.text} ({', '.join(field.options)}, or something else)".strip()
        fields[field.field_id] = shown
    schema: dict[str, Any] = {"type": "object", "properties": fields}
    return {**schema, "required": list(fields)} if fields else schema


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
