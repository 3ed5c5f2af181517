"""Mail for a terminal, and for programs. What others wrote never reaches a terminal raw."""

from __future__ import annotations

import json
import sys
from typing import Any

from laneway.base.plain import plain
from laneway.cli.terminal import Style
from laneway.mail.roster import Member

Data = dict[str, Any]


def as_json(action: str, data: Data) -> str:
    return json.dumps({"action": action, **data})


def sent(data: Data) -> str:
    if data["outcome"] == "delivered":
        return plain(f"Delivered to {data['to']} ({data['message_id']}).\n")
    return plain(
        f"Another program holds the inbox of {data['to']}. The message is kept ({data['message_id']}) and is "
        "delivered by a running server, or by the next `laneway mail`.\n"
    )


def broadcast(data: Data) -> str:
    lines = [f"{each['to']}: {each['outcome']}" for each in data["sent"]]
    lines += [f"{each['to']}: not delivered" for each in data["failed"]]
    return plain("\n".join([*lines, f"{len(data['sent'])} of {len(lines)} ({data['message_id']})."]) + "\n")


def messages(data: Data) -> str:
    if not data["messages"]:
        return plain(f"No mail for {data['identity']} in team {data['team']}.\n")
    return "\n".join(_message(row) for row in data["messages"])


def _message(row: Data) -> str:
    """Its body is indented, so that no line of it can pass for the head of another message."""
    style = Style(sys.stdout)
    marks = [row["priority"]] if "priority" in row else []
    marks += ["read"] if row["read"] else []
    who = row["from"] + (f"@{row['source_team']}" if "source_team" in row else "")
    head = "  ".join([who, row["timestamp"] or "no time", *marks])
    body = "".join(f"  {line}\n" for line in row["text"].splitlines())
    return style.bold(plain(head)) + "\n" + style.dim(plain(f"  {row['message_id']}")) + "\n" + plain(body)


def pending(data: Data) -> str:
    return f"{data['unread']}\n"


def members(data: Data) -> str:
    style = Style(sys.stdout)
    if not data["members"]:
        return plain(f"Nobody is in team {data['team']}.\n")
    lines = []
    for row in data["members"]:
        what = " ".join(part for part in (row["type"], row["model"]) if part)
        busy = {True: "busy", False: "idle", None: ""}[row["is_active"]]
        lines.append(style.bold(plain(f"{row['name']:<20}")) + plain(f" {what:<30} {busy}").rstrip() + "\n")
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
        "laneway_pid": member.owner.pid if member.owner else None,
    }
