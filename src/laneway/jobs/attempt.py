"""One attempt of a job: a worker under its guardian, from its start until every process of it is gone.

Feeds the prompt, hands each line of output on, and stops the worker when it is told to, has been silent for
too long, runs for too long, or has used up its tokens. Used by the supervisor only.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import msgspec

from laneway.wire import guardian
from laneway.wire.child import Child, Exit

INTERRUPT_S = 0.5
"""From SIGINT to SIGTERM. Only after SIGINT Codex writes down what it has used, within a tenth of this."""
TERM_S = 2.0
"""From SIGTERM to SIGKILL, where killing is allowed."""
LOOK_S = 0.05
"""Between two looks at orders and clocks: what a cancellation waits at most."""
TOKENS_S = 0.5
"""Between two looks at what the worker has used."""
MAX_LINE_BYTES = 64 * 1024 * 1024

Order: TypeAlias = Literal["soft", "force"]
"""How a job is cancelled: `soft` never kills, however long it takes."""
Stop: TypeAlias = Literal["cancelled", "wall", "stall", "budget"]


class Worker(Protocol):
    """What a worker's output means."""

    def feed(self, line: bytes) -> None: ...

    @property
    def last_sign_of_life(self) -> float:
        """On the loop's clock."""
        ...

    def tokens(self) -> int:
        """What the job has used so far, all attempts together. Blocking, but short."""
        ...


class Bounds(msgspec.Struct, frozen=True):
    """When an attempt is stopped; on the loop's clock."""

    wall_at: float
    stall_s: float
    token_budget: int | None


class AttemptEnd(msgspec.Struct, frozen=True):
    """How an attempt ended: the worker's exit, the end of its standard error, and why it was stopped."""

    exit: Exit
    stderr: str
    stopped: Stop | None


class Attempt:
    """Runs one worker. `order` tells whether the job is to be cancelled; it is called all the time."""

    def __init__(self, worker: Worker, bounds: Bounds, order: Callable[[], Order | None]) -> None:
        self._worker = worker
        self._bounds = bounds
        self._order = order
        self._stopped: Stop | None = None
        self._tokens_at = 0.0
        """When to look at the tokens again."""
        self._line = bytearray()
        self._is_too_long = False

    async def run(
        self,
        argv: Sequence[str],
        prompt: bytes,
        environment: Mapping[str, str],
        cwd: Path,
        locks: Sequence[int],
        on_start: Callable[[], None],
    ) -> AttemptEnd:
        """`OSError` if the program cannot be started."""
        child = await Child.spawn(
            argv, on_stdout=self._read, env=environment, cwd=cwd, kind=guardian.WORKER, held=locks
        )
        try:
            child.write(prompt)  # first: the worker works while we note that it does
            child.end_input()
            on_start()
            stopping = asyncio.ensure_future(self._stop_in_time(child))
            try:
                how = await child.wait()
            finally:
                stopping.cancel()
                await asyncio.gather(stopping, return_exceptions=True)
        except BaseException:
            child.kill()
            await child.wait()
            raise
        if how == Exit():
            # Somebody killed the guardian. What the worker had started is ours now, as its subreaper.
            guardian.kill_tree(os.getpid())
        if self._line:
            self._worker.feed(bytes(self._line))
        return AttemptEnd(how, child.stderr_tail, self._stopped)

    def _read(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            if not self._is_too_long:
                self._worker.feed(bytes(self._line + line))
            self._line.clear()
            self._is_too_long = False
        self._line += rest
        if len(self._line) > MAX_LINE_BYTES:
            self._line.clear()
            self._is_too_long = True

    # ── stopping ───────────────────────────────────────────────────────────

    async def _stop_in_time(self, child: Child) -> None:
        why = self._stopped = await self._wait_for_reason()
        may_kill = why != "cancelled" or self._order() == "force"
        if why == "cancelled" and may_kill:
            child.kill()
            return
        child.interrupt()
        await self._wait(child, INTERRUPT_S)
        child.ask_to_end(may_kill=may_kill)
        if may_kill:
            await self._wait(child, TERM_S)
        else:
            await self._wait_for_force()
        child.kill()

    async def _wait_for_reason(self) -> Stop:
        while True:
            why = await self._why()
            if why is not None:
                return why
            await asyncio.sleep(LOOK_S)

    async def _wait_for_force(self) -> None:
        """After a soft cancellation only another order kills, or the end of the job's time."""
        while True:
            if self._order() == "force" or self._is_over():
                return
            await asyncio.sleep(LOOK_S)

    async def _why(self) -> Stop | None:
        if self._order() is not None:
            return "cancelled"
        if self._is_over():
            return "wall"
        now = asyncio.get_running_loop().time()
        if now - self._worker.last_sign_of_life >= self._bounds.stall_s:
            return "stall"
        return "budget" if await self._is_spent(now) else None

    def _is_over(self) -> bool:
        return asyncio.get_running_loop().time() >= self._bounds.wall_at

    async def _is_spent(self, now: float) -> bool:
        if now < self._tokens_at:
            return False
        self._tokens_at = now + TOKENS_S
        tokens = await asyncio.to_thread(self._worker.tokens)
        budget = self._bounds.token_budget
        return budget is not None and tokens > budget

    async def _wait(self, child: Child, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await child.wait()
        except TimeoutError:
            pass
