"""Activities as ACP tool calls: opened, changed, printed, ended; once more as history; and asked about.

Pure: one activity in, one `session/update` out. Every call that was opened ends by `ended` or by
`ended_without`; one that outlives its turn, by `ended` once more. Output is content for every client;
a terminal is named only to a client that declared that it shows terminals of ours, under the id of
the call.
"""

from __future__ import annotations

from typing import Any

from laneway.base.plain import fenced, plain_code
from laneway.core.model import Activity, Question
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.ids import tool_call_id
from laneway.doors.acp.updates import blocks, diffs
from laneway.doors.acp.updates.activity_views import ActivityView, in_full, view
from laneway.rendering.activities import outcome
from laneway.rendering.as_code import visible
from laneway.rendering.diffs import edit_kind
from laneway.rendering.outputs import MAX_OUTPUT_CHARS, shortened
from laneway.rendering.question_words import explanation, question_title, subject_of

Update = dict[str, Any]
"""The `update` of a `session/update`."""

_LATE = "\n[This arrived late; it belongs further up:]\n"
_SAME = ("sessionUpdate", "toolCallId", "_meta")
RAW_TEXT_CHARS = 64 * 1024
"""Of the content said once more, for clients that read only that: more than a person reads in a chat."""


# ── from the beginning to the end ──────────────────────────────────────────


def opened(activity: Activity, thread_id: str, client: EditorClient, *, cwd: str = "") -> Update:
    """A call begins, whatever became of it since: its end is another update."""
    call_id = tool_call_id(thread_id, activity.turn_id, activity.item_id)
    shown = view(activity, cwd, MAX_OUTPUT_CHARS)
    update = _called(call_id, shown) | {"status": "in_progress"}
    content = [*shown.content, *_terminal(activity, call_id, client)]
    if content:
        update["content"] = content
    if _has_terminal(activity, client):
        folder = activity.cwd or cwd
        update["_meta"] = {"terminal_info": {"terminal_id": call_id} | ({"cwd": folder} if folder else {})}
    return update


def changed(activity: Activity, thread_id: str, client: EditorClient, *, cwd: str = "") -> Update:
    """What a running call is about by now."""
    call_id = tool_call_id(thread_id, activity.turn_id, activity.item_id)
    shown = view(activity, cwd, MAX_OUTPUT_CHARS)
    return _updated(call_id, shown) | {"content": [*shown.content, *_terminal(activity, call_id, client)]}


def printed(activity: Activity, thread_id: str, client: EditorClient, text: str, *, cwd: str = "") -> Update:
    """What `Outputs` tells of a running command: a piece for its terminal, else the tail so far."""
    call_id = tool_call_id(thread_id, activity.turn_id, activity.item_id)
    update: Update = {"sessionUpdate": "tool_call_update", "toolCallId": call_id}
    if _has_terminal(activity, client):
        return update | {"_meta": {"terminal_output": {"terminal_id": call_id, "data": text}}}
    shown = view(activity, cwd, MAX_OUTPUT_CHARS)
    return update | {"content": [*shown.content, blocks.text(fenced(text))]}


def ended(
    activity: Activity,
    thread_id: str,
    client: EditorClient,
    *,
    cwd: str = "",
    max_chars: int = MAX_OUTPUT_CHARS,
    rest: str | None = None,
) -> Update:
    """The last word on a call: how it went, and its complete content.

    There is another one on a call that its turn left running, when it has really ended: `rest` is
    then what of the late output belongs behind all that its terminal shows.
    """
    call_id = tool_call_id(thread_id, activity.turn_id, activity.item_id)
    shown = view(activity, cwd, max_chars)
    update = _updated(call_id, shown) | {"status": _status(activity, shown)}
    if client.reads_raw_output and (words := _as_text(activity, shown)):
        update["rawOutput"] = words
    if not _has_terminal(activity, client):
        return update | {"content": _final(activity, shown, max_chars)}
    note = _note(activity, shown)
    was_run = activity.status != "declined"
    content = [*shown.content, *(_terminal(activity, call_id, client) if was_run else [])]
    update["content"] = [*content, blocks.text(note)] if note else content
    told = _late(activity, call_id, rest) | (
        _exit(activity, call_id) if activity.status != "detached" else {}
    )
    return update | {"_meta": told} if told else update


def replayed(
    activity: Activity, thread_id: str, *, cwd: str = "", max_chars: int = MAX_OUTPUT_CHARS
) -> Update:
    """A call from the records, in one piece. The records keep output, not terminals."""
    shown = view(activity, cwd, max_chars)
    update = _called(tool_call_id(thread_id, activity.turn_id, activity.item_id), shown)
    content = _final(activity, shown, max_chars)
    return (
        update
        | {"status": "in_progress" if activity.status == "running" else _status(activity, shown)}
        | ({"content": content} if content else {})
        | ({} if shown.raw_output is None else {"rawOutput": shown.raw_output})
    )


def ended_without(
    call_id: str, why: str, client: EditorClient, *, last: Activity | None = None, cwd: str = ""
) -> Update:
    """The end of a call whose end nobody will tell. `last` is what was known of it."""
    update: Update = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "failed"}
    if last is None:
        return update | {"content": [blocks.text(why)]}
    shown = view(last, cwd, MAX_OUTPUT_CHARS)
    if _has_terminal(last, client):
        update["_meta"] = _exit(last, call_id)
    return update | {"content": [*shown.content, *_terminal(last, call_id, client), blocks.text(why)]}


def fresh(update: Update, told: Update) -> Update:
    """The update without what the client knows already. `told` is what it was told, merged."""
    return {key: value for key, value in update.items() if key in _SAME or told.get(key) != value}


def _called(call_id: str, shown: ActivityView) -> Update:
    return _shared(call_id, shown) | {"sessionUpdate": "tool_call"}


def _updated(call_id: str, shown: ActivityView) -> Update:
    update = _shared(call_id, shown) | {"sessionUpdate": "tool_call_update"}
    return update if shown.raw_output is None else update | {"rawOutput": shown.raw_output}


def _shared(call_id: str, shown: ActivityView) -> Update:
    update: Update = {"sessionUpdate": "", "toolCallId": call_id, "title": shown.title, "kind": shown.kind}
    if shown.name:
        update["name"] = shown.name
    if shown.locations:
        update["locations"] = list(shown.locations)
    if shown.raw_input is not None:
        update["rawInput"] = shown.raw_input
    return update


def _status(activity: Activity, shown: ActivityView) -> str:
    if shown.has_failed or activity.status in ("failed", "declined", "interrupted"):
        return "failed"
    return "completed"


def _note(activity: Activity, shown: ActivityView) -> str | None:
    return outcome(activity, has_content=bool(shown.content))


def _final(activity: Activity, shown: ActivityView, max_chars: int) -> list[blocks.Content]:
    content = list(shown.content)
    if activity.kind == "command" and activity.output:
        content.append(blocks.text(fenced(shortened(activity.output, max_chars))))
    note = _note(activity, shown)
    return [*content, blocks.text(note)] if note else content


def _as_text(activity: Activity, shown: ActivityView) -> str:
    """The content in plain words: without fences, for such clients know no Markdown here."""
    if activity.kind == "command":
        said = [activity.output or ""]
    else:
        said = [part["content"].get("text", "") for part in shown.content if part["type"] == "content"]
    words = "\n".join([*(text.rstrip("\n") for text in said if text), _note(activity, shown) or ""])
    return shortened(words.strip("\n"), RAW_TEXT_CHARS)


# ── terminals of ours ──────────────────────────────────────────────────────


def _has_terminal(activity: Activity, client: EditorClient) -> bool:
    return activity.kind == "command" and client.takes_terminal_output


def _terminal(activity: Activity, call_id: str, client: EditorClient) -> list[blocks.Content]:
    return [{"type": "terminal", "terminalId": call_id}] if _has_terminal(activity, client) else []


def _late(activity: Activity, call_id: str, rest: str | None) -> dict[str, Any]:
    """What the live pieces left out. A terminal cannot be rewritten: what belongs further up says so."""
    late = activity.late_output
    if not late:
        return {}
    if rest is None:  # not told apart: it is all of it, or nothing
        rest = late if (activity.output or "").endswith(late) else ""
    gaps = late.removesuffix(rest)
    data = rest + _LATE + gaps if gaps else rest
    return {"terminal_output": {"terminal_id": call_id, "data": data}}


def _exit(activity: Activity, call_id: str) -> dict[str, Any]:
    code = activity.exit_code if activity.exit_code is not None and activity.exit_code >= 0 else None
    return {"terminal_exit": {"terminal_id": call_id, "exit_code": code, "signal": None}}


# ── asked about ────────────────────────────────────────────────────────────


def call_id_of(question: Question, thread_id: str) -> str:
    """The call that a question is about; an id of its own for a question about none."""
    return tool_call_id(thread_id, question.turn_id or "", question.item_id or question.question_id)


def asked(
    question: Question, thread_id: str, client: EditorClient, *, cwd: str = "", call_id: str | None = None
) -> Update:
    """The `toolCall` of a permission request: all that somebody needs to know to decide."""
    base = question.cwd or cwd
    words = explanation(question, base)
    content = [blocks.text("\n\n".join(words))] if words else []
    update: Update = {
        "toolCallId": call_id or call_id_of(question, thread_id),
        "status": "pending",
        "title": question_title(question),
    }
    match question.kind:
        case "command":
            return update | _asked_command(question, base, content)
        case "patch":
            return update | _asked_patch(question, base, content)
        case _:
            return update | _asked_else(question, content)


def resumed(
    question: Question, thread_id: str, client: EditorClient, *, call_id: str | None = None
) -> Update:
    """Somebody said yes: the call goes on, and has its terminal back where it had one."""
    call_id = call_id or call_id_of(question, thread_id)
    update: Update = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "in_progress"}
    if question.kind == "command" and question.item_id and client.takes_terminal_output:
        update["content"] = [*in_full(question.command or ""), {"type": "terminal", "terminalId": call_id}]
    return update


def _asked_command(question: Question, base: str, content: list[blocks.Content]) -> Update:
    command = question.command or ""
    return {
        "kind": "execute",
        "name": "shell",
        "content": content,
        # Some clients show this in their dialog.
        "rawInput": ({"command": plain_code(command)} if command else {})
        | ({"cwd": plain_code(base)} if base else {}),
    }


def _asked_patch(question: Question, base: str, content: list[blocks.Content]) -> Update:
    return {
        "kind": edit_kind(question.changes),
        "name": "apply_patch",
        "content": [*content, *diffs.contents(question.changes, base)],
        "locations": diffs.locations(question.changes, base),
    }


def _asked_else(question: Question, content: list[blocks.Content]) -> Update:
    """Permissions, input, and what MCP servers ask."""
    update: Update = {"kind": "other"} | ({"content": content} if content else {})
    shown = subject_of(question)
    return update | {"rawInput": visible(shown)} if shown else update
