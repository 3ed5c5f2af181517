"""`laneway sessions watch`: see a live session of another process at work."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

import msgspec

from laneway.base.errors import LanewayError, RemoteError, WireBroken
from laneway.base.plain import plain
from laneway.cli.kept import open_store
from laneway.cli.live_sessions import ANSWER_S, Found, add_who, find
from laneway.cli.terminal import Screen, Style, show_question
from laneway.core.model import (
    Asked,
    Closed,
    EngineBack,
    EngineGone,
    Event,
    Notice,
    TurnDone,
    TurnStarted,
    UserSaid,
    Withdrawn,
)
from laneway.doors.local.call import visit
from laneway.doors.local.retold import event_of
from laneway.doors.local.shapes import (
    EVENT,
    NOT_HERE,
    SNAPSHOT,
    TOO_MANY,
    WATCH,
    Seen,
    Snapshot,
    Told,
    Watched,
)
from laneway.wire.messages import Raw

EPILOG = """\
Shows what happens from now on: questions to the model, its work, its answers. You only look:
leaving with Ctrl-C, or a slow terminal, does not touch the session.

exit codes: 0 the session was closed, 1 its process ended or does not answer,
            2 there is no such live session, 130 you left

  laneway sessions watch reviewer
  laneway sessions watch reviewer --json | grep turn_done
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Watch a live session of another process."
    parser.epilog = EPILOG
    add_who(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    try:
        return asyncio.run(watch(options))
    except KeyboardInterrupt:
        print("\nlaneway: you have left; the session goes on", file=sys.stderr)
        return 130


async def watch(options: argparse.Namespace) -> int:
    found = await find(open_store(options.team), options.who)
    window = Lines() if options.json else Window()
    try:
        async with asyncio.timeout(ANSWER_S) as deadline:
            ears = Ears(window, deadline)
            async with visit(found.spot.path, ears.hear) as visitor:
                await visitor.call(WATCH, {"agent_id": found.seen.agent_id}, reply=Watched)
    except TimeoutError:
        raise WireBroken(f"Process {found.spot.pid} did not answer within {ANSWER_S:g} s.") from None
    except RemoteError as refused:
        if refused.code == NOT_HERE:  # closed since we found it
            window.end(found.seen)
            return 0
        if refused.code == TOO_MANY:
            raise LanewayError(refused.message) from None
        raise gone(found) from None
    except WireBroken:
        raise gone(found) from None
    window.end(found.seen)
    return 0


class Ears:
    """What the process tells, until it answers. Only the first word has a deadline."""

    def __init__(self, window: Window | Lines, deadline: asyncio.Timeout) -> None:
        self._window = window
        self._deadline = deadline
        self._lost = 0

    def hear(self, method: str, params: Raw) -> None:
        if method == SNAPSHOT:
            self._deadline.reschedule(None)
            self._window.begin(msgspec.json.decode(params, type=Snapshot))
        elif method == EVENT:
            told = msgspec.json.decode(params, type=Told)
            if told.lost > self._lost:
                self._window.miss(told.lost - self._lost)
                self._lost = told.lost
            self._window.show(told.event)


def gone(found: Found) -> WireBroken:
    return WireBroken(
        f"The process of {found.seen.identity} ({found.spot.pid}) has ended. "
        "`laneway sessions` shows what became of its sessions."
    )


class Lines:
    """One JSON object a line, as the events come."""

    def begin(self, snapshot: Snapshot) -> None:
        self._print({"event": "session", **msgspec.to_builtins(snapshot.session)})
        for question in snapshot.questions:
            self.show({"event": "asked", "question": msgspec.to_builtins(question)})

    def miss(self, count: int) -> None:
        self._print({"event": "lost", "count": count})

    def show(self, event: dict[str, Any]) -> None:
        self._print(event)

    def end(self, seen: Seen) -> None:
        pass  # the `closed` event has said so

    def _print(self, data: dict[str, Any]) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(data) + b"\n")
        sys.stdout.buffer.flush()


class Window:
    """For a person: the answers on standard output, all else on standard error."""

    def __init__(self) -> None:
        self._screen = Screen()
        self._style = Style(sys.stderr)
        self._asked: set[str] = set()

    def begin(self, snapshot: Snapshot) -> None:
        seen = snapshot.session
        where = " ".join(part for part in (seen.cwd, seen.branch and f"({seen.branch})") if part)
        self._note(self._style.bold(plain(f"{seen.identity}  {seen.state}  {seen.turns} turns  {where}")))
        about = f"  {seen.agent_id}  thread {seen.thread_id}  team {seen.team}  process {seen.pid}"
        self._note(self._style.dim(plain(about)))
        for question in snapshot.questions:
            self._show(Asked(question=question))

    def miss(self, count: int) -> None:
        self._note(self._style.yellow(f"  {count} events were lost: this terminal was too slow"))

    def show(self, told: dict[str, Any]) -> None:
        event = event_of(told)
        if event is not None:  # else a newer Laneway's, which this one cannot draw
            self._show(event)

    def end(self, seen: Seen) -> None:
        self._note(self._style.dim(f"session {plain(seen.agent_id)} was closed"))

    def _show(self, event: Event) -> None:
        style = self._style
        match event:
            case TurnStarted():
                self._note(style.dim("── a turn begins"))
            case UserSaid():
                self._note("\n".join(style.bold("» ") + line for line in plain(event.text).split("\n")))
            case Asked(question=question):
                self._asked.add(question.question_id)
                self._screen.end_line()
                show_question(question, sys.stderr, style)
                self._note(style.dim("    waits for an answer where the session was started"))
            case Withdrawn() if event.question_id in self._asked:
                self._asked.discard(event.question_id)
                how = "declined, because nobody decided in time" if event.is_declined else "settled"
                self._note(style.dim(f"  the question is {how}"))
            case TurnDone():
                self._screen.show(event)
                why = f": {plain(event.failure.message)}" if event.failure else ""
                self._note(style.dim(f"── the turn is {event.status}{why}"))
            case Notice(level="error", will_retry=False):
                self._note(style.red(f"  {plain(event.message)}"))
            case EngineGone():
                self._note(style.red(f"  Codex ended: {plain(event.how)}"))
            case EngineBack():
                self._note(style.dim("  Codex is back"))
            case Closed():
                pass  # said at the end
            case _:
                self._screen.show(event)

    def _note(self, text: str) -> None:
        self._screen.end_line()
        print(text, file=sys.stderr, flush=True)
