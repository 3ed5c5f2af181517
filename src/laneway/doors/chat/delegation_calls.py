"""Calls by which lanes of a conversation have given work to other lanes, until they get their results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from laneway.base.errors import LanewayError, UsageError
from laneway.base.ids import new_id
from laneway.doors.chat.conversation_letters import DelegationAsked, DelegationCancelled


class DelegationCalls:
    def __init__(self, post: Callable[[DelegationAsked | DelegationCancelled], None]) -> None:
        self._post = post
        self._calls: dict[str, asyncio.Future[str]] = {}

    async def call(self, caller: str, lane: str, task: str) -> str:
        """What the turn has done. Cancelled, it is interrupted."""
        call_id = new_id("call")
        result: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._calls[call_id] = result
        self._post(DelegationAsked(call_id=call_id, caller_lane=caller, lane=lane, task=task))
        try:
            return await result
        finally:
            if self._calls.pop(call_id, None) is not None:
                self._post(DelegationCancelled(call_id))

    def settle(self, call_id: str, result: str | LanewayError) -> None:
        call = self._calls.pop(call_id, None)
        if call is None or call.done():
            return  # it was cancelled meanwhile
        if isinstance(result, str):
            call.set_result(result)
        else:
            call.set_exception(result)

    def close(self) -> None:
        for call_id in list(self._calls):
            self.settle(call_id, UsageError("The conversation is being closed."))
