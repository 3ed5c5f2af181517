"""Tools by which a lane's model gives work to other lanes of its conversation, one for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laneway.base.errors import LanewayError
from laneway.core.tools import Caller, Tool, ToolResult
from laneway.doors.chat.ports import DelegatingHost
from laneway.lanes.contract import LaneHost

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "description": "What is to be done, with all that is needed to do it: nothing else is passed on.",
        }
    },
    "required": ["task"],
    "additionalProperties": False,
}


def delegation_tools(host: LaneHost) -> tuple[Tool, ...]:
    """A tool for each lane that the host's lane may give work to."""
    if not isinstance(host, DelegatingHost):
        return ()
    return tuple(_tool(host, lane, about) for lane, about in host.delegates.items())


def _tool(host: DelegatingHost, lane: str, about: str) -> Tool:
    async def delegate(caller: Caller, arguments: Mapping[str, Any]) -> ToolResult:
        task = str(arguments["task"])
        if not task.strip():
            return ToolResult("The task is empty: say what is to be done.", is_error=True)
        try:
            return ToolResult(await host.delegate(lane, task))  # cancelled with the call
        except LanewayError as error:
            return ToolResult(str(error), is_error=True)

    return Tool(
        name=lane,
        description=(
            f"Have another agent, {lane}, do a task in this folder: {about.rstrip('.')}. The user sees its"
            " work as it happens, and answers its questions. Returns what it has done. Use it when the user"
            f" asks for {lane}, or for a second opinion."
        ),
        schema=_SCHEMA,
        handler=delegate,
        title=f"Delegate to {lane}",
    )
