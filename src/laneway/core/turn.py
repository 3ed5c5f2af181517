"""A turn from the caller's side: its events, its result, and how to cancel it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from laneway.base.errors import LanewayError
from laneway.core.letters import Stop
from laneway.core.model import DECLINE, Answer, Failure, Status, TurnDone
from laneway.core.ports import Part, TurnSpec
from laneway.core.subscription import Subscription


class TurnResult(msgspec.Struct, frozen=True):
    """How a turn ended. `stopped_by` says why it ended early, if it did."""

    status: Status
    text: str = ""
    failure: Failure | None = None
    stopped_by: Stop | None = None
    turn_id: str | None = None


class Turn:
    """A requested turn, returned by `Session.say` at once: read its events, await its result, or neither."""

    def __init__(self, ticket: str, cancel: Callable[[Stop], None], *, merge: bool = True) -> None:
        self.ticket = ticket
        self.events = Subscription(merge=merge)
        self._cancel = cancel
        self._settled: asyncio.Future[TurnResult] = asyncio.get_running_loop().create_future()
        # A caller may only read the events and never ask for the result.
        self._settled.add_done_callback(lambda settled: settled.cancelled() or settled.exception())

    async def result(self) -> TurnResult:
        """How it ended. Raises only if the turn never ran."""
        return await asyncio.shield(self._settled)

    def cancel(self, why: Stop = "cancel") -> None:
        """Cancel the turn: remove it from the queue, or interrupt it. The result still comes."""
        self._cancel(why)

    def on_settled(self, then: Callable[[TurnResult | LanewayError], None]) -> None:
        """Call `then` with the outcome, whether or not anybody awaits it."""

        def tell(settled: asyncio.Future[TurnResult]) -> None:
            error = settled.exception()
            then(error if isinstance(error, LanewayError) else settled.result())

        self._settled.add_done_callback(tell)

    def settle(self, outcome: TurnResult | LanewayError) -> None:
        """Only the session calls this, once."""
        self.events.close()
        if self._settled.done():
            return
        if isinstance(outcome, LanewayError):
            self._settled.set_exception(outcome)
        else:
            self._settled.set_result(outcome)


class Request:
    """The session's data about a ticket, which the rules need not know."""

    __slots__ = ("answer", "done", "error", "is_begun", "parts", "spec", "turn")

    def __init__(self, turn: Turn, spec: TurnSpec | None = None) -> None:
        self.turn = turn
        self.spec = spec
        self.answer: Answer = DECLINE
        self.parts: tuple[Part, ...] = ()
        self.is_begun = False
        self.done: TurnDone | None = None
        self.error: LanewayError | None = None

    def result(self, stop: Stop | None) -> TurnResult:
        done = self.done
        if done is None:
            return TurnResult(status="interrupted", stopped_by=stop)
        return TurnResult(
            status=done.status,
            text=done.text,
            failure=done.failure,
            # Who closes declines what was asked: a turn that ends well after that was still cut short.
            stopped_by=None if done.status == "completed" and stop != "close" else stop,
            turn_id=done.turn_id,
        )
