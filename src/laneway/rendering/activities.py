"""Titles and outcomes of activities: edits, commands by their purpose, searches, tools, subagents.

Pure. Reads Codex's own item, if it is one, where the activity leaves something out; a malformed value
counts as missing.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.engines import CODEX
from laneway.core.model import Activity, Location
from laneway.rendering.diffs import edit_title
from laneway.rendering.titles import CUT, code_title, look_title, relative_to, title

ActionKind: TypeAlias = Literal["read", "search", "fetch", "execute"]

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

_OUTCOMES = {
    "declined": "Declined.",
    "interrupted": "Interrupted.",
    "detached": "Still running in the background.",
}


class Action(msgspec.Struct, frozen=True):
    """The purpose of a command or a web search."""

    kind: ActionKind
    title: str = ""
    """Empty where the command line itself is the best title."""
    reads: tuple[Location, ...] = ()


def activity_title(activity: Activity, cwd: str) -> str:
    """The title of an activity on one line; `cwd` is the session's folder."""
    match activity.kind:
        case "command":
            action = command_action(activity, activity.cwd or cwd)
            return code_title(action.title or activity.title or "Run a command")
        case "edit":
            return code_title(edit_title(activity.changes))
        case "read":
            return look_title(activity.look, cwd) if activity.look else code_title(activity.title or "Read")
        case "mcp":
            return code_title(activity.title)
        case "tool":
            return code_title(tool_name(activity))
        case "search":
            return title(web_action(activity).title)
        case "image":
            return _image_title(activity, cwd)
        case "agent":
            return title(_AGENT_TITLES.get(activity.title, activity.title))
        case "review":
            return _review_title(activity)
        case "other":
            name = as_text(item_of(activity).get("name"))
            return title(name or activity.title or "Something that Laneway does not know")
        case _:
            return title(activity.title)


def outcome(activity: Activity, *, has_content: bool, engine: str = CODEX) -> str | None:
    """How the activity ended, where its output or content does not already show it."""
    how = _how_ended(activity, has_content=has_content, engine=engine)
    return " ".join(filter(None, (how, CUT if activity.is_cut else None))) or None


def end_note(activity: Activity) -> str:
    """For the row below its output: `exit code 2`, `declined`; empty where it has just ended well."""
    if activity.exit_code:
        return f"exit code {activity.exit_code}"
    if activity.status == "completed":
        return ""
    return "still running in the background" if activity.status == "detached" else activity.status


def _how_ended(activity: Activity, *, has_content: bool, engine: str) -> str | None:
    if activity.status in _OUTCOMES:
        return _OUTCOMES[activity.status]
    if activity.exit_code:
        return f"Exit code {activity.exit_code}."
    if activity.status != "failed":
        return None
    if activity.kind == "edit":
        return "These changes were not made."
    return None if has_content or activity.output else f"Failed, and {engine} did not say why."


def command_action(activity: Activity, base: str) -> Action:
    """The purpose of a command as Codex parsed it, if it has only one; else an action without a title."""
    listed = item_of(activity).get("commandActions")
    actions = [action for action in listed if isinstance(action, dict)] if isinstance(listed, list) else []
    reads = tuple(
        Location(path=as_text(action.get("path"))) for action in actions if action.get("type") == "read"
    )
    if len(actions) != 1:
        return Action("execute", reads=reads)
    path = relative_to(as_text(actions[0].get("path")), base)
    match actions[0].get("type"):
        case "read":
            return Action("read", f"Read {path or as_text(actions[0].get('name'))}", reads)
        case "search":
            query = as_text(actions[0].get("query"))
            search = f"Search for “{query}”" if query else "Search"
            return Action("search", f"{search} in {path}" if path else search)
        case "listFiles":
            return Action("read", f"List {path}" if path else "List files")
    return Action("execute", reads=reads)


def web_action(activity: Activity) -> Action:
    arguments = activity.input if isinstance(activity.input, dict) else {}
    url = as_text(arguments.get("url"))
    match arguments.get("type"):
        case "openPage":
            return Action("fetch", f"Open {url or activity.title}")
        case "findInPage":
            return Action("fetch", f"Find “{as_text(arguments.get('pattern'))}” in {url or activity.title}")
    query = as_text(arguments.get("query")) or activity.title
    return Action("search", f"Search the web for “{query}”" if query else "Search the web")


def tool_name(activity: Activity) -> str:
    """The name of a tool that a client provides, with its namespace."""
    namespace = as_text(item_of(activity).get("namespace"))
    return f"{namespace}.{activity.title}" if namespace else activity.title


def is_generated_image(activity: Activity) -> bool:
    return item_of(activity).get("type") == "imageGeneration"


def is_verdict(activity: Activity) -> bool:
    """Whether the activity is the end of a review."""
    return item_of(activity).get("type") == "exitedReviewMode"


def _image_title(activity: Activity, cwd: str) -> str:
    if not is_generated_image(activity):
        return code_title(f"View {relative_to(activity.title, cwd)}")
    prompt = as_text(item_of(activity).get("revisedPrompt"))
    return title(f"Make an image: {prompt}" if prompt else "Make an image")


def _review_title(activity: Activity) -> str:
    if is_verdict(activity):
        return "The review is done"
    target = as_text(item_of(activity).get("review"))
    return title(f"Review {target}" if target else "Review")


def item_of(activity: Activity) -> dict[str, Any]:
    return activity.item if isinstance(activity.item, dict) else {}


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""
