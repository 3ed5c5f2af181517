"""A permission request of protocol 2: a title and words of its own, and what it is about."""

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
from laneway.rendering.question_words import NO_CHANGES, conditions, explanation, question_title


class PermissionRequestV2:
    """`laneway.doors.acp.questions.permission_request.Permits`."""

    def __init__(
        self, line: ClientChannel, session_id: str, thread_id: str, cwd: str, call_id: str | None
    ) -> None:
        self._line = line
        self._session_id = session_id
        self._thread_id = thread_id
        self._cwd = cwd
        self._call_id = call_id

    async def decide(self, question: Question, offered: Options) -> Any:
        match question.kind:
            case "command" if question.command:
                subject = self._command(question)
                return await self._request(_headed("Allow this command?", question, subject), offered)
            case "patch":
                return await self._decide_patch(question, offered)
            case _:
                # Who asks, for what, and why: in words, for there is no subject like it.
                words = explanation(question, question.cwd or self._cwd)
                head = {"title": question_title(question), **_described(words)}
                if self._call_id is not None:
                    head["subject"] = {"type": "tool_call", "toolCall": {"toolCallId": self._call_id}}
                return await self._request(head, offered)

    async def pick(self, call_id: str, title: str, words: str, offered: Options) -> Any:
        return await self._request({"title": title, "description": plain(words)}, offered)

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
        head = _headed("Allow these changes?", question, subject)
        status = "failed"
        try:
            reply = await self._request(head, offered)
            picked = permission_options.chosen(reply, offered)
            if picked is not None and picked["kind"].startswith("allow"):
                status = "completed"
            return reply
        finally:
            if self._call_id is None:  # the client knows it by this request alone
                ended = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": status}
                self._line.update(self._session_id, ended)

    async def _request(self, head: dict[str, Any], offered: Options) -> Any:
        params = {"sessionId": self._session_id, **head, "options": offered}
        return await self._line.call("session/request_permission", params)


def _headed(words: str, question: Question, subject: dict[str, Any] | None) -> dict[str, Any]:
    said = conditions(question)
    if question.kind == "patch" and not question.changes:
        said.append(NO_CHANGES)
    if subject is None:
        said.insert(0, prefixed(plain_code(question.command or "")))
    head = {"title": words, **_described(said)}
    return head if subject is None else head | {"subject": subject}


def _described(said: list[str]) -> dict[str, Any]:
    return {"description": "\n\n".join(said)} if said else {}
