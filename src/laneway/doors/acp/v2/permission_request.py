"""Sends `session/request_permission` of ACP 2, which has a title, a description and a subject."""

from __future__ import annotations

from typing import Any

from laneway.base.plain import plain, plain_code, prefixed
from laneway.core.model import Question
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.questions import permission_options
from laneway.doors.acp.questions.permission_request import Options
from laneway.doors.acp.updates import diffs, tool_calls
from laneway.doors.acp.v2 import patches
from laneway.rendering.diffs import absolute, edit_kind
from laneway.rendering.question_texts import conditions, explanation, no_changes, question_title


class PermissionRequestV2:
    """The `PermissionRequest` of protocol 2."""

    def __init__(
        self, channel: ClientChannel, session_id: str, thread_id: str, cwd: str, call_id: str | None
    ) -> None:
        self._channel = channel
        self._session_id = session_id
        self._thread_id = thread_id
        self._cwd = cwd
        self._call_id = call_id

    async def request_decision(self, question: Question, offered: Options) -> Any:
        match question.kind:
            case "command" if question.command:
                subject = self._command(question)
                return await self._request(_header("Allow this command?", question, subject), offered)
            case "patch":
                return await self._decide_patch(question, offered)
            case _:
                # Who asks, for what, and why: as text, because the protocol has no subject for it.
                paragraphs = explanation(question, question.cwd or self._cwd)
                header = {"title": question_title(question), **_description(paragraphs)}
                if self._call_id is not None:
                    header["subject"] = {"type": "tool_call", "toolCall": {"toolCallId": self._call_id}}
                return await self._request(header, offered)

    async def request_choice(self, call_id: str, title: str, text: str, offered: Options) -> Any:
        return await self._request({"title": title, "description": plain(text)}, offered)

    def _command(self, question: Question) -> dict[str, Any] | None:
        cwd = absolute(question.cwd or self._cwd, self._cwd)
        if cwd is None:
            return None
        subject = {"type": "command", "command": plain_code(question.command or ""), "cwd": plain_code(cwd)}
        if self._call_id is not None:
            subject |= {"toolCallId": self._call_id, "terminalId": self._call_id}
        return subject

    async def _decide_patch(self, question: Question, offered: Options) -> Any:
        call_id = self._call_id or tool_calls.call_id_of(question, self._thread_id)
        base = question.cwd or self._cwd
        call = {
            "toolCallId": call_id,
            "title": question_title(question),
            "kind": edit_kind(question.changes),
            "name": "apply_patch",
            "content": patches.contents(question.changes, base),
            "locations": diffs.locations(question.changes, base),
        }
        subject = {"type": "tool_call", "toolCall": call}
        header = _header("Allow these changes?", question, subject)
        status = "failed"
        try:
            reply = await self._request(header, offered)
            picked = permission_options.chosen(reply, offered)
            if picked is not None and picked["kind"].startswith("allow"):
                status = "completed"
            return reply
        finally:
            if self._call_id is None:  # the client knows the call only by this request
                end_update = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": status}
                self._channel.update(self._session_id, end_update)

    async def _request(self, header: dict[str, Any], offered: Options) -> Any:
        params = {"sessionId": self._session_id, **header, "options": offered}
        return await self._channel.call("session/request_permission", params)


def _header(title: str, question: Question, subject: dict[str, Any] | None) -> dict[str, Any]:
    paragraphs = conditions(question)
    if question.kind == "patch" and not question.changes:
        paragraphs.append(no_changes(question))
    if subject is None:
        paragraphs.insert(0, prefixed(plain_code(question.command or "")))
    header = {"title": title, **_description(paragraphs)}
    return header if subject is None else header | {"subject": subject}


def _description(paragraphs: list[str]) -> dict[str, Any]:
    return {"description": "\n\n".join(paragraphs)} if paragraphs else {}
