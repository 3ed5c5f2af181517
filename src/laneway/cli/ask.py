"""`laneway ask`: one turn, streamed. The shortest way from a shell to Codex."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from laneway.base.errors import EngineLost, UsageError
from laneway.base.plain import plain
from laneway.base.redact import redact
from laneway.cli.chosen import settings_for
from laneway.cli.codex_flags import add_approval, add_config, add_model, add_sandbox, folder, overrides
from laneway.cli.compose import LOCAL, ground
from laneway.cli.main import add_common
from laneway.cli.terminal import Screen, Style, ask_person, show_question
from laneway.core.model import DECLINE, Answer, Asked, Event, TurnDone, public
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.core.session import Session, Timing
from laneway.core.turn import Turn, TurnResult

Show = Callable[[Event], None]

EPILOG = """\
The answer goes to standard output, everything else to standard error, so a pipe gets the
answer alone. Codex asks before it leaves the sandbox: you are asked at the terminal; where
there is none, the answer is no. Ctrl-C stops the turn, a second Ctrl-C leaves.

  laneway ask "why does test_x fail?"
  git diff | laneway ask -                      the prompt from standard input
  laneway ask --thread ID "and now fix it"      go on where you were
  laneway ask --rehearse "%help"                what a scripted model can be told to do
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Ask Codex one thing and watch it work."
    parser.epilog = EPILOG
    parser.add_argument("prompt", help="what to ask; - reads it from standard input")
    parser.add_argument(
        "-C", "--cwd", type=Path, default=Path(), metavar="DIR", help="where Codex works (default: here)"
    )
    add_model(parser)
    add_sandbox(parser)
    add_approval(parser)
    add_config(parser)
    parser.add_argument("--thread", metavar="ID", help="go on with this thread")
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help="stop the turn after S seconds (time for your answers not counted)",
    )
    add_common(parser)
    parser.set_defaults(run=lambda options: asyncio.run(ask(options)))


async def ask(options: argparse.Namespace) -> int:
    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    if not prompt.strip():
        raise UsageError("There is nothing to ask: the prompt is empty.")
    here = folder(options.cwd)
    config = overrides(options.config)
    settings = settings_for(
        options, here, model=options.model, sandbox=options.sandbox, approval_policy=options.approval
    )
    if settings.reasoning_effort is not None:
        config.setdefault("model_reasoning_effort", settings.reasoning_effort)
    spec = ThreadSpec(
        cwd=here,
        model=settings.model,
        sandbox=settings.sandbox,
        approval_policy=settings.approval_policy,
        config=config,
    )
    async with ground(options, Timing(turn_s=options.timeout), settings) as base:
        hub = base.hub
        if options.thread:
            session = await hub.resume(LOCAL, options.thread, spec)
        else:
            session = await hub.start(LOCAL, spec)
        turn = session.say(TurnSpec(parts=(TextPart(prompt),)))
        with Interrupts(turn):
            show = _print_json if options.json else Screen().show
            if options.json:
                _print_line(
                    {"event": "session", "thread_id": session.thread_id, "agent_id": session.agent_id}
                )
            result = await follow(session, turn, show, can_ask=sys.stdin.isatty() and options.prompt != "-")
    if not options.json:
        print(Style(sys.stderr).dim(f"thread {session.thread_id}"), file=sys.stderr)
    return exit_code(result)


async def follow(session: Session, turn: Turn, show: Show, *, can_ask: bool) -> TurnResult:
    """Show a turn's events and see that its questions get an answer."""
    open_questions: dict[str, asyncio.Task[None]] = {}
    async for event in turn.events:
        show(event)
        if isinstance(event, Asked):
            asking = asyncio.ensure_future(_decide(session, event, can_ask))
            open_questions[event.question.question_id] = asking
        elif (question_id := getattr(event, "question_id", None)) in open_questions:
            open_questions.pop(question_id).cancel()  # withdrawn
        elif isinstance(event, TurnDone):
            break
    for asking in open_questions.values():
        asking.cancel()
    await asyncio.gather(*open_questions.values(), return_exceptions=True)
    return await turn.result()


async def _decide(session: Session, asked: Asked, can_ask: bool) -> None:
    answer: Answer = DECLINE
    if can_ask:
        answer = await ask_person(asked.question, sys.stderr)
    else:
        style = Style(sys.stderr)
        show_question(asked.question, sys.stderr, style)
        print(style.yellow("  declined: nobody is at a terminal to ask"), file=sys.stderr)
    await session.answer(asked.question.question_id, answer)


class Interrupts:
    """The first Ctrl-C stops the turn; the second leaves."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._count = 0

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)

    def __exit__(self, *exc: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        self._count += 1
        if self._count == 1:
            self._turn.cancel()
        else:
            # At once, whatever hangs: the guardian ends Codex when our pipe to it closes.
            sys.stdout.flush()
            os._exit(130)


def exit_code(result: TurnResult) -> int:
    """0 done, 1 failed, 4 Codex ended, 130 interrupted; a failure says why in one sentence."""
    if result.status == "completed":
        return 0
    if result.stopped_by == "timeout":
        print("laneway: the turn took longer than --timeout and was stopped", file=sys.stderr)
        return 1
    if result.status == "interrupted":
        print("laneway: interrupted", file=sys.stderr)
        return 130
    failure = result.failure
    if failure is not None and failure.kind == "engine_lost":
        raise EngineLost(failure.message.partition(": ")[2] or failure.message)
    why = plain(redact(failure.message)) if failure else "no reason given"
    print(f"laneway: the turn failed: {why}", file=sys.stderr)
    return 1


def _print_json(event: Event) -> None:
    _print_line(public(event))


def _print_line(data: dict[str, object]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(data) + b"\n")
    sys.stdout.buffer.flush()
