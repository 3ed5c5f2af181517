"""Sends `session/request_permission`, whose form differs between the versions of ACP.

Used by `ask_client`, for a question of Codex's or for a text of its own. In protocol 1 a request needs
a tool call: if there is none, one is announced for the request and ended after it. Protocol 2 is in
`laneway.doors.acp.v2.permission_request`.
"""

from __future__ import annotations

from typing import Any, Protocol

from laneway.base.plain import plain
from laneway.core.model import Question
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.ids import tool_call_id
from laneway.doors.acp.questions import permission_options
from laneway.doors.acp.updates import blocks, tool_calls

Options = list[dict[str, Any]]
"""`PermissionOption`s; these and the reply are the same in all versions."""


class PermissionRequest(Protocol):
    async def request_decision(self, question: Question, offered: Options) -> Any:
        """The client's reply about an approval that Codex asks for."""
        ...

    async def request_choice(self, call_id: str, title: str, text: str, offered: Options) -> Any:
        """The client's reply to any other choice; `call_id` is an unused id for its tool call."""
        ...


class PermissionRequestV1:
    """Protocol 1. `call_id`: the tool call that the question is about, if the client knows one."""

    def __init__(
        self,
        channel: ClientChannel,
        client: EditorClient,
        session_id: str,
        thread_id: str,
        cwd: str,
        call_id: str | None,
    ) -> None:
        self._channel = channel
        self._client = client
        self._session_id = session_id
        self._thread_id = thread_id
        self._cwd = cwd
        self._call_id = call_id

    async def request_decision(self, question: Question, offered: Options) -> Any:
        call_id = self._call_id or tool_call_id(self._thread_id, question.turn_id or "", question.question_id)
        call = tool_calls.permission_tool_call(
            question, self._thread_id, self._client, cwd=self._cwd, call_id=call_id
        )
        if self._call_id is None:
            return await self._request_with_own_call(call, offered)
        reply = await self._request(call, offered)
        if _is_yes(reply, offered):
            update = tool_calls.resumed(question, self._thread_id, self._client, call_id=call_id)
            self._channel.update(self._session_id, update)
        return reply

    async def request_choice(self, call_id: str, title: str, text: str, offered: Options) -> Any:
        content = [blocks.text(plain(text))]
        call = {"toolCallId": call_id, "title": title, "kind": "other", "content": content}
        return await self._request_with_own_call(call, offered)

    async def _request_with_own_call(self, call: dict[str, Any], offered: Options) -> Any:
        """Request with a tool call of our own, which is announced and ended here."""
        call = {**call, "status": "pending"}
        self._channel.update(self._session_id, {"sessionUpdate": "tool_call", **call})
        status = "failed"
        try:
            reply = await self._request(call, offered)
            if _is_yes(reply, offered):
                status = "completed"
            return reply
        finally:
            end_update = {
                "sessionUpdate": "tool_call_update",
                "toolCallId": call["toolCallId"],
                "status": status,
            }
            self._channel.update(self._session_id, end_update)

    async def _request(self, call: dict[str, Any], offered: Options) -> Any:
        params = {"sessionId": self._session_id, "toolCall": call, "options": offered}
        return await self._channel.call("session/request_permission", params)


def _is_yes(reply: Any, offered: Options) -> bool:
    picked = permission_options.chosen(reply, offered)
    return picked is not None and picked["kind"].startswith("allow")
