"""Functions for a program of your own that has lanes: which lane a text names, which one waits, run a turn.

They work on any session object with the members of `LaneSession`. Laneway's own conversations do not use
them: they have rules of their own (several messages, questions, restarts) and meet a plugin through
`laneway.lanes.adapter`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

from laneway.lanes.protocol import LaneInput, LanePlugin, LaneSession
from laneway.lanes.registry import get_lane_class
from laneway.lanes.words import words_of

MAX_CONTEXT_CHARS = 3_900
"""Of the summaries that wait for the leading agent; the oldest are cut first."""
STOP_S = 10.0
"""For a lane that failed, to stop."""

_COMMAND = re.compile(r"/([^\s/@]+)(?:@(\S*))?(?=\s|\Z)")
_log = logging.getLogger(__name__)
_tasks: set[asyncio.Task[Any]] = set()
"""The event loop itself only holds tasks weakly, and a session holds the latest one."""


def parse_lane_command(text: str, own_name: str | None = None) -> tuple[str, str] | None:
    """The command of a registered lane that the text begins with, and the rest; else none.

    `/codex@name` is a command for the bot of that name: for us if that is `own_name`, or none is given.
    """
    match = _COMMAND.match(text)
    if match is None:
        return None
    command, bot = match[1].lower(), match[2]
    if bot is not None and own_name is not None and bot.lower() != own_name.lower():
        return None
    if get_lane_class(command) is None:
        return None
    return command, text[match.end() :].strip()


def get_active_lane(session: LaneSession) -> LanePlugin | None:
    """The lane that waits for an answer: the one whose turn runs, else the only one that waits.

    None if several wait and it is unclear which of them is meant. Ask this after control commands and
    lane commands, so that `/stop` is never an answer.
    """
    waiting: dict[str, LanePlugin] = {
        command: lane for command, lane in session.lanes.items() if lane.wants_user_input
    }
    if session.active_lane in waiting:
        return waiting[session.active_lane]
    return next(iter(waiting.values())) if len(waiting) == 1 else None


def start_lane_task(
    session: LaneSession,
    command: str,
    input: LaneInput,  # noqa: A002  the name is part of the contract
) -> asyncio.Task[None] | None:
    """Begin a turn of a lane as a task of the session; none if there is no such lane.

    The lane is started with its first turn. It begins when the session's current task has ended: interrupt
    that first if it shall not be waited for.
    """
    cls = get_lane_class(command)
    if cls is None:
        return None
    command = command.lower()
    before = session.current_task
    task = asyncio.create_task(_turn(session, command, cls, input, before))
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    task.add_done_callback(lambda done: _release(session, done))
    session.current_task = task
    session.active_lane = command
    return task


def _release(session: LaneSession, task: asyncio.Task[Any]) -> None:
    # A turn that was interrupted may end after the next one has begun: that one's state is not its own.
    if session.current_task is task:
        session.current_task = None
        session.active_lane = None


async def _turn(
    session: LaneSession,
    command: str,
    cls: type[LanePlugin],
    words: LaneInput,
    before: asyncio.Task[Any] | None,
) -> None:
    if before is not None and before is not asyncio.current_task() and not before.done():
        await asyncio.wait({before})
    platform = session.get_platform()
    if platform is None:
        return
    lane: LanePlugin | None = session.lanes.get(command)
    if lane is None:
        try:
            lane = cls()
        except Exception as error:  # noqa: BLE001  a plugin's failure is told to the user
            await platform.send_message(f"Failed to start {command}: {words_of(error)}")
            return
        try:
            await lane.start(cwd=session.cwd, platform=platform, formatter=session.get_formatter())
        except Exception as error:  # noqa: BLE001  as above
            await _stop(command, lane)
            await platform.send_message(f"Failed to start {command}: {words_of(error)}")
            return
        except asyncio.CancelledError:
            await _stop(command, lane)
            raise
        session.lanes[command] = lane
    try:
        summary = await lane.run_turn(words)
    except Exception as error:  # noqa: BLE001  as above
        session.lanes.pop(command, None)
        await _stop(command, lane)
        await platform.send_message(f"Lane {command} error: {words_of(error)}")
        return
    if summary:
        session.lane_context_prefix = _joined(session.lane_context_prefix, summary)


def _joined(before: str | None, summary: str) -> str:
    """Several turns add up: each of them is news to the agent that leads."""
    joined = f"{before}\n\n{summary}" if before else summary
    return joined if len(joined) <= MAX_CONTEXT_CHARS else f"…{joined[1 - MAX_CONTEXT_CHARS :]}"


async def _stop(command: str, lane: LanePlugin) -> None:
    try:
        async with asyncio.timeout(STOP_S):
            await lane.stop()
    except Exception as error:  # noqa: BLE001  it is given up anyway
        _log.warning("lane %s could not be stopped: %s", command, words_of(error))
