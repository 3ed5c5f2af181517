"""The history of a session, told to a client that loads it: page by page, from the first turn on.

The next page is fetched while one is told, and no turn is told before the client has taken most of
the one before it. The newest turn comes complete; each tool call of the older ones has a budget of
bytes (see `past_updates`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from laneway.core.model import Event, TurnStarted
from laneway.core.ports import Page
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.history import past_updates

TURNS_A_PAGE = 20
"""Of one request: two pages are in memory at once, with everything that was printed in them."""


class HistoryReader(Protocol):
    """What is needed of an engine."""

    async def history(
        self, thread_id: str, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page: ...


class Replayed(msgspec.Struct, frozen=True):
    """For the log."""

    turns: int
    updates: int


async def replay(
    engine: HistoryReader,
    session_id: str,
    thread_id: str,
    client: EditorClient,
    line: ClientChannel,
    *,
    cwd: str = "",
    render: past_updates.Render = past_updates.updates,
) -> Replayed:
    """Tell everything; when this returns, whatever is said next comes behind it."""
    scene = past_updates.ReplayContext(thread_id, client, cwd)
    turns = updates = 0
    newest: list[Event] = []
    ahead = asyncio.ensure_future(_page(engine, thread_id, None))
    try:
        while True:
            page = await ahead
            if page.older is not None:
                ahead = asyncio.ensure_future(_page(engine, thread_id, page.older))
            for turn in _turns(page.events):
                # The one before is told when another is there: only then is it not the newest.
                updates += await _tell(newest, scene, line, session_id, render, is_whole=False)
                turns, newest = turns + 1, turn
            if page.older is None:
                break
    finally:
        ahead.cancel()
        await asyncio.gather(ahead, return_exceptions=True)
    updates += await _tell(newest, scene, line, session_id, render, is_whole=True)
    return Replayed(turns, updates)


async def _page(engine: HistoryReader, thread_id: str, cursor: str | None) -> Page:
    return await engine.history(thread_id, cursor, TURNS_A_PAGE, oldest_first=True)


def _turns(events: Iterable[Event]) -> Iterator[list[Event]]:
    turn: list[Event] = []
    for event in events:
        if isinstance(event, TurnStarted) and turn:
            yield turn
            turn = []
        turn.append(event)
    if turn:
        yield turn


async def _tell(
    turn: list[Event],
    scene: past_updates.ReplayContext,
    line: ClientChannel,
    session_id: str,
    render: past_updates.Render,
    *,
    is_whole: bool,
) -> int:
    if not turn:
        return 0
    count = 0
    for event in turn:
        for update in render(event, scene, is_whole=is_whole):
            line.update(session_id, update)
            count += 1
    await line.writable()
    return count
