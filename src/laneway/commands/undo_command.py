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
from laneway.commands import undo as edits
from laneway.commands import words
from laneway.commands.session import CommandSession, Invocation
from laneway.commands.undo import LastTurn
from laneway.core.offers import Undo
from laneway.wire.git import in_thread

TAKE_BACK_S = 20.0
"""Seconds for Codex to take a turn back; it takes a hundredth of one. Nobody can cancel meanwhile."""


async def run(session: CommandSession, invocation: Invocation) -> None:
    await undo(session)


async def undo(session: CommandSession, *, timeout_s: float = TAKE_BACK_S) -> None:
    last = await _last_turn(session)
    if last is None:
        await session.say(f"There is no {'other turn to undo' if session.last_turn else 'turn to undo yet'}.")
        return
    found: edits.Outcome | None = None
    if last.diff:
        found = await in_thread(edits.check, last.diff, session.cwd)
    elif last.diff is None and (last.changes or last is not session.last_turn):
        found = edits.Left("it is not known what it edited: that is only kept while a session is open")
    await _untorn(_take_back(session, last, found, timeout_s))


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


async def _take_back(
    session: CommandSession, last: LastTurn, found: edits.Outcome | None, timeout_s: float
) -> None:
    """Out of the conversation, out of the files, and tell. Codex has `timeout_s`, git its own limits."""
    try:
        async with asyncio.timeout(timeout_s):
            await _revert(session, last.turn_id)
    except TimeoutError:
        await session.say(words.unanswered(timeout_s))
        return
    except EngineRefused as refusal:
        await session.say(_refused(session, last, refusal))
        return
    session.forget_turn(last.turn_id)
    if isinstance(found, edits.UndoPlan):
        why = await asyncio.to_thread(edits.put_back, found, session.cwd)
        await session.say(words.undone(found.names, why))
    else:
        await session.say(words.undone((), found.why if found else ""))


def _refused(session: CommandSession, last: LastTurn, refusal: EngineRefused) -> str:
    # Codex has no code for it. But it names the turn if it is this one that it cannot take back: another
    # try will not help then. All else may be over by the next one.
    if last.turn_id not in refusal.message:
        return words.refused("undo", refusal)
    session.forget_turn(last.turn_id)
    return words.not_undone(refusal.message, has_edits=bool(last.changes or last.diff))


# ── asking the engine ──────────────────────────────────────────────────────


async def _last_turn(session: CommandSession) -> LastTurn | None:
    seen = session.last_turn
    if seen is not None and not seen.is_settled:
        return seen
    # Of a session that was taken up again: no turn of it has been seen.
    undo = _undo_of(session)
    older = await session.awake(lambda: undo.turns(session.thread_id))
    if seen is not None and seen.turn_id in older:
        older = older[older.index(seen.turn_id) + 1 :]
    return LastTurn(older[0]) if older else None


async def _revert(session: CommandSession, turn_id: str) -> None:
    undo = _undo_of(session)
    if not await session.awake(lambda: undo.take_back(session.thread_id, turn_id)):
        await session.awake(lambda: undo.take_back_last(session.thread_id), may_repeat=False)


def _undo_of(session: CommandSession) -> Undo:
    assert session.offers.undo is not None, "there is no /undo without it"
    return session.offers.undo
