"""Renders activities as ACP tool calls: the live updates, the history, and the calls of permission requests.

Pure: one activity in, one `session/update` out. Every call that was opened is ended by `ended` or
`ended_without`; one that outlives its turn gets a second `ended`. Output is content for every client;
only a client that declared that it shows our terminals gets a terminal, whose id is that of the call.
"""

from __future__ import annotations

from typing import Any

from laneway.base.engines import CODEX
from laneway.base.plain import code_label, fenced, plain_code
from laneway.core.model import Activity, Question
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.ids import tool_call_id
from laneway.doors.acp.updates import blocks, diffs
from laneway.doors.acp.updates.activity_views import ActivityView, full_command, view
from laneway.rendering.activities import outcome
from laneway.rendering.as_code import visible
from laneway.rendering.diffs import edit_kind
from laneway.rendering.outputs import MAX_OUTPUT_CHARS, shortened
from laneway.rendering.question_texts import explanation, question_title, subject_data

Update = dict[str, Any]
"""The `update` of a `session/update`."""

_LATE_MARK = "\n[This arrived late; it belongs further up:]\n"
_ALWAYS_SENT = ("sessionUpdate", "toolCallId", "_meta")
RAW_TEXT_CHARS = 64 * 1024
"""Of the copy of the content for clients that show only `rawOutput`: more than a person reads in a chat."""


# ── live and past calls ────────────────────────────────────────────────────


def opened(activity: Activity, thread_id: str, client: EditorClient, *, cwd: str = "") -> Update:
    """The first update of a call; its status is always `in_progress`, since the end is another update."""
    call_id = tool_call_id(thread_id, activity.turn_id, activity.item_id)
    call_view = view(activity, cwd, MAX_OUTPUT_CHARS)
    update = _tool_call(call_id, call_view) | {"status": "in_progress"}
    content = [*call_view.content, *_terminal(activity, call_id, client)]
    if content:
        update["content"] = content
    if _has_terminal(activity, client):
        folder = activity.cwd or cwd
        update["_meta"] = {"terminal_info": {"terminal_id": call_id} | ({"cwd": folder} if folder else {})}
    return update


def changed(activity: Activity, thread_id: str, client: EditorClient, *, cwd: str = "") -> Update:
    """The update for a running call that has changed."""
    call_id = tool_call_id(thread_id, activity.turn_id, activity.item_id)
    call_view = view(activity, cwd, MAX_OUTPUT_CHARS)
    return _tool_call_update(call_id, call_view) | {
        "content": [*call_view.content, *_terminal(activity, call_id, client)]
    }


def printed(activity: Activity, thread_id: str, client: EditorClient, text: str, *, cwd: str = "") -> Update:
    """The update for output of a running command: a piece for its terminal, else the tail so far."""
    call_id = tool_call_id(thread_id, activity.turn_id, activity.item_id)
    update: Update = {"sessionUpdate": "tool_call_update", "toolCallId": call_id}
    if _has_terminal(activity, client):
        return update | {"_meta": {"terminal_output": {"terminal_id": call_id, "data": text}}}
    call_view = view(activity, cwd, MAX_OUTPUT_CHARS)
    return update | {"content": [*call_view.content, blocks.text(fenced(text))]}


def ended(
    activity: Activity,
    thread_id: str,
    client: EditorClient,
    *,
    cwd: str = "",
    max_chars: int = MAX_OUTPUT_CHARS,
    rest: str | None = None,
    engine: str = CODEX,
) -> Update:
    """The last update of a call: its status and complete content.

    A call that its turn left running gets a second one when it has really ended: `rest` is then the
    part of the late output that follows what its terminal already shows. `engine` is the engine's name.
    """
    call_id = tool_call_id(thread_id, activity.turn_id, activity.item_id)
    call_view = view(activity, cwd, max_chars)
    update = _tool_call_update(call_id, call_view) | {"status": _status(activity, call_view)}
    if client.reads_raw_output and (raw_output := _as_text(activity, call_view, engine)):
        update["rawOutput"] = raw_output
    if not _has_terminal(activity, client):
        return update | {"content": _final_content(activity, call_view, max_chars, engine)}
    note = _note(activity, call_view, engine)
    was_run = activity.status != "declined"
    content = [*call_view.content, *(_terminal(activity, call_id, client) if was_run else [])]
    update["content"] = [*content, blocks.text(note)] if note else content
    meta = _late_output(activity, call_id, rest) | (
        _terminal_exit(activity, call_id) if activity.status != "detached" else {}
    )
    return update | {"_meta": meta} if meta else update


def replayed(
    activity: Activity,
    thread_id: str,
    *,
    cwd: str = "",
    max_chars: int = MAX_OUTPUT_CHARS,
    engine: str = CODEX,
) -> Update:
    """A call of the history, in one update. The history has output, but no terminals."""
    call_view = view(activity, cwd, max_chars)
    update = _tool_call(tool_call_id(thread_id, activity.turn_id, activity.item_id), call_view)
    content = _final_content(activity, call_view, max_chars, engine)
    return (
        update
        | {"status": "in_progress" if activity.status == "running" else _status(activity, call_view)}
        | ({"content": content} if content else {})
        | ({} if call_view.raw_output is None else {"rawOutput": call_view.raw_output})
    )


def ended_without(
    call_id: str, why: str, client: EditorClient, *, last: Activity | None = None, cwd: str = ""
) -> Update:
    """The end of a call whose activity will not end. `last` is its last state, if known."""
    update: Update = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "failed"}
    if last is None:
        return update | {"content": [blocks.text(why)]}
    call_view = view(last, cwd, MAX_OUTPUT_CHARS)
    if _has_terminal(last, client):
        update["_meta"] = _terminal_exit(last, call_id)
    return update | {"content": [*call_view.content, *_terminal(last, call_id, client), blocks.text(why)]}


def changed_fields(update: Update, sent: Update) -> Update:
    """The update without fields that the client has already. `sent` are all earlier ones, merged."""
    return {key: value for key, value in update.items() if key in _ALWAYS_SENT or sent.get(key) != value}


def _tool_call(call_id: str, call_view: ActivityView) -> Update:
    return _common_fields(call_id, call_view) | {"sessionUpdate": "tool_call"}


def _tool_call_update(call_id: str, call_view: ActivityView) -> Update:
    update = _common_fields(call_id, call_view) | {"sessionUpdate": "tool_call_update"}
    return update if call_view.raw_output is None else update | {"rawOutput": call_view.raw_output}


def _common_fields(call_id: str, call_view: ActivityView) -> Update:
    return {
        "sessionUpdate": "",
        "toolCallId": call_id,
        "title": call_view.title,
        "kind": call_view.kind,
        **call_view.optional_fields(),
    }


def _status(activity: Activity, call_view: ActivityView) -> str:
    if call_view.has_failed or activity.status in ("failed", "declined", "interrupted"):
        return "failed"
    return "completed"


def _note(activity: Activity, call_view: ActivityView, engine: str) -> str | None:
    return outcome(activity, has_content=bool(call_view.content), engine=engine)


def _final_content(
    activity: Activity, call_view: ActivityView, max_chars: int, engine: str
) -> list[blocks.Content]:
    content = list(call_view.content)
    if activity.kind == "command" and activity.output:
        content.append(blocks.text(fenced(shortened(activity.output, max_chars))))
    note = _note(activity, call_view, engine)
    return [*content, blocks.text(note)] if note else content


def _as_text(activity: Activity, call_view: ActivityView, engine: str) -> str:
    """The content as plain text without fences, for clients that show `rawOutput` without Markdown."""
    if activity.kind == "command":
        texts = [activity.output or ""]
    else:
        texts = [part["content"].get("text", "") for part in call_view.content if part["type"] == "content"]
    joined = "\n".join(
        [*(text.rstrip("\n") for text in texts if text), _note(activity, call_view, engine) or ""]
    )
    return shortened(joined.strip("\n"), RAW_TEXT_CHARS)


# ── terminals ──────────────────────────────────────────────────────────────


def _has_terminal(activity: Activity, client: EditorClient) -> bool:
    return activity.kind == "command" and client.takes_terminal_output


def _terminal(activity: Activity, call_id: str, client: EditorClient) -> list[blocks.Content]:
    return [{"type": "terminal", "terminalId": call_id}] if _has_terminal(activity, client) else []


def _late_output(activity: Activity, call_id: str, rest: str | None) -> dict[str, Any]:
    """Output that the live pieces left out. A terminal cannot be rewritten, so a mark says what is late."""
    late = activity.late_output
    if not late:
        return {}
    if rest is None:  # not known which part: all of it, or nothing
        rest = late if (activity.output or "").endswith(late) else ""
    gaps = late.removesuffix(rest)
    data = rest + _LATE_MARK + gaps if gaps else rest
    return {"terminal_output": {"terminal_id": call_id, "data": data}}


def _terminal_exit(activity: Activity, call_id: str) -> dict[str, Any]:
    code = activity.exit_code if activity.exit_code is not None and activity.exit_code >= 0 else None
    return {"terminal_exit": {"terminal_id": call_id, "exit_code": code, "signal": None}}


# ── permission requests ────────────────────────────────────────────────────


def call_id_of(question: Question, thread_id: str) -> str:
    """The id of the call that a question is about; a new id if it is about none."""
    return tool_call_id(thread_id, question.turn_id or "", question.item_id or question.question_id)


def permission_tool_call(
    question: Question, thread_id: str, client: EditorClient, *, cwd: str = "", call_id: str | None = None
) -> Update:
    """The `toolCall` of a permission request: everything that a user needs to decide."""
    base = question.cwd or cwd
    paragraphs = explanation(question, base)
    content = [blocks.text("\n\n".join(paragraphs))] if paragraphs else []
    update: Update = {
        "toolCallId": call_id or call_id_of(question, thread_id),
        "status": "pending",
        "title": question_title(question),
    }
    match question.kind:
        case "command":
            return update | _command_fields(question, base, content)
        case "patch":
            return update | _patch_fields(question, base, content)
        case "plan":
            return update | {"kind": "switch_mode", "content": content}
        case _:
            return update | _other_fields(question, content)


def resumed(
    question: Question, thread_id: str, client: EditorClient, *, call_id: str | None = None
) -> Update:
    """The update after a permission was granted: the call runs again, with its terminal if it had one."""
    call_id = call_id or call_id_of(question, thread_id)
    update: Update = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "in_progress"}
    if question.kind == "command" and question.item_id and client.takes_terminal_output:
        update["content"] = [
            *full_command(question.command or ""),
            {"type": "terminal", "terminalId": call_id},
        ]
    return update


def _command_fields(question: Question, base: str, content: list[blocks.Content]) -> Update:
    command = question.command or ""
    return {
        "kind": "execute",
        "name": "shell",
        "content": content,
        # Some clients show this in their dialog.
        "rawInput": ({"command": plain_code(command)} if command else {})
        | ({"cwd": plain_code(base)} if base else {}),
    }


def _patch_fields(question: Question, base: str, content: list[blocks.Content]) -> Update:
    return {
        "kind": edit_kind(question.changes),
        "name": "apply_patch",
        "content": [*content, *diffs.contents(question.changes, base)],
        "locations": diffs.locations(question.changes, base),
    }


def _other_fields(question: Question, content: list[blocks.Content]) -> Update:
    """Permissions, input, tools, and questions of MCP servers."""
    update: Update = {"kind": "other"} | ({"name": code_label(question.tool)} if question.tool else {})
    update |= {"content": content} if content else {}
    data = subject_data(question)
    return update | {"rawInput": visible(data)} if data else update
