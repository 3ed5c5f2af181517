"""How a person is asked to permit something: what the versions of ACP put differently.

The ladder of `inquiry` climbs here with a question of Codex's, or with words of its own. In
protocol 1 a request is about a tool call, so that what belongs to none gets one for as long as it
is asked; protocol 2 has its own way (`laneway.doors.acp.v2.permission_request`).
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
"""`PermissionOption`s, which are the same in all versions; so is the reply."""


class PermissionRequest(Protocol):
    async def decide(self, question: Question, offered: Options) -> Any:
        """The client's reply on something that Codex wants to do."""
        ...

    async def pick(self, call_id: str, title: str, words: str, offered: Options) -> Any:
        """The client's reply on anything else; `call_id` is free for it."""
        ...


class PermissionRequestV1:
    """Protocol 1. `call_id`: the tool call that the question is about, if the client knows one."""

    def __init__(
        self,
        line: ClientChannel,
        client: EditorClient,
        session_id: str,
        thread_id: str,
        cwd: str,
        call_id: str | None,
    ) -> None:
        self._line = line
        self._client = client
        self._session_id = session_id
        self._thread_id = thread_id
        self._cwd = cwd
        self._call_id = call_id

    async def decide(self, question: Question, offered: Options) -> Any:
        call_id = self._call_id or tool_call_id(self._thread_id, question.turn_id or "", question.question_id)
        call = tool_calls.asked(question, self._thread_id, self._client, cwd=self._cwd, call_id=call_id)
        if self._call_id is None:
            return await self._by_own_call(call, offered)
        reply = await self._request(call, offered)
        if _is_yes(reply, offered):
            update = tool_calls.resumed(question, self._thread_id, self._client, call_id=call_id)
            self._line.update(self._session_id, update)
        return reply

    async def pick(self, call_id: str, title: str, words: str, offered: Options) -> Any:
        content = [blocks.text(plain(words))]
        call = {"toolCallId": call_id, "title": title, "kind": "other", "content": content}
        return await self._by_own_call(call, offered)

    async def _by_own_call(self, call: dict[str, Any], offered: Options) -> Any:
        """For something that is no item of Codex's: announced and ended here."""
        call = {**call, "status": "pending"}
        self._line.update(self._session_id, {"sessionUpdate": "tool_call", **call})
        status = "failed"
        try:
            reply = await self._request(call, offered)
            if _is_yes(reply, offered):
                status = "completed"
            return reply
        finally:
            ended = {"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], "status": status}
            self._line.update(self._session_id, ended)

    async def _request(self, call: dict[str, Any], offered: Options) -> Any:
        params = {"sessionId": self._session_id, "toolCall": call, "options": offered}
        return await self._line.call("session/request_permission", params)


def _is_yes(reply: Any, offered: Options) -> bool:
    picked = permission_options.chosen(reply, offered)
    return picked is not None and picked["kind"].startswith("allow")
