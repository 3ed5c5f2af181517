"""The tools around sessions: which there are, how we are, and their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from laneway.base.errors import LanewayError
from laneway.base.plain import code_label
from laneway.core.colleagues import Colleagues
from laneway.doors.mcp.codes import INVALID_SESSION_PARAMS, proxy_error, wire_error
from laneway.doors.mcp.definitions import MAX_SESSIONS_A_PAGE, SESSIONS_A_PAGE
from laneway.doors.mcp.names import Names
from laneway.doors.mcp.server import INVALID_PARAMS, Call

_KINDS = {str: "a string", int: "an integer", bool: "a boolean"}


class Office:
    def __init__(
        self,
        colleagues: Colleagues,
        names: Names,
        further: Callable[[str], dict[str, Any]] = lambda principal: {},
    ) -> None:
        """`further` is what else `status` tells a principal: of mail, say."""
        self._colleagues = colleagues
        self._further = further
        self._names = names

    async def sessions(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        known = {"identity": str, "include_closed": bool, "repo_root": str, "limit": int, "cursor": str}
        _only(arguments, known)
        limit = arguments.pop("limit", SESSIONS_A_PAGE)
        if not 1 <= limit <= MAX_SESSIONS_A_PAGE:
            raise proxy_error(INVALID_PARAMS, f"limit must be a number from 1 to {MAX_SESSIONS_A_PAGE}.")
        try:
            roll = await self._colleagues.sessions(call.principal, limit=limit, **arguments)
        except LanewayError as error:
            raise wire_error(error, self._names) from error
        rows = [self._told(msgspec.to_builtins(row)) for row in roll.rows]
        more = {"nextCursor": roll.cursor} if roll.cursor is not None else {}
        return shown({"sessions": rows, "total": roll.total, **more, "problems": list(roll.problems)})

    async def status(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        health = msgspec.to_builtins(self._colleagues.status())
        health["identities"] = {name: self._told(bound) for name, bound in health["identities"].items()}
        return shown({**health, **self._further(call.principal)})

    async def close(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        _only(arguments, {self._names.agent_id: str, "identity": str})
        agent_id, identity = arguments.get(self._names.agent_id), arguments.get("identity")
        if agent_id is None and identity is None:
            raise proxy_error(
                INVALID_SESSION_PARAMS, f"{self._names.close} needs {self._names.agent_id} or identity."
            )
        # Both may be given, and then both must be meant: the id decides, the name is checked.
        try:
            if agent_id is not None and identity is not None:
                record = await self._colleagues.lookup(agent_id=agent_id)
                if record.identity != identity:
                    raise proxy_error(
                        INVALID_SESSION_PARAMS, f"Session {agent_id} is {record.identity}, not {identity}."
                    )
                identity = None
            ended = await self._colleagues.close(call.principal, agent_id=agent_id, identity=identity)
        except LanewayError as error:
            raise wire_error(error, self._names) from error
        return shown(self._told(msgspec.to_builtins(ended)))

    def _told(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row in the words of this profile."""
        agent_id = row.pop("agent_id", None)
        if agent_id is None:
            return row
        return {**self._names.told(agent_id), **row}


def shown(data: dict[str, Any]) -> dict[str, Any]:
    """Data for programs, and the same as text for models whose client shows nothing else."""
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
