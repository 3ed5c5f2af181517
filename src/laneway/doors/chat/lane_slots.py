"""The lanes of one conversation: made when somebody asks what they can do, opened by their first turn.

A lane that was closed, or given up because it did not stop, is made anew when it is needed, and goes on
with its thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from laneway.base.errors import LanewayError
from laneway.core.background import TaskSet
from laneway.doors.chat.hosts import ConversationHost
from laneway.doors.chat.ports import LaneFactory
from laneway.lanes.contract import Lane

CLOSING_S = 15.0
"""For a lane to close: its processes are killed after less."""

log = logging.getLogger(__name__)


class LaneSlots:
    def __init__(
        self, factory: LaneFactory, cwd: Path, make_host: Callable[[str], ConversationHost], tasks: TaskSet
    ) -> None:
        self._factory = factory
        self._cwd = cwd
        self._make_host = make_host
        self._tasks = tasks
        self._made: dict[str, Lane] = {}
        self._hosts: dict[str, ConversationHost] = {}
        """Of lanes that are open."""
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._opening: dict[str, asyncio.Lock] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return self._factory.names

    def get(self, name: str) -> Lane:
        """The lane, which may not be open. Raises `KeyError`."""
        if name not in self._made:
            self._made[name] = self._factory.make(name, self._cwd)
        return self._made[name]

    def opened(self, name: str) -> Lane | None:
        return self._made[name] if name in self._hosts else None

    async def open(self, name: str, resume: str | None) -> Lane:
        async with self._opening.setdefault(name, asyncio.Lock()):
            if name in self._closing:
                await asyncio.wait((self._closing[name],))
            lane = self.get(name)
            if name in self._hosts:
                return lane
            host = self._make_host(name)
            try:
                await lane.open(self._cwd, host, resume=resume if lane.abilities.resumes else None)
            except BaseException:
                host.cut_off()
                self._made.pop(name, None)
                self._tasks.spawn(_close(lane), f"closing {name}")
                raise
            self._hosts[name] = host
            return lane

    def abandon(self, name: str) -> asyncio.Task[None] | None:
        """Close a lane that counts as gone from now on."""
        host = self._hosts.pop(name, None)
        lane = self._made.pop(name, None)
        if host is not None:
            host.cut_off()
        return None if lane is None else self._close_soon(name, lane)

    async def close(self) -> None:
        """Close all of them; what they tell about their ends is heard."""
        for name in list(self._hosts):
            del self._hosts[name]
            self._close_soon(name, self._made.pop(name))
        while self._closing:
            await asyncio.wait(tuple(self._closing.values()))

    def _close_soon(self, name: str, lane: Lane) -> asyncio.Task[None]:
        task = self._closing[name] = self._tasks.spawn(_close(lane), f"closing {name}")
        task.add_done_callback(lambda done: self._forget_closing(name, done))
        return task

    def _forget_closing(self, name: str, task: asyncio.Task[None]) -> None:
        if self._closing.get(name) is task:
            del self._closing[name]


async def _close(lane: Lane) -> None:
    try:
        async with asyncio.timeout(CLOSING_S):
            await lane.close()
    except TimeoutError:
        log.error("the lane %s did not close within %g s", lane.name, CLOSING_S)
    except LanewayError as problem:
        log.warning("the lane %s did not close: %s", lane.name, problem)
