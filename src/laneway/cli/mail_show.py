"""The output of `laneway mail`: text for a terminal, or JSON. Foreign text never reaches a terminal raw."""

from __future__ import annotations

import json
import sys
from typing import Any

from laneway.base.plain import code_label, prefixed
from laneway.mail.roster import Member
from laneway.mail.tool_schemas import ENDED, joining
from laneway.terminal import Style
from laneway.terminal.style import width

Data = dict[str, Any]


def as_json(action: str, data: Data) -> str:
    return json.dumps({"action": action, **data})


def sent(data: Data) -> str:
    if data["outcome"] == "delivered":
        ended = f" {ENDED}" if data["is_gone"] else ""
        return f"Delivered to {code_label(data['to'])} ({code_label(data['message_id'])}).{ended}\n"
    return (
        f"Another program holds the inbox of {code_label(data['to'])}. The message is kept "
        f"({code_label(data['message_id'])}) and is delivered by a running server, or by the next "
        "`laneway mail`.\n"
    )


def broadcast(data: Data) -> str:
    lines = [code_label(f"{each['to']}: {each['outcome']}") for each in data["sent"]]
    lines += [code_label(f"{each['to']}: not delivered") for each in data["failed"]]
    end = f"{len(data['sent'])} of {len(lines)} ({code_label(data['message_id'])})."
    return "\n".join([*lines, end]) + "\n"


def messages(data: Data) -> str:
    if not data["messages"]:
        return f"No mail for {code_label(data['identity'])} in team {code_label(data['team'])}.\n"
    return "\n".join(_message(row) for row in data["messages"])


def _message(row: Data) -> str:
    """The body is indented, so that no line of it can look like the head of another message."""
    style, columns = Style(sys.stdout), width(sys.stdout)
    marks = [row["priority"]] if "priority" in row else []
    marks += ["read"] if row["read"] else []
    who = row["from"] + (f"@{row['source_team']}" if "source_team" in row else "")
    head = "  ".join([who, row["timestamp"] or "no time", *marks])
    body = prefixed(row["text"].rstrip("\n"), "  ", columns) + "\n"
    message_id = style.dim("  " + code_label(row["message_id"]))
    return f"{style.bold(code_label(head))}\n{message_id}\n{body}"


def pending(data: Data) -> str:
    return f"{data['unread']}\n"


def members(data: Data) -> str:
    style = Style(sys.stdout)
    if not data["members"]:
        return f"Nobody is in team {code_label(data['team'])} yet. {joining('reviewer')}\n"
    lines = []
    for row in data["members"]:
        what = " ".join(part for part in (row["type"], row["model"]) if part)
        state = "gone" if row["is_gone"] else {True: "busy", False: "idle", None: ""}[row["is_active"]]
        name = style.bold(code_label(f"{row['name']:<20}"))
        lines.append(name + code_label(f" {what:<30} {state}").rstrip() + "\n")
    gone = sum(row["is_gone"] for row in data["members"])
    if gone:
        have, them = ("1 session has", "it") if gone == 1 else (f"{gone} sessions have", "them")
        lines.append(f"{have} ended without leaving: `laneway sessions --prune` removes {them}.\n")
    return "".join(lines)


def member_row(member: Member) -> Data:
    return {
        "name": member.name,
        "agent_id": member.agent_id,
        "type": member.agent_type,
        "model": member.model,
        "cwd": member.cwd,
        "joined_at": member.joined_at.isoformat() if member.joined_at else None,
        "is_active": member.is_active,
        "is_lead": member.is_lead,
        "is_gone": member.is_gone,
        "laneway_pid": member.owner.pid if member.owner else None,
    }
