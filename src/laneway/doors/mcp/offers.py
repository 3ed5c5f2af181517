"""Who runs the tools of `laneway mcp` that are about sessions. What clients are told is in `definitions`."""

from __future__ import annotations

from collections.abc import Collection

from laneway.doors.mcp.definitions import definitions
from laneway.doors.mcp.desk import Desk
from laneway.doors.mcp.names import Names
from laneway.doors.mcp.office import Office
from laneway.doors.mcp.server import Handler, Offer


def offers(names: Names, desk: Desk, office: Office, groups: Collection[str]) -> list[Offer]:
    """Those of the listed tools, with whoever runs each."""
    handlers: dict[str, Handler] = {
        "codex": desk.codex,
        "codex-reply": desk.reply,
        names.answer: desk.answer,
        names.sessions: office.sessions,
        names.status: office.status,
        names.close: office.close,
    }
    listed = definitions(names, groups)
    return [Offer(each, handlers[each["name"]]) for each in listed if each["name"] in handlers]
