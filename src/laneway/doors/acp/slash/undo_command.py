"""`/undo`: which turn is taken back, and in which order the conversation and the files change.

The files are looked at before, and changed after, the conversation: a refusal changes nothing. From the
call that takes the turn out of the conversation on, all is one piece that no cancel tears: a cancel is
heard when the person has been told what was done. A turn that Codex cannot take back (it keeps no
beginning of a cancelled review) is passed over by the next `/undo`. What is done to files is in `undo`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from laneway.base.errors import EngineRefused
from laneway.doors.acp.faults import is_unknown_method
from laneway.doors.acp.slash import command_words as words
from laneway.doors.acp.slash import undo as edits
from laneway.doors.acp.slash.desk import Desk, Invocation
from laneway.doors.acp.slash.undo import LastTurn
from laneway.wire.git import in_thread

TAKE_BACK_S = 20.0
"""Seconds for Codex to take a turn back; it takes a hundredth of one. Nobody can cancel meanwhile."""
MAX_LISTED_TURNS = 50
"""Of those that Codex names, newest first: more than anybody has had refused in a row."""


async def run(desk: Desk, invocation: Invocation) -> str:
    return await undo(desk)


async def undo(desk: Desk, *, timeout_s: float = TAKE_BACK_S) -> str:
    last = await _last_turn(desk)
    if last is None:
        await desk.say(f"There is no {'other turn to undo' if desk.last_turn else 'turn to undo yet'}.")
        return "end_turn"
    found: edits.Outcome | None = None
    if last.diff:
        found = await in_thread(edits.check, last.diff, desk.cwd)
    elif last.diff is None and (last.changes or last is not desk.last_turn):
        found = edits.Left("it is not known what it edited: that is only kept while a session is open")
    await _untorn(_take_back(desk, last, found, timeout_s))
    return "end_turn"


async def _untorn(work: Coroutine[Any, Any, None]) -> None:
    """Wait for all of it. A cancel that comes meanwhile is heard at its end."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as cancel:
            cancelled = cancel
    task.result()
    if cancelled is not None:
        raise cancelled


async def _take_back(desk: Desk, last: LastTurn, found: edits.Outcome | None, timeout_s: float) -> None:
    """Out of the conversation, out of the files, and tell. Codex has `timeout_s`, git its own limits."""
    try:
        async with asyncio.timeout(timeout_s):
            await _revert(desk, last.turn_id)
    except TimeoutError:
        await desk.say(words.unanswered(timeout_s))
        return
    except EngineRefused as refusal:
        await desk.say(_refused(desk, last, refusal))
        return
    desk.forget_turn(last.turn_id)
    if isinstance(found, edits.Plan):
        why = await asyncio.to_thread(edits.put_back, found, desk.cwd)
        await desk.say(words.undone(found.names, why))
    else:
        await desk.say(words.undone((), found.why if found else ""))


def _refused(desk: Desk, last: LastTurn, refusal: EngineRefused) -> str:
    # Codex has no code for it. But it names the turn if it is this one that it cannot take back: another
    # try will not help then. All else may be over by the next one.
    if last.turn_id not in refusal.message:
        return words.refused("undo", refusal)
    desk.forget_turn(last.turn_id)
    return words.not_undone(refusal.message, has_edits=bool(last.changes or last.diff))


# ── asking Codex ───────────────────────────────────────────────────────────


async def _last_turn(desk: Desk) -> LastTurn | None:
    seen = desk.last_turn
    if seen is not None and not seen.is_settled:
        return seen
    older = await _turns(desk)
    if seen is not None and seen.turn_id in older:
        older = older[older.index(seen.turn_id) + 1 :]
    return LastTurn(older[0]) if older else None


async def _turns(desk: Desk) -> list[str]:
    """Of a session that was taken up again, newest first: no turn of it has been seen."""
    asked = {
        "threadId": desk.thread_id,
        "limit": MAX_LISTED_TURNS,
        "sortDirection": "desc",
        "itemsView": "notLoaded",
    }
    try:
        turns = (await desk.codex("thread/turns/list", asked)).get("data") or []
    except EngineRefused:
        return []  # so Codex says it of a thread without any turn
    return [str(turn["id"]) for turn in turns]


async def _revert(desk: Desk, turn_id: str) -> None:
    try:
        await desk.codex("thread/revert", {"threadId": desk.thread_id, "beforeTurnId": turn_id})
    except EngineRefused as refusal:
        if not is_unknown_method(refusal):
            raise
        await desk.codex("thread/rollback", {"threadId": desk.thread_id, "numTurns": 1})
