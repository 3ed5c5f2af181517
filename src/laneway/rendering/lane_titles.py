"""A lane's name, what its banners say, and its calls: `Bash(npm test)`, `codex::Edit(src/auth.ts)`. Pure."""

from __future__ import annotations

from laneway.base.plain import code_label
from laneway.core.model import Activity, Look, Status
from laneway.rendering.activities import tool_name, web_action
from laneway.rendering.titles import code_title, relative_to, title

_NAMES = {
    "command": "Bash",
    "edit": "Edit",
    "image": "Image",
    "agent": "Agent",
    "review": "Review",
    "compaction": "Compact",
    "sleep": "Sleep",
}
_LOOKS = {"read": "Read", "search": "Grep", "list": "List"}
RULE = "━━━"
"""Before and after a banner."""
MAX_NAME_CHARS = 40
"""Of a lane or a person."""
_ENDS: dict[Status, str] = {"completed": "COMPLETED", "failed": "FAILED", "interrupted": "STOPPED"}
MAX_FILES = 3
"""Files that a line names; the others are counted."""


def lane_name(lane: str) -> str:
    return code_label(lane, MAX_NAME_CHARS)


def began_head(lane: str) -> str:
    return f"{lane_name(lane).upper()} STARTED"


def ended_head(lane: str, status: Status) -> str:
    return f"{lane_name(lane).upper()} {_ENDS[status]}"


def call_title(activity: Activity, cwd: str = "", lane: str | None = None) -> str:
    """On one line, with hidden characters shown. `lane` is named in front, if it is given."""
    name, about = _call(activity, cwd)
    prefix = f"{lane}::" if lane else ""
    return f"{prefix}{code_title(name)}({about})"


def _call(activity: Activity, cwd: str) -> tuple[str, str]:
    match activity.kind:
        case "command":
            return "Bash", code_title(activity.title)
        case "edit":
            return _edit(activity, cwd)
        case "read":
            return _look(activity.look, cwd) if activity.look else ("Read", code_title(activity.title))
        case "mcp" | "tool":
            return activity.tool or tool_name(activity), _arguments(activity)
        case "search":
            action = web_action(activity)
            return ("WebFetch" if action.kind == "fetch" else "WebSearch"), title(activity.title)
        case kind:
            return _NAMES.get(kind, activity.tool or "Tool"), title(activity.title)


def _edit(activity: Activity, cwd: str) -> tuple[str, str]:
    changes = activity.changes
    kinds = {change.kind for change in changes}
    name = "Write" if kinds == {"add"} else "Delete" if kinds == {"delete"} else "Edit"
    paths = [relative_to(change.path, cwd) for change in changes] or [activity.title]
    more = f" and {len(paths) - MAX_FILES} more" if len(paths) > MAX_FILES else ""
    return name, code_title(", ".join(paths[:MAX_FILES])) + more


def _look(look: Look, cwd: str) -> tuple[str, str]:
    path = relative_to(look.path, cwd)
    about = f"{look.pattern} in {path}" if look.pattern and path else look.pattern or path
    return _LOOKS[look.purpose], code_title(about)


def _arguments(activity: Activity) -> str:
    """The first argument, which says most."""
    if isinstance(activity.input, dict):
        return code_title(str(next(iter(activity.input.values()), "")))
    return "" if activity.input is None else code_title(str(activity.input))
