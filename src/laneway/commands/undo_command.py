"""The command `/undo`: takes the last turn out of the conversation, then reverts its edits in the files.

The files are checked before the conversation is changed and written after it, so a refusal of Codex
changes nothing. From the call that changes the conversation on, nothing is cancelled half-way: a cancel
takes effect once the user has been told what was done. A turn that Codex cannot take back (it keeps no
beginning of a cancelled review) is skipped by the next `/undo`. `undo` reverts the files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from laneway.base.errors import EngineRefused
from laneway.commands import texts
from laneway.commands import undo as edits
from laneway.commands.session import CommandSession, Invocation
from laneway.commands.undo import LastTurn
from laneway.core.offers import Undo
from laneway.wire.git import in_thread

TAKE_BACK_S = 20.0
"""Seconds that Codex has for it; it needs a hundredth of one. The user cannot cancel meanwhile."""


async def run(session: CommandSession, invocation: Invocation) -> None:
    await undo(session)


async def undo(session: CommandSession, *, timeout_s: float = TAKE_BACK_S) -> None:
    last = await _last_turn(session)
    if last is None:
        await session.say(f"There is no {'other turn to undo' if session.last_turn else 'turn to undo yet'}.")
        return
    check: edits.UndoCheck | None = None
    if last.diff:
        check = await in_thread(edits.check, last.diff, session.cwd)
    elif last.diff is None and (last.changes or last is not session.last_turn):
        reason = "it is not known what it edited: that is only kept while a session is open"
        check = edits.CannotRevert(reason)
    await _uncancelled(_take_back(session, last, check, timeout_s))


async def _uncancelled(work: Coroutine[Any, Any, None]) -> None:
    """Run it to its end; a cancel that comes meanwhile is raised after that."""
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
    session: CommandSession, last: LastTurn, check: edits.UndoCheck | None, timeout_s: float
) -> None:
    """Change the conversation, then the files, and report. Codex has `timeout_s`, git its own limits."""
    try:
        async with asyncio.timeout(timeout_s):
            await _revert(session, last.turn_id)
    except TimeoutError:
        await session.say(texts.unanswered(timeout_s, session.engine_name))
        return
    except EngineRefused as refusal:
        await session.say(_refused(session, last, refusal))
        return
    session.forget_turn(last.turn_id)
    if isinstance(check, edits.UndoPlan):
        reason = await asyncio.to_thread(edits.revert, check, session.cwd)
        await session.say(texts.undone(check.names, reason, session.engine_name))
    else:
        await session.say(texts.undone((), check.reason if check else "", session.engine_name))


def _refused(session: CommandSession, last: LastTurn, refusal: EngineRefused) -> str:
    # Codex has no error code for it, but names the turn if it can never take this one back: trying again
    # will not help then. Any other reason may have passed by the next try.
    if last.turn_id not in refusal.message:
        return texts.refused("undo", refusal)
    session.forget_turn(last.turn_id)
    return texts.not_undone(refusal.message, refusal.engine, has_edits=bool(last.changes or last.diff))


# ── asking the engine ──────────────────────────────────────────────────────


async def _last_turn(session: CommandSession) -> LastTurn | None:
    last = session.last_turn
    if last is not None and not last.is_settled:
        return last
    # The session was resumed: none of its turns ran in this process.
    undo = _undo_of(session)
    older = await session.call_engine(lambda: undo.turns(session.thread_id))
    if last is not None and last.turn_id in older:
        older = older[older.index(last.turn_id) + 1 :]
    return LastTurn(older[0]) if older else None


async def _revert(session: CommandSession, turn_id: str) -> None:
    undo = _undo_of(session)
    if not await session.call_engine(lambda: undo.take_back(session.thread_id, turn_id)):
        await session.call_engine(lambda: undo.take_back_last(session.thread_id), may_repeat=False)


def _undo_of(session: CommandSession) -> Undo:
    assert session.offers.undo is not None, "/undo is offered only with it"
    return session.offers.undo
