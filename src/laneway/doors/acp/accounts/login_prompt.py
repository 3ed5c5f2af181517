"""What a person has to do outside of the editor to log in, and how a client can show it.

One rung after another: a URL, a form, the conversation, a permission request. A client that refuses
one gets the next.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from laneway.base.errors import RemoteError
from laneway.base.plain import MAX_QUOTED_CHARS, code_label
from laneway.core.offers import LoginPage
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.updates.blocks import text

log = logging.getLogger(__name__)

DONE = "done"
Shown = Literal["link", "told", "declined"]
"""A person was sent there, or was told where to go, or does not want to."""


OPTIONS = [
    {"optionId": DONE, "name": "I have logged in", "kind": "allow_once"},
    {"optionId": "cancel", "name": "Cancel the login", "kind": "reject_once"},
]


class LoginPrompt(LoginPage, frozen=True):
    """The page in words for a person."""

    @property
    def _page(self) -> str:
        return code_label(self.url, MAX_QUOTED_CHARS)

    @property
    def text(self) -> str:
        if self.code:
            return f"Open {self._page} and enter the code {code_label(self.code)} to log in to Codex."
        return f"Open {self._page} in a browser on the machine where Codex runs to log in."

    @property
    def title(self) -> str:
        """Of a permission request, of which some clients show nothing else."""
        return self.text if self.code else "Log in to Codex"

    @property
    def then_again(self) -> str:
        return f"{self.text} Then choose this way to log in once more, or start a session."


class LoginAsker(msgspec.Struct, frozen=True):
    """Who wants to log in, and by which request."""

    client: EditorClient
    line: ClientChannel
    request_id: Any = None
    """Of `authenticate`, as the client wrote it; None: not by a request."""
    session_id: str | None = None
    """Any session that the client has open."""
    say: Callable[[str], None] | None = None
    """Into the conversation from which somebody logs in."""


async def show(signpost: LoginPrompt, asker: LoginAsker) -> Shown | None:
    """How it was taken; None if there was no way to show it."""
    scope, shown = _scope(asker), None
    if asker.client.takes_urls and scope:
        shown = await _elicit(asker.line, _by_url(signpost) | scope, "link")
    if shown is None and asker.say is not None:
        asker.say(signpost.text)
        return "told"
    if shown is None and asker.client.takes_forms and scope:
        shown = await _elicit(asker.line, _by_form(signpost) | scope, "told")
    if shown is None and asker.session_id is not None:
        asks = _permitted_alone if asker.client.protocol == 2 else _permitted
        shown = await asks(signpost, asker.line, asker.session_id)
    return shown


def _scope(asker: LoginAsker) -> dict[str, Any]:
    if asker.request_id is not None:
        return {"requestId": asker.request_id}
    return {"sessionId": asker.session_id} if asker.session_id is not None else {}


def _by_url(signpost: LoginPrompt) -> dict[str, Any]:
    message = (
        f"Log in to Codex and enter this code there: {code_label(signpost.code)}"
        if signpost.code
        else "Log in to Codex."
    )
    return {"mode": "url", "elicitationId": signpost.login_id, "url": signpost.url, "message": message}


def _by_form(signpost: LoginPrompt) -> dict[str, Any]:
    return {
        "mode": "form",
        "message": f"{signpost.text} Accept this when you have done so.",
        "requestedSchema": {"type": "object", "properties": {}},
    }


async def _elicit(line: ClientChannel, params: dict[str, Any], accepted: Shown) -> Shown | None:
    try:
        reply = await line.call("elicitation/create", params)
    except RemoteError as refused:
        log.info("the client shows no %s for a login: %s", params["mode"], refused)
        return None
    return accepted if isinstance(reply, dict) and reply.get("action") == "accept" else "declined"


async def _permitted(signpost: LoginPrompt, line: ClientChannel, session_id: str) -> Shown | None:
    """A permission request needs a tool call to be about: this one begins and ends here."""
    call_id, status = f"login:{signpost.login_id}", "failed"
    call = {
        "toolCallId": call_id,
        "title": signpost.title,
        "kind": "other",
        "status": "pending",
        "content": [text(signpost.text)],
    }
    line.update(session_id, {"sessionUpdate": "tool_call", **call})
    try:
        shown = await _request(line, {"sessionId": session_id, "toolCall": call, "options": OPTIONS})
        if shown == "told":
            status = "completed"
        return shown
    finally:
        line.update(
            session_id, {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": status}
        )


async def _permitted_alone(signpost: LoginPrompt, line: ClientChannel, session_id: str) -> Shown | None:
    """In protocol 2 it needs none."""
    head = {"title": signpost.title, "description": signpost.text}
    return await _request(line, {"sessionId": session_id, **head, "options": OPTIONS})


async def _request(line: ClientChannel, params: dict[str, Any]) -> Shown | None:
    try:
        reply = await line.call("session/request_permission", params)
    except RemoteError as refused:
        log.info("the client shows no permission request for a login: %s", refused)
        return None
    outcome = reply.get("outcome") if isinstance(reply, dict) else None
    return "told" if isinstance(outcome, dict) and outcome.get("optionId") == DONE else "declined"
