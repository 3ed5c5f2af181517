"""`laneway sessions stop`: cancels the turns of a live session in another process, or closes it."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any, TypeVar

import msgspec

from laneway.base.errors import LanewayError, RemoteError, UsageError, WireBroken
from laneway.base.plain import plain_code
from laneway.cli.live_sessions import add_who, find
from laneway.cli.stores import open_store
from laneway.core.named.session import ClosedSession
from laneway.doors.local.client import connect
from laneway.doors.local.scan import LiveSession
from laneway.doors.local.shapes import CLOSE, NOT_HERE, STOP, Stopped

EPILOG = """\
Cancels the running turn and the queued ones; their callers get an answer, and the session can
be used again. With --close the session itself is ended, as `agent_close` does: its
name becomes free, and it can be resumed.

exit codes: 0 done, or there was nothing to stop, 1 it did not stop in time or its process does
            not answer, 2 there is no such live session

  laneway sessions stop reviewer
  laneway sessions stop reviewer --close
"""

STOP_S = 20.0
"""For the answer: the session itself gives up on a stuck turn after ten seconds."""
CLOSE_S = 40.0
"""For the answer: ten seconds for a summary, some for Codex to release the thread."""

T = TypeVar("T")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Stop what a live session of another process is doing."
    parser.epilog = EPILOG
    add_who(parser)
    parser.add_argument("--close", action="store_true", default=False, help="end the session, too")
    parser.set_defaults(run=lambda options: asyncio.run(stop(options)))


async def stop(options: argparse.Namespace) -> int:
    session = await find(open_store(options.team), options.who)
    if options.close:
        ended = await ask(session, CLOSE, ClosedSession, CLOSE_S)
        report(options, ended, closed_text(ended))
        return 0
    stopped = await ask(session, STOP, Stopped, STOP_S)
    report(options, stopped, stopped_text(stopped))
    return 0 if stopped.is_stopped else 1


async def ask(session: LiveSession, method: str, reply: type[T], limit_s: float) -> T:
    try:
        async with asyncio.timeout(limit_s), connect(session.socket.path) as client:
            return await client.call(method, {"agent_id": session.info.agent_id}, reply=reply)
    except TimeoutError:
        raise WireBroken(
            f"Process {session.socket.pid} did not answer within {limit_s:g} s. It may be stopped or very "
            "busy: try again, or end it."
        ) from None
    except RemoteError as refused:
        raise refusal(refused) from refused
    except WireBroken:
        raise WireBroken(
            f"Process {session.socket.pid} ended meanwhile, and {session.info.identity} with it."
        ) from None


def refusal(refused: RemoteError) -> LanewayError:
    if refused.code == NOT_HERE:
        return UsageError("The session ended meanwhile: see `laneway sessions`.")
    return LanewayError(refused.message)


def report(options: argparse.Namespace, data: Any, text: str) -> None:
    print(json.dumps(msgspec.to_builtins(data)) if options.json else plain_code(text))


def stopped_text(stopped: Stopped) -> str:
    if stopped.was != "busy":
        return f"{stopped.identity} is {stopped.was}: there was nothing to stop."
    if stopped.is_stopped:
        return f"{stopped.identity} was stopped."
    return f"{stopped.identity} was asked to stop and has not stopped yet."


def closed_text(ended: ClosedSession) -> str:
    text = f"{ended.identity} ({ended.agent_id}) is closed."
    return f"{text} What it reported: `laneway summary {ended.agent_id}`." if ended.summary else text
