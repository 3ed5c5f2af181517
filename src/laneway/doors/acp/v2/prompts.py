"""Serves a prompt of ACP 2: answered when it is in the conversation, and run on after that answer.

A prompt that waits behind others is not in the conversation yet: it is answered when the queue has
reached it and Codex has recorded it. Its stop reason is sent with the session's state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from laneway.base.errors import EngineCannot, EngineRefused, LanewayError, NoTurn, RemoteError
from laneway.base.ids import new_id
from laneway.commands import slash
from laneway.core.ports import Part
from laneway.core.prompt_queue import QueuePlace
from laneway.doors.acp.faults import fault
from laneway.doors.acp.sessions.editor_session import EditorSession
from laneway.doors.acp.v2.pending_prompts import MessageId, not_recorded
from laneway.doors.acp.v2.updates_v2 import UpdatesV2
from laneway.wire.messages import INTERNAL_ERROR

ToRemoteError = Callable[[LanewayError], Awaitable[RemoteError]]
"""Converts a failure into the error for the client."""


async def prompt(
    session: EditorSession, sink: UpdatesV2, blocks: Any, to_remote_error: ToRemoteError
) -> dict[str, Any]:
    """Answer a prompt. It joins the queue before this first waits."""
    parts = session.parts(blocks)
    if session.prompts.may_steer(parts):
        steered_id = await _steer(session, sink, parts)
        if steered_id is not None:
            return {"messageId": steered_id}
    message_id: MessageId = asyncio.get_running_loop().create_future()
    place = session.queue.join()
    served = _ServedPrompt(session, sink, parts, blocks, message_id)
    session.spawn(served.run(place, to_remote_error))
    try:
        return {"messageId": await message_id}
    except asyncio.CancelledError:
        session.prompts.withdraw(place)
        raise


async def _steer(session: EditorSession, sink: UpdatesV2, parts: tuple[Part, ...]) -> str | None:
    """Put a prompt into the running turn; returns its message id, or none if the turn takes no prompts."""
    ticket = new_id("steer")
    message_id = sink.pending_prompts.add(ticket)
    try:
        await session.session.steer(parts, ticket=ticket)
    except LanewayError as refused:
        sink.pending_prompts.remove(ticket)
        if not isinstance(refused, NoTurn | EngineRefused | EngineCannot):
            raise
        return None
    return await message_id


class _ServedPrompt:
    """One prompt, from the queue to its end."""

    def __init__(
        self,
        session: EditorSession,
        sink: UpdatesV2,
        parts: tuple[Part, ...],
        blocks: Any,
        message_id: MessageId,
    ) -> None:
        self._session = session
        self._sink = sink
        self._parts = parts
        self._blocks = blocks
        self._message_id = message_id
        self._has_begun = False

    async def run(self, place: QueuePlace, to_remote_error: ToRemoteError) -> None:
        stop = "error"
        error: RemoteError | None = fault(INTERNAL_ERROR, "Laneway failed to serve this prompt.")
        try:
            stop = await self._session.prompts.serve(self._parts, place, self._begin)
            error = None
        except LanewayError as problem:
            error = await to_remote_error(problem)
        finally:
            self._end(stop, error)

    def _begin(self) -> None:
        """The queue has reached the prompt. A command or an answer is put into the conversation by us."""
        self._has_begun = True
        is_ours = slash.find(self._parts) is not None or self._session.prompts.is_asking
        self._sink.pending_prompts.begin(None if is_ours else self._message_id)
        if is_ours:
            self._send_own()

    def _send_own(self) -> None:
        own_id = self._sink.send_user_message(self._blocks)
        if not self._message_id.done():
            self._message_id.set_result(own_id)

    def _end(self, stop: str, error: RemoteError | None) -> None:
        if self._has_begun:
            if error is None and stop != "cancelled" and not self._message_id.done():
                self._send_own()  # this Codex does not tell when it records a message
            self._sink.end(stop, error, is_asking=self._session.prompts.is_asking)
        elif not self._message_id.done():
            self._message_id.set_exception(error or not_recorded(stop))
