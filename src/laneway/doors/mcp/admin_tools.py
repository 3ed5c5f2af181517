"""The MCP tools `agent_sessions`, `agent_status`, `agent_close`: list sessions, report health, close one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from laneway.base.errors import LanewayError
from laneway.base.plain import code_label
from laneway.core.named.sessions import NamedSessions
from laneway.doors.mcp.codes import INVALID_SESSION_PARAMS, proxy_error, wire_error
from laneway.doors.mcp.definitions import MAX_SESSIONS_A_PAGE, SESSIONS_A_PAGE
from laneway.doors.mcp.names import Names
from laneway.doors.mcp.server import Call
from laneway.wire.messages import INVALID_PARAMS

_KINDS = {str: "a string", int: "an integer", bool: "a boolean"}


class AdminTools:
    """Handlers of the tools that manage sessions."""

    def __init__(
        self,
        sessions: NamedSessions,
        names: Names,
        further: Callable[[str], dict[str, Any]] = lambda principal: {},
    ) -> None:
        """`further` gives what else `status` reports to a principal: unread mail, say."""
        self._sessions = sessions
        self._further = further
        self._names = names

    async def sessions(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        known = {"identity": str, "include_closed": bool, "repo_root": str, "limit": int, "cursor": str}
        _only(arguments, known)
        limit = arguments.pop("limit", SESSIONS_A_PAGE)
        if not 1 <= limit <= MAX_SESSIONS_A_PAGE:
            raise proxy_error(INVALID_PARAMS, f"limit must be a number from 1 to {MAX_SESSIONS_A_PAGE}.")
        try:
            page = await self._sessions.sessions(call.principal, limit=limit, **arguments)
        except LanewayError as error:
            raise wire_error(error, self._names) from error
        rows = [self._row_json(msgspec.to_builtins(row)) for row in page.rows]
        more = {"nextCursor": page.cursor} if page.cursor is not None else {}
        return tool_result({"sessions": rows, "total": page.total, **more, "problems": list(page.problems)})

    async def status(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        health = msgspec.to_builtins(self._sessions.status())
        if not health["engines"]:
            del health["engines"]
        health["identities"] = {name: self._row_json(bound) for name, bound in health["identities"].items()}
        return tool_result({**health, **self._further(call.principal)})

    async def close(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        _only(arguments, {self._names.agent_id: str, "identity": str})
        agent_id, identity = arguments.get(self._names.agent_id), arguments.get("identity")
        if agent_id is None and identity is None:
            raise proxy_error(
                INVALID_SESSION_PARAMS, f"{self._names.close} needs {self._names.agent_id} or identity."
            )
        # Both may be given, and then both must name the same session: the id decides, the name is checked.
        try:
            if agent_id is not None and identity is not None:
                record = await self._sessions.lookup(agent_id=agent_id)
                if record.identity != identity:
                    raise proxy_error(
                        INVALID_SESSION_PARAMS, f"Session {agent_id} is {record.identity}, not {identity}."
                    )
                identity = None
            closed = await self._sessions.close(call.principal, agent_id=agent_id, identity=identity)
        except LanewayError as error:
            raise wire_error(error, self._names) from error
        return tool_result(self._row_json(msgspec.to_builtins(closed)))

    def _row_json(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row with the session's id under this profile's field name."""
        agent_id = row.pop("agent_id", None)
        if agent_id is None:
            return row
        return {**self._names.id_fields(agent_id), **row}


def tool_result(data: dict[str, Any]) -> dict[str, Any]:
    """The result of `tools/call`: data for programs, and the same as text for clients that show only text."""
    text = msgspec.json.encode(data).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": data}


def _only(arguments: dict[str, Any], known: dict[str, type]) -> None:
    for name, value in list(arguments.items()):
        if value is None:
            del arguments[name]
        elif name not in known:
            raise proxy_error(INVALID_PARAMS, f"There is no argument {code_label(name)}.")
        elif not isinstance(value, known[name]) or (known[name] is int and isinstance(value, bool)):
            raise proxy_error(INVALID_PARAMS, f"{name} must be {_KINDS[known[name]]}.")
