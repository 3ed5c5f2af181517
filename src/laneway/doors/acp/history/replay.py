"""Sends the history of a session to a client that loads it, page by page from the first turn on.

The next page is fetched while one is sent, and a turn is sent only when the client has read most of
the one before. The newest turn is sent complete; each tool call of the older ones has a budget of
bytes (see `past_updates`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from laneway.base.engines import CODEX
from laneway.core.model import Event, TurnStarted
from laneway.core.ports import Page
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.history import past_updates

TURNS_A_PAGE = 20
"""Turns in one request: two pages are in memory at once, with all output in them."""


class HistoryReader(Protocol):
    """The part of an engine that reads a thread's history."""

    async def history(
        self, thread_id: str, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page: ...


class Replayed(msgspec.Struct, frozen=True):
    """How much was replayed."""

    turns: int
    updates: int


async def replay(
    engine: HistoryReader,
    session_id: str,
    thread_id: str,
    client: EditorClient,
    channel: ClientChannel,
    *,
    cwd: str = "",
    render: past_updates.Render = past_updates.updates,
    engine_name: str = CODEX,
) -> Replayed:
    """Send all of the history; updates that are sent after this returns follow it."""
    context = past_updates.ReplayContext(thread_id, client, cwd, engine_name)
    turns = updates = 0
    newest: list[Event] = []
    next_page = asyncio.ensure_future(_page(engine, thread_id, None))
    try:
        while True:
            page = await next_page
            if page.older is not None:
                next_page = asyncio.ensure_future(_page(engine, thread_id, page.older))
            for turn in _turns(page.events):
                # A turn is sent when another follows it: only then is it known not to be the newest.
                updates += await _send_turn(newest, context, channel, session_id, render, is_whole=False)
                turns, newest = turns + 1, turn
            if page.older is None:
                break
    finally:
        next_page.cancel()
        await asyncio.gather(next_page, return_exceptions=True)
    updates += await _send_turn(newest, context, channel, session_id, render, is_whole=True)
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


async def _send_turn(
    turn: list[Event],
    context: past_updates.ReplayContext,
    channel: ClientChannel,
    session_id: str,
    render: past_updates.Render,
    *,
    is_whole: bool,
) -> int:
    if not turn:
        return 0
    count = 0
    for event in turn:
        for update in render(event, context, is_whole=is_whole):
            channel.update(session_id, update)
            count += 1
    await channel.writable()
    return count
