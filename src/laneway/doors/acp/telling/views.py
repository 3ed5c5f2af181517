"""What a person should see of one activity: its title, its kind, what went in, what came out.

Pure: a table from kinds of activity to a `View`, as complete as the activity is at the moment.
The output of commands is left to `tool_calls.py`, for it may go to a terminal instead. Reads
Codex's own item where the activity leaves something out; what is odd there counts as missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.plain import ELLIPSIS, code_label, fenced, label, plain_code
from laneway.core.model import Activity, ActivityKind, Location
from laneway.doors.acp.telling import blocks, diffs
from laneway.doors.acp.telling.outputs import shortened

MAX_TITLE_CHARS = 200
"""On one line: clients show titles as labels."""
MAX_RAW_CHARS = 64 * 1024
"""Of a record that we do not understand. It is for debugging; longer ones are left out."""
MAX_RESULTS = 50
"""Hits of a web search that are listed."""

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"
]
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class View(msgspec.Struct, frozen=True, kw_only=True):
    kind: ToolKind
    title: str
    name: str | None = None
    """Codex's own word for the tool."""
    raw_input: Any = None
    content: Sequence[blocks.Content] = ()
    locations: Sequence[dict[str, Any]] = ()
    raw_output: Any = None
    """Only what the content does not say: some clients show this instead of it."""
    has_failed: bool = False
    """Whether the result says so, whatever the status."""


def view(activity: Activity, cwd: str, max_chars: int) -> View:
    """`cwd` is the session's folder, `max_chars` bounds the text of the content."""
    return _VIEWS[activity.kind](activity, cwd, max_chars)


def title(words: str) -> str:
    """One line of prose that hides nothing, cut where it says so."""
    first, is_all = _first_line(words)
    shown = label(first, MAX_TITLE_CHARS)
    return shown if is_all else f"{shown} {ELLIPSIS}"


def code_title(words: str) -> str:
    """The same of a command, a path or the name of a tool."""
    first, is_all = _first_line(words)
    shown = code_label(first, MAX_TITLE_CHARS)
    return shown if is_all else f"{shown} {ELLIPSIS}"


def _first_line(words: str) -> tuple[str, bool]:
    """And whether it is all that can be shown on one line."""
    first, _, rest = words.strip().partition("\n")
    return first.strip(), not rest


def in_full(command: str) -> list[blocks.Content]:
    """A command whose title does not show all of it."""
    is_whole = not command or code_title(command) == command
    return [] if is_whole else [blocks.text(fenced(plain_code(command), "sh"))]


def _item(activity: Activity) -> dict[str, Any]:
    return activity.item if isinstance(activity.item, dict) else {}


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


# ── commands ───────────────────────────────────────────────────────────────


def _command(activity: Activity, cwd: str, max_chars: int) -> View:
    base = activity.cwd or cwd
    kind, words, locations = _action(activity, base)
    shown = code_title(words or activity.title or "Run a command")
    return View(
        kind=kind,
        title=shown,
        name="shell",
        raw_input={"command": activity.title} | ({"cwd": base} if base else {}),
        content=[] if words else in_full(activity.title),
        locations=locations,
        has_failed=activity.exit_code not in (None, 0),
    )


def _action(activity: Activity, base: str) -> tuple[ToolKind, str, list[dict[str, Any]]]:
    """What Codex takes a command for, where it is one thing only; with no words it is a command."""
    found = _item(activity).get("commandActions")
    actions = [action for action in found if isinstance(action, dict)] if isinstance(found, list) else []
    read = [Location(path=_word(action.get("path"))) for action in actions if action.get("type") == "read"]
    locations = _locations(read, base)
    if len(actions) != 1:
        return "execute", "", locations
    path = _below(_word(actions[0].get("path")), base)
    match actions[0].get("type"):
        case "read":
            return "read", f"Read {path or _word(actions[0].get('name'))}", locations
        case "search":
            query = _word(actions[0].get("query"))
            what = f"Search for “{query}”" if query else "Search"
            return "search", f"{what} in {path}" if path else what, []
        case "listFiles":
            return "read", f"List {path}" if path else "List files", []
    return "execute", "", locations


def _below(path: str, base: str) -> str:
    """A path as a person would say it: from the folder down, if it is in there."""
    if path and base and os.path.isabs(path) and os.path.isabs(base):
        shown = os.path.relpath(path, base)
        return path if shown.startswith("..") else shown
    return path


def _locations(found: Sequence[Location], base: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for location in found:
        path = diffs.absolute(location.path, base)
        shown = {"path": path} if location.line is None else {"path": path, "line": location.line}
        if path is not None and shown not in made:
            made.append(shown)
    return made[: diffs.MAX_LOCATIONS]


# ── edits, tools of others ─────────────────────────────────────────────────


def _edit(activity: Activity, cwd: str, max_chars: int) -> View:
    return View(
        kind=diffs.edit_kind(activity.changes),
        title=code_title(diffs.edit_title(activity.changes)),
        name="apply_patch",
        content=diffs.contents(activity.changes, cwd, max_chars),
        locations=diffs.locations(activity.changes, cwd),
    )


def _mcp(activity: Activity, cwd: str, max_chars: int) -> View:
    item = _item(activity)
    result = item.get("result")
    result = result if isinstance(result, dict) else {}
    content = blocks.tool_results(activity.content, max_chars)
    if activity.output:
        content.append(blocks.text(shortened(activity.output, max_chars)))
    structured = result.get("structuredContent")
    if structured is not None and not content:
        content.append(blocks.text(fenced(shortened(blocks.as_json(structured), max_chars), "json")))
        structured = None
    return View(
        kind="other",
        title=code_title(activity.title),
        name=activity.title,
        raw_input={
            "server": _word(item.get("server")),
            "tool": _word(item.get("tool")),
            "arguments": activity.input,
        },
        content=content,
        raw_output=None if structured is None else _small({"structuredContent": structured}),
        has_failed=result.get("isError") is True or bool(item.get("error")),
    )


def _tool(activity: Activity, cwd: str, max_chars: int) -> View:
    content = blocks.tool_results(activity.content, max_chars)
    if not content and activity.output:
        content = [blocks.text(shortened(activity.output, max_chars))]
    namespace = _word(_item(activity).get("namespace"))
    name = f"{namespace}.{activity.title}" if namespace else activity.title
    return View(kind="other", title=code_title(name), name=name, raw_input=activity.input, content=content)


# ── the web, images ────────────────────────────────────────────────────────


def _search(activity: Activity, cwd: str, max_chars: int) -> View:
    action = activity.input if isinstance(activity.input, dict) else {}
    url = _word(action.get("url"))
    kind: ToolKind = "search"
    match action.get("type"):
        case "openPage":
            kind, words = "fetch", f"Open {url or activity.title}"
        case "findInPage":
            kind, words = "fetch", f"Find “{_word(action.get('pattern'))}” in {url or activity.title}"
        case _:
            query = _word(action.get("query")) or activity.title
            words = f"Search the web for “{query}”" if query else "Search the web"
    results = activity.content if isinstance(activity.content, list) else []
    return View(
        kind=kind,
        title=title(words),
        name="web_search",
        raw_input=activity.input,
        content=[_hit(result) for result in results[:MAX_RESULTS]],
    )


def _hit(result: Any) -> blocks.Content:
    url = result.get("url") if isinstance(result, dict) else None
    if isinstance(url, str):
        link = {"type": "resource_link", "name": _word(result.get("title")) or url, "uri": url}
        return blocks.tool_results([link], MAX_RAW_CHARS)[0]
    return blocks.tool_results([result], MAX_RAW_CHARS)[0]


def _image(activity: Activity, cwd: str, max_chars: int) -> View:
    locations = _locations(activity.locations, cwd)
    if _item(activity).get("type") == "imageGeneration":
        return _generated(activity, locations)
    path = locations[0]["path"] if locations else None
    return View(
        kind="read",
        title=code_title(f"View {_below(activity.title, cwd)}"),
        name="view_image",
        content=[blocks.file_link(path)] if path else [],
        locations=locations,
    )


def _generated(activity: Activity, locations: list[dict[str, Any]]) -> View:
    item = _item(activity)
    prompt, saved = _word(item.get("revisedPrompt")), _word(item.get("savedPath"))
    content = []
    if isinstance(activity.content, str) and activity.content:
        block = {"type": "image", "data": activity.content, "mimeType": blocks.image_type(activity.content)}
        content = blocks.tool_results([block], MAX_RAW_CHARS)
    failure = item.get("failure")
    if isinstance(failure, dict):
        content.append(blocks.text(f"No image was made: {_word(failure.get('type')) or 'no reason given'}."))
    return View(
        kind="other",
        title=title(f"Make an image: {prompt}" if prompt else "Make an image"),
        name="image_generation",
        raw_input={"prompt": prompt} if prompt else None,
        content=content,
        locations=locations,
        raw_output={"savedPath": saved} if saved else None,
        has_failed=isinstance(failure, dict),
    )


# ── the rest ───────────────────────────────────────────────────────────────

_AGENT_TITLES = {
    "spawnAgent": "Start a subagent",
    "sendInput": "Write to a subagent",
    "sendMessage": "Write to a subagent",
    "followupTask": "Give a subagent more to do",
    "resumeAgent": "Wake a subagent",
    "interruptAgent": "Interrupt a subagent",
    "wait": "Wait for subagents",
    "closeAgent": "Close a subagent",
    "listAgents": "List the subagents",
    "started": "A subagent started",
    "interacted": "A subagent was written to",
    "interrupted": "A subagent was interrupted",
    "completed": "A subagent is done",
}


def _agent(activity: Activity, cwd: str, max_chars: int) -> View:
    item = _item(activity)
    states = item.get("agentsStates")
    prompt = _word(item.get("prompt"))
    answers = (
        [state.get("message") for state in states.values() if isinstance(state, dict)]
        if isinstance(states, dict)
        else []
    )
    said = [words for words in (prompt, *answers) if isinstance(words, str) and words]
    tool = _word(item.get("tool"))
    asked = {
        key: item[key]
        for key in ("prompt", "model", "receiverThreadIds", "agentPath", "agentThreadId")
        if item.get(key)
    }
    return View(
        kind="other",
        title=title(_AGENT_TITLES.get(activity.title, activity.title)),
        name=_CAPITAL.sub("_", tool).lower() if tool else None,
        raw_input=_small(asked) if asked else None,
        content=[blocks.text(shortened(words, max_chars)) for words in said],
    )


def _review(activity: Activity, cwd: str, max_chars: int) -> View:
    words = _word(_item(activity).get("review"))
    if _item(activity).get("type") == "exitedReviewMode":
        content = [blocks.text(shortened(words, max_chars))] if words else []
        return View(kind="think", title="The review is done", name="review", content=content)
    return View(kind="think", title=title(f"Review {words}" if words else "Review"), name="review")


def _plainly(kind: ToolKind, name: str | None) -> Callable[[Activity, str, int], View]:
    return lambda activity, cwd, max_chars: View(kind=kind, title=title(activity.title), name=name)


def _other(activity: Activity, cwd: str, max_chars: int) -> View:
    item = _item(activity)
    output = item.get("output")
    if isinstance(output, str):
        output = [{"type": "text", "text": fenced(shortened(output, max_chars))}] if output else None
    is_over = activity.status != "running"
    name = _word(item.get("name"))
    return View(
        kind="other",
        title=title(name or activity.title or "Something that Laneway does not know"),
        name=name or None,
        content=blocks.tool_results(output, max_chars),
        raw_output=_small(item) if item and is_over and output is None else None,
    )


def _small(record: dict[str, Any]) -> dict[str, Any] | None:
    return record if len(blocks.as_json(record)) <= MAX_RAW_CHARS else None


_VIEWS: dict[ActivityKind, Callable[[Activity, str, int], View]] = {
    "command": _command,
    "edit": _edit,
    "mcp": _mcp,
    "tool": _tool,
    "search": _search,
    "image": _image,
    "agent": _agent,
    "review": _review,
    "compaction": _plainly("think", None),
    "sleep": _plainly("other", "sleep"),
    "other": _other,
}
