"""Small things of protocol 1 in the form that protocol 2 has for them. Pure."""

from __future__ import annotations

from typing import Any

from laneway.base.errors import RemoteError
from laneway.base.plain import plain
from laneway.commands import slash
from laneway.core.model import Activity, Plan
from laneway.core.offers import Offers

PLAN_ID = "plan"
"""A session has one plan; Codex replaces it."""


def options(rendered: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`configOptions`."""
    return [_renamed(option, "configId") for option in rendered]


def available_commands(offers: Offers) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    for command in slash.available(offers):
        entry = {"type": "command", "name": command.name, "description": command.description}
        shown.append(entry | ({"input": {"type": "text", "hint": command.hint}} if command.hint else {}))
    return shown


def plan(given: Plan) -> dict[str, Any]:
    entries = [
        {
            "content": plain(step.text),
            "priority": "medium",
            "status": "in_progress" if step.status == "running" else step.status,
        }
        for step in given.steps
    ]
    return {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": PLAN_ID, "entries": entries}}


def compaction(activity: Activity) -> dict[str, Any]:
    status = {"running": "in_progress", "completed": "completed", "interrupted": "cancelled"}
    return {
        "sessionUpdate": "compaction_update",
        "compactionId": activity.item_id,
        "status": status.get(activity.status, "failed"),
    }


def message(kind: str, message_id: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    """A whole message; told again, it takes the place of the first telling."""
    return {"sessionUpdate": kind, "messageId": message_id, "content": content}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def error_of(refused: RemoteError) -> dict[str, Any]:
    error: dict[str, Any] = {"code": refused.code, "message": refused.message}
    return error if refused.data is None else error | {"data": refused.data}


def _renamed(entry: dict[str, Any], name: str) -> dict[str, Any]:
    return {name: entry["id"]} | {key: value for key, value in entry.items() if key != "id"}
