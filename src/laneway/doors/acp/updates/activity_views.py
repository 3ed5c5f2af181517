"""The fields of an ACP tool call for each kind of activity: title, kind, input, content, locations, output.

Pure: a table from the kind of activity to a function that makes its `ActivityView`. The output of
commands is added by `tool_calls`, because it may go to a terminal instead. Fields that an activity
does not have are read from Codex's item; a malformed field counts as missing. Titles come from
`laneway.rendering`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.plain import fenced, plain_code
from laneway.core.model import Activity, ActivityKind, Location, Look
from laneway.doors.acp.updates import blocks, diffs
from laneway.rendering.activities import (
    activity_title,
    as_text,
    command_action,
    is_generated_image,
    is_verdict,
    item_of,
    tool_name,
    web_action,
)
from laneway.rendering.as_code import as_json
from laneway.rendering.diffs import absolute, edit_kind
from laneway.rendering.outputs import shortened
from laneway.rendering.titles import code_title

MAX_RAW_CHARS = 64 * 1024
"""Of the JSON of an unknown item. It is for debugging; a longer one is left out."""
MAX_RESULTS = 50
"""Results of a web search that are listed."""

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"
]
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class ActivityView(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool call shows of an activity, in all versions of the protocol."""

    kind: ToolKind
    title: str
    name: str | None = None
    """Codex's name of the tool."""
    raw_input: Any = None
    content: Sequence[blocks.Content] = ()
    locations: Sequence[dict[str, Any]] = ()
    raw_output: Any = None
    """Only what is not in the content: some clients show this instead of the content."""
    has_failed: bool = False
    """Whether the result is an error, whatever the status."""

    def optional_fields(self) -> dict[str, Any]:
        """The fields of a tool call that only some activities have, except for the result."""
        fields: dict[str, Any] = {}
        if self.name:
            fields["name"] = self.name
        if self.locations:
            fields["locations"] = list(self.locations)
        if self.raw_input is not None:
            fields["rawInput"] = self.raw_input
        return fields


def view(activity: Activity, cwd: str, max_chars: int) -> ActivityView:
    """Render an activity. `cwd` is the session's folder; `max_chars` limits the text of the content."""
    return _VIEWS[activity.kind](activity, cwd, max_chars)


def full_command(command: str) -> list[blocks.Content]:
    """The whole command as content; empty if the title already shows all of it."""
    is_whole = not command or code_title(command) == command
    return [] if is_whole else [blocks.text(fenced(plain_code(command), "sh"))]


# ── commands ───────────────────────────────────────────────────────────────


def _command(activity: Activity, cwd: str, max_chars: int) -> ActivityView:
    base = activity.cwd or cwd
    action = command_action(activity, base)
    return ActivityView(
        kind=action.kind,
        title=activity_title(activity, cwd),
        name="shell",
        raw_input={"command": activity.title} | ({"cwd": base} if base else {}),
        content=[] if action.title else full_command(activity.title),
        locations=_locations(action.reads, base),
        has_failed=activity.exit_code not in (None, 0),
    )


def _locations(locations: Sequence[Location], base: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for location in locations:
        path = absolute(location.path, base)
        row = {"path": path} if location.line is None else {"path": path, "line": location.line}
        if path is not None and row not in rows:
            rows.append(row)
    return rows[: diffs.MAX_LOCATIONS]


def _read(activity: Activity, cwd: str, max_chars: int) -> ActivityView:
    look = activity.look or Look(purpose="read")
    places = activity.locations or ((Location(path=look.path),) if look.path else ())
    content = blocks.tool_results(activity.content, max_chars)
    if not content and activity.output:
        content = [blocks.text(fenced(shortened(activity.output, max_chars)))]
    return ActivityView(
        kind="read" if look.purpose == "read" else "search",
        title=activity_title(activity, cwd),
        name=activity.tool,
        raw_input=activity.input,
        content=content,
        locations=_locations(places, activity.cwd or cwd),
    )


# ── edits, tools ───────────────────────────────────────────────────────────


def _edit(activity: Activity, cwd: str, max_chars: int) -> ActivityView:
    return ActivityView(
        kind=edit_kind(activity.changes),
        title=activity_title(activity, cwd),
        name="apply_patch",
        content=diffs.contents(activity.changes, cwd, max_chars),
        locations=diffs.locations(activity.changes, cwd),
    )


def _mcp(activity: Activity, cwd: str, max_chars: int) -> ActivityView:
    item = item_of(activity)
    result = item.get("result")
    result = result if isinstance(result, dict) else {}
    content = blocks.tool_results(activity.content, max_chars)
    if activity.output:
        content.append(blocks.text(shortened(activity.output, max_chars)))
    structured = result.get("structuredContent")
    if structured is not None and not content:
        content.append(blocks.text(fenced(shortened(as_json(structured), max_chars), "json")))
        structured = None
    return ActivityView(
        kind="other",
        title=activity_title(activity, cwd),
        name=activity.title,
        raw_input={
            "server": as_text(item.get("server")),
            "tool": as_text(item.get("tool")),
            "arguments": activity.input,
        },
        content=content,
        raw_output=None if structured is None else _small({"structuredContent": structured}),
        has_failed=result.get("isError") is True or bool(item.get("error")),
    )


def _tool(activity: Activity, cwd: str, max_chars: int) -> ActivityView:
    content = blocks.tool_results(activity.content, max_chars)
    if not content and activity.output:
        content = [blocks.text(shortened(activity.output, max_chars))]
    return ActivityView(
        kind="other",
        title=activity_title(activity, cwd),
        name=tool_name(activity),
        raw_input=activity.input,
        content=content,
    )


# ── the web, images ────────────────────────────────────────────────────────


def _search(activity: Activity, cwd: str, max_chars: int) -> ActivityView:
    results = activity.content if isinstance(activity.content, list) else []
    return ActivityView(
        kind=web_action(activity).kind,
        title=activity_title(activity, cwd),
        name="web_search",
        raw_input=activity.input,
        content=[_search_result(result) for result in results[:MAX_RESULTS]],
    )


def _search_result(result: Any) -> blocks.Content:
    url = result.get("url") if isinstance(result, dict) else None
    if isinstance(url, str):
        link = {"type": "resource_link", "name": as_text(result.get("title")) or url, "uri": url}
        return blocks.tool_results([link], MAX_RAW_CHARS)[0]
    return blocks.tool_results([result], MAX_RAW_CHARS)[0]


def _image(activity: Activity, cwd: str, max_chars: int) -> ActivityView:
    locations = _locations(activity.locations, cwd)
    if is_generated_image(activity):
        return _generated(activity, cwd, locations)
    path = locations[0]["path"] if locations else None
    return ActivityView(
        kind="read",
        title=activity_title(activity, cwd),
        name="view_image",
        content=[blocks.file_link(path)] if path else [],
        locations=locations,
    )


def _generated(activity: Activity, cwd: str, locations: list[dict[str, Any]]) -> ActivityView:
    item = item_of(activity)
    prompt, saved = as_text(item.get("revisedPrompt")), as_text(item.get("savedPath"))
    content = []
    if isinstance(activity.content, str) and activity.content:
        block = {"type": "image", "data": activity.content, "mimeType": blocks.image_type(activity.content)}
        content = blocks.tool_results([block], MAX_RAW_CHARS)
    failure = item.get("failure")
    if isinstance(failure, dict):
        reason = as_text(failure.get("type")) or "no reason given"
        content.append(blocks.text(f"No image was made: {reason}."))
    return ActivityView(
        kind="other",
        title=activity_title(activity, cwd),
        name="image_generation",
        raw_input={"prompt": prompt} if prompt else None,
        content=content,
        locations=locations,
        raw_output={"savedPath": saved} if saved else None,
        has_failed=isinstance(failure, dict),
    )


# ── the rest ───────────────────────────────────────────────────────────────


def _agent(activity: Activity, cwd: str, max_chars: int) -> ActivityView:
    item = item_of(activity)
    states = item.get("agentsStates")
    prompt = as_text(item.get("prompt"))
    answers = (
        [state.get("message") for state in states.values() if isinstance(state, dict)]
        if isinstance(states, dict)
        else []
    )
    texts = [text for text in (prompt, *answers) if isinstance(text, str) and text]
    tool = as_text(item.get("tool"))
    arguments = {
        key: item[key]
        for key in ("prompt", "model", "receiverThreadIds", "agentPath", "agentThreadId")
        if item.get(key)
    }
    return ActivityView(
        kind="other",
        title=activity_title(activity, cwd),
        name=_CAPITAL.sub("_", tool).lower() if tool else None,
        raw_input=_small(arguments) if arguments else None,
        content=[blocks.text(shortened(text, max_chars)) for text in texts],
    )


def _review(activity: Activity, cwd: str, max_chars: int) -> ActivityView:
    review = as_text(item_of(activity).get("review")) if is_verdict(activity) else ""
    content = [blocks.text(shortened(review, max_chars))] if review else []
    return ActivityView(kind="think", title=activity_title(activity, cwd), name="review", content=content)


def _title_only(kind: ToolKind, name: str | None) -> Callable[[Activity, str, int], ActivityView]:
    return lambda activity, cwd, max_chars: ActivityView(
        kind=kind, title=activity_title(activity, cwd), name=name
    )


def _other(activity: Activity, cwd: str, max_chars: int) -> ActivityView:
    item = item_of(activity)
    output = item.get("output")
    if isinstance(output, str):
        output = [{"type": "text", "text": fenced(shortened(output, max_chars))}] if output else None
    is_over = activity.status != "running"
    name = as_text(item.get("name"))
    return ActivityView(
        kind="other",
        title=activity_title(activity, cwd),
        name=name or None,
        content=blocks.tool_results(output, max_chars),
        raw_output=_small(item) if item and is_over and output is None else None,
    )


def _small(record: dict[str, Any]) -> dict[str, Any] | None:
    return record if len(as_json(record)) <= MAX_RAW_CHARS else None


_VIEWS: dict[ActivityKind, Callable[[Activity, str, int], ActivityView]] = {
    "command": _command,
    "edit": _edit,
    "read": _read,
    "mcp": _mcp,
    "tool": _tool,
    "search": _search,
    "image": _image,
    "agent": _agent,
    "review": _review,
    "compaction": _title_only("think", None),
    "sleep": _title_only("other", "sleep"),
    "other": _other,
}
