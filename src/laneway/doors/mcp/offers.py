"""Joins the session tools of `laneway mcp` to their handlers. Names and schemas are in `definitions`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from laneway.doors.mcp.admin_tools import AdminTools
from laneway.doors.mcp.definitions import definitions
from laneway.doors.mcp.names import Names
from laneway.doors.mcp.server import Handler, Offer
from laneway.doors.mcp.session_tools import SessionTools


def offers(
    names: Names,
    session_tools: SessionTools,
    admin_tools: AdminTools,
    groups: Collection[str],
    backends: Sequence[str] = (),
) -> list[Offer]:
    """The session tools of these groups, each with its handler."""
    handlers: dict[str, Handler] = {
        "codex": session_tools.codex,
        "codex-reply": session_tools.reply,
        names.answer: session_tools.answer,
        names.sessions: admin_tools.sessions,
        names.status: admin_tools.status,
        names.close: admin_tools.close,
    }
    # `codex_status` of the group `jobs` is none of ours, unless ours of that name is there, too.
    ours = {each["name"] for each in definitions(names, set(groups) - {"jobs"})} & set(handlers)
    listed = definitions(names, groups, backends)
    return [Offer(each, handlers[each["name"]]) for each in listed if each["name"] in ours]
