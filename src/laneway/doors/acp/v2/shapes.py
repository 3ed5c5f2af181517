"""Small updates and fields in the form of ACP 2: options, commands, plans, messages, errors. Pure."""

from __future__ import annotations

from typing import Any

from laneway.base.errors import RemoteError
from laneway.base.plain import plain
from laneway.commands import slash
from laneway.core.model import Activity, Plan
from laneway.core.offers import Offers

PLAN_ID = "plan"
"""The id of the only plan of a session, which Codex replaces as a whole."""


def options(options_v1: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`configOptions`, from those of protocol 1."""
    return [_renamed(option, "configId") for option in options_v1]


def available_commands(offers: Offers) -> list[dict[str, Any]]:
    commands: list[dict[str, Any]] = []
    for command in slash.available(offers):
        entry = {"type": "command", "name": command.name, "description": command.description}
        commands.append(entry | ({"input": {"type": "text", "hint": command.hint}} if command.hint else {}))
    return commands


def plan(plan: Plan) -> dict[str, Any]:
    entries = [
        {
            "content": plain(step.text),
            "priority": "medium",
            "status": "in_progress" if step.status == "running" else step.status,
        }
        for step in plan.steps
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
    """A whole message; sent again with the same id, it replaces the first."""
    return {"sessionUpdate": kind, "messageId": message_id, "content": content}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def error_of(refused: RemoteError) -> dict[str, Any]:
    error: dict[str, Any] = {"code": refused.code, "message": refused.message}
    return error if refused.data is None else error | {"data": refused.data}


def _renamed(entry: dict[str, Any], name: str) -> dict[str, Any]:
    return {name: entry["id"]} | {key: value for key, value in entry.items() if key != "id"}
