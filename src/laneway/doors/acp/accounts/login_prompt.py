"""Shows a user where to log in: by a URL, a form, a message in the conversation or a permission request.

These are tried in this order: if the client refuses one, the next is tried.
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
PromptOutcome = Literal["link", "shown", "declined"]
"""`link`: the client opened the URL, and expects `elicitation/complete`; `shown`: in any other way."""


OPTIONS = [
    {"optionId": DONE, "name": "I have logged in", "kind": "allow_once"},
    {"optionId": "cancel", "name": "Cancel the login", "kind": "reject_once"},
]


class LoginPrompt(LoginPage, frozen=True):
    """The login page and its code, as texts for the user."""

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
        """The title of a permission request; some clients show nothing else of it."""
        return self.text if self.code else "Log in to Codex"

    @property
    def retry_text(self) -> str:
        return f"{self.text} Then choose this way to log in once more, or start a session."


class LoginRequest(msgspec.Struct, frozen=True):
    """Which client wants to log in, and the request or session by which it can be asked."""

    client: EditorClient
    channel: ClientChannel
    request_id: Any = None
    """The id of `authenticate`, as the client wrote it; None if there is no such request."""
    session_id: str | None = None
    """Any open session of the client."""
    send_message: Callable[[str], None] | None = None
    """Sends a message to the conversation in which `/login` was called."""


async def show_prompt(prompt: LoginPrompt, request: LoginRequest) -> PromptOutcome | None:
    """Show the login page to the user; None if the client has no way to show it."""
    scope, outcome = _scope(request), None
    if request.client.takes_urls and scope:
        outcome = await _elicit(request.channel, _by_url(prompt) | scope, "link")
    if outcome is None and request.send_message is not None:
        request.send_message(prompt.text)
        return "shown"
    if outcome is None and request.client.takes_forms and scope:
        outcome = await _elicit(request.channel, _by_form(prompt) | scope, "shown")
    if outcome is None and request.session_id is not None:
        ask = _by_permission_v2 if request.client.protocol == 2 else _by_permission_v1
        outcome = await ask(prompt, request.channel, request.session_id)
    return outcome


def _scope(request: LoginRequest) -> dict[str, Any]:
    if request.request_id is not None:
        return {"requestId": request.request_id}
    return {"sessionId": request.session_id} if request.session_id is not None else {}


def _by_url(prompt: LoginPrompt) -> dict[str, Any]:
    message = (
        f"Log in to Codex and enter this code there: {code_label(prompt.code)}"
        if prompt.code
        else "Log in to Codex."
    )
    return {"mode": "url", "elicitationId": prompt.login_id, "url": prompt.url, "message": message}


def _by_form(prompt: LoginPrompt) -> dict[str, Any]:
    return {
        "mode": "form",
        "message": f"{prompt.text} Accept this when you have done so.",
        "requestedSchema": {"type": "object", "properties": {}},
    }


async def _elicit(
    channel: ClientChannel, params: dict[str, Any], accepted: PromptOutcome
) -> PromptOutcome | None:
    try:
        reply = await channel.call("elicitation/create", params)
    except RemoteError as refused:
        log.info("the client shows no %s for a login: %s", params["mode"], refused)
        return None
    return accepted if isinstance(reply, dict) and reply.get("action") == "accept" else "declined"


async def _by_permission_v1(
    prompt: LoginPrompt, channel: ClientChannel, session_id: str
) -> PromptOutcome | None:
    """By a permission request of protocol 1. It needs a tool call, which is announced and ended here."""
    call_id, status = f"login:{prompt.login_id}", "failed"
    call = {
        "toolCallId": call_id,
        "title": prompt.title,
        "kind": "other",
        "status": "pending",
        "content": [text(prompt.text)],
    }
    channel.update(session_id, {"sessionUpdate": "tool_call", **call})
    try:
        outcome = await _request(channel, {"sessionId": session_id, "toolCall": call, "options": OPTIONS})
        if outcome == "shown":
            status = "completed"
        return outcome
    finally:
        channel.update(
            session_id, {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": status}
        )


async def _by_permission_v2(
    prompt: LoginPrompt, channel: ClientChannel, session_id: str
) -> PromptOutcome | None:
    """By a permission request of protocol 2, which needs no tool call."""
    head = {"title": prompt.title, "description": prompt.text}
    return await _request(channel, {"sessionId": session_id, **head, "options": OPTIONS})


async def _request(channel: ClientChannel, params: dict[str, Any]) -> PromptOutcome | None:
    try:
        reply = await channel.call("session/request_permission", params)
    except RemoteError as refused:
        log.info("the client shows no permission request for a login: %s", refused)
        return None
    outcome = reply.get("outcome") if isinstance(reply, dict) else None
    return "shown" if isinstance(outcome, dict) and outcome.get("optionId") == DONE else "declined"
