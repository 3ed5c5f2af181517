"""Answers of POST requests by their idempotency key: a request that is sent again is carried out once.

A browser that lost its connection does not know whether its request arrived, and sends it again.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from laneway.doors.page_parts import PageRefused, PageReply

MAX_KEPT = 1024
"""Answers that are kept: hours of a person's clicks."""
_KEY = re.compile(r"[A-Za-z0-9_-]{8,64}", re.ASCII)


class RepeatedPosts:
    def __init__(self, max_kept: int = MAX_KEPT) -> None:
        self._max_kept = max_kept
        self._answers: OrderedDict[str, tuple[str, asyncio.Future[PageReply]]] = OrderedDict()

    async def once(self, key: str | None, path: str, work: Callable[[], Awaitable[PageReply]]) -> PageReply:
        """Carry it out, unless this key was seen before: then the answer is the one of that time."""
        if key is None or not _KEY.fullmatch(key):
            raise PageRefused(400, "A POST carries an Idempotency-Key of 8 to 64 letters, digits, - and _")
        if key in self._answers:
            known_path, known = self._answers[key]
            if known_path != path:
                raise PageRefused(409, "This Idempotency-Key was used for something else")
            return await asyncio.shield(known)
        answer: asyncio.Future[PageReply] = asyncio.get_running_loop().create_future()
        self._answers[key] = (path, answer)
        try:
            reply = await work()
        except PageRefused as refusal:
            # Nothing was done: the same may be tried again.
            self._drop(key, answer, refusal)
            raise
        except BaseException:
            self._drop(key, answer, PageRefused(500, "It is not known whether this was carried out"))
            raise
        answer.set_result(reply)
        self._trim()
        return reply

    def _drop(self, key: str, answer: asyncio.Future[PageReply], problem: PageRefused) -> None:
        self._answers.pop(key, None)
        answer.set_exception(problem)
        answer.exception()  # nobody may be waiting for it

    def _trim(self) -> None:
        for key in [key for key, (_, answer) in self._answers.items() if answer.done()]:
            if len(self._answers) <= self._max_kept:
                return
            del self._answers[key]
