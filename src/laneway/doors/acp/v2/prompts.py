"""A prompt of protocol 2: answered when it is in the conversation, and served on behind that answer.

A prompt that must wait for others is not in the conversation yet: it is answered when its turn has
come and Codex has recorded it. How it went is told by the session's state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from laneway.base.errors import EngineRefused, LanewayError, NoTurn, RemoteError
from laneway.base.ids import new_id
from laneway.commands import slash
from laneway.core.ports import Part
from laneway.core.prompt_queue import QueuePlace
from laneway.doors.acp.faults import INTERNAL_ERROR, fault
from laneway.doors.acp.sessions.editor_session import EditorSession
from laneway.doors.acp.v2.pending_prompts import Inserted, not_taken
from laneway.doors.acp.v2.updates_v2 import UpdatesV2

Refusal = Callable[[LanewayError], Awaitable[RemoteError]]
"""What a client is told of an error."""


async def prompt(
    session: EditorSession, narrator: UpdatesV2, blocks: Any, refusal: Refusal
) -> dict[str, Any]:
    """Answer a prompt. It has its place in the queue before this first waits."""
    parts = session.parts(blocks)
    if session.prompts.may_steer(parts):
        message_id = await _steered(session, narrator, parts)
        if message_id is not None:
            return {"messageId": message_id}
    inserted: Inserted = asyncio.get_running_loop().create_future()
    place = session.queue.join()
    served = _Served(session, narrator, parts, blocks, inserted)
    session.go_on(served.run(place, refusal))
    try:
        return {"messageId": await inserted}
    except asyncio.CancelledError:
        session.prompts.withdraw(place)
        raise


async def _steered(session: EditorSession, narrator: UpdatesV2, parts: tuple[Part, ...]) -> str | None:
    """The id of a prompt that the running turn has taken; none if that takes no prompts."""
    ticket = new_id("steer")
    inserted = narrator.inserts.join(ticket)
    try:
        await session.session.steer(parts, ticket=ticket)
    except LanewayError as refused:
        narrator.inserts.leave(ticket)
        if not isinstance(refused, NoTurn | EngineRefused):
            raise
        return None
    return await inserted


class _Served:
    """One prompt, from its turn in the queue to its end."""

    def __init__(
        self,
        session: EditorSession,
        narrator: UpdatesV2,
        parts: tuple[Part, ...],
        blocks: Any,
        inserted: Inserted,
    ) -> None:
        self._session = session
        self._narrator = narrator
        self._parts = parts
        self._blocks = blocks
        self._inserted = inserted
        self._has_begun = False

    async def run(self, place: QueuePlace, refusal: Refusal) -> None:
        stop = "error"
        error: RemoteError | None = fault(INTERNAL_ERROR, "Laneway failed to serve this prompt.")
        try:
            stop = await self._session.prompts.served(self._parts, place, self._begin)
            error = None
        except LanewayError as problem:
            error = await refusal(problem)
        finally:
            self._end(stop, error)

    def _begin(self) -> None:
        """Its turn has come. What Codex is not told as it stands is in the conversation by our own word."""
        self._has_begun = True
        is_own = slash.find(self._parts) is not None or self._session.prompts.is_asking
        self._narrator.inserts.begin(None if is_own else self._inserted)
        if is_own:
            self._insert()

    def _insert(self) -> None:
        message_id = self._narrator.insert(self._blocks)
        if not self._inserted.done():
            self._inserted.set_result(message_id)

    def _end(self, stop: str, error: RemoteError | None) -> None:
        if self._has_begun:
            if error is None and stop != "cancelled" and not self._inserted.done():
                self._insert()  # a Codex that does not tell when it records
            self._narrator.end(stop, error, is_asking=self._session.prompts.is_asking)
        elif not self._inserted.done():
            self._inserted.set_exception(error or not_taken(stop))
