"""`laneway tour`: a guided demo of what works on this machine, with the real Codex.

Each stop does one thing and checks that it happened; the walk is a success only if all of
them did what they say. Every door adds its stop here.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from laneway.base.errors import LanewayError
from laneway.base.plain import code_label
from laneway.cli import tour_acp, tour_mail
from laneway.cli.compose import LOCAL, Ground, ground
from laneway.cli.main import add_common
from laneway.cli.terminal import Style
from laneway.cli.terminal.answer import PlainAnswer
from laneway.cli.terminal.screen import Screen
from laneway.cli.tour_mcp import visitor
from laneway.core.model import DECLINE, Activity, Answer, Asked, Diff, Event, Text, UserSaid
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.core.session import Session
from laneway.core.turn import Turn, TurnResult

STOP_S = 30.0
"""For one stop. All of them together take a few seconds on a slow machine."""

_NO_TEMP = {"exclude_slash_tmp": True, "exclude_tmpdir_env_var": True}
"""Codex lets every sandbox write to the temp folder, and a home may lie in there: then nothing is outside."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "A guided demo: the real Codex against a scripted model on loopback.\n"
        "It needs no account, no network and no input, and touches nothing of yours."
    )
    add_common(parser)
    parser.set_defaults(run=lambda options: asyncio.run(tour(options)))


class Missed(Exception):
    """A stop did not do what it says."""


class Report(msgspec.Struct, frozen=True):
    stop: str
    ok: bool
    detail: str
    seconds: float


async def tour(options: argparse.Namespace) -> int:
    options.rehearse = True  # a real model would not know the script
    guide = _Guide(quiet=options.json)
    async with ground(options) as here:
        assert here.work is not None
        version = (await here.engine.abilities()).version
        guide.open(version)
        session = await here.hub.start(
            LOCAL,
            ThreadSpec(
                cwd=here.work,
                sandbox="workspace-write",
                approval_policy="on-request",
                config={"sandbox_workspace_write": _NO_TEMP},
            ),
        )
        walk = Walk(here, session, guide, options.codex_bin)
        reports = [await guide.visit(title, stop, walk) for title, stop in STOPS]
    is_good = all(report.ok for report in reports)
    guide.close(version, reports)
    return 0 if is_good else 1


class Walk:
    """What the stops share: one session, and a way to run a turn of it."""

    def __init__(self, here: Ground, session: Session, guide: _Guide, codex_bin: str | None) -> None:
        self.session = session
        self.codex_bin = codex_bin
        self.note = guide.note
        self.engine = here.engine
        assert here.work is not None
        self.work = here.work
        self._guide = guide

    def say(self, *lines: str) -> Turn:
        return self.session.say(TurnSpec(parts=(TextPart("\n".join(lines)),)))

    async def play(
        self, *lines: str, decide: Callable[[Asked], Answer] | None = None
    ) -> tuple[list[Event], TurnResult]:
        """Run a turn to its end, on the screen; questions are answered by `decide`."""
        turn = self.say(*lines)
        events: list[Event] = []
        async for event in turn.events:
            events.append(event)
            self._guide.show(event)
            if isinstance(event, Asked):
                answer = decide(event) if decide else DECLINE
                asked = event.question
                subject = asked.command or ", ".join(change.path for change in asked.changes) or asked.message
                self._guide.note(f"? {code_label(subject)} — answered: {answer.choice_id}")
                await self.session.answer(event.question.question_id, answer)
        return events, await turn.result()

    async def until_text(self, turn: Turn) -> None:
        async for event in turn.events:
            self._guide.show(event)
            if isinstance(event, Text):
                return
        raise Missed("the turn ended before it produced any text")


# ── the stops ──────────────────────────────────────────────────────────────


async def stream(walk: Walk) -> str:
    events, result = await walk.play("%stream 24 words over 1 seconds")
    pieces = [event for event in events if isinstance(event, Text)]
    check(len(result.text.split()) == 24, f"24 words were asked for: {result.text!r}")
    check(len(pieces) > 4, "the words arrived all at once instead of streaming")
    return f"24 words in {len(pieces)} pieces, as they were written"


async def command(walk: Walk) -> str:
    outside = walk.work.parent / "outside.txt"
    events, _ = await walk.play("%run echo hello > inside.txt; (echo hello > ../outside.txt) || echo refused")
    ended = [event for event in events if isinstance(event, Activity) and event.status != "running"]
    check(len(ended) == 1, "the command was not run")
    check(ended[0].status == "completed", f"the sandbox does not work here: {_last_line(ended[0])}")
    check((walk.work / "inside.txt").exists(), "the command could not write in its own folder")
    check(not outside.exists(), "the sandbox let the command write outside its folder")
    return "it could write in its folder; the sandbox stopped it from writing elsewhere"


async def edit(walk: Walk) -> str:
    path = walk.work / "greeting.py"
    path.write_text('print("hello")\n')
    events, _ = await walk.play('%edit greeting.py print("hello") => print("hello, colleague")')
    diffs = [event.diff for event in events if isinstance(event, Diff)]
    check(path.read_text() == 'print("hello, colleague")\n', "the file was not edited")
    check(bool(diffs) and '+print("hello, colleague")' in diffs[-1], "the diff does not show the edit")
    return "greeting.py was edited, and the diff shows it"


async def approval(walk: Walk) -> str:
    answers = iter([DECLINE, Answer(choice_id="accept")])
    declined, accepted = walk.work.parent / "declined", walk.work.parent / "accepted"
    events, result = await walk.play(
        "%run! touch ../declined", "%run! touch ../accepted", decide=lambda asked: next(answers)
    )
    check(sum(isinstance(event, Asked) for event in events) == 2, "Codex did not ask")
    check(result.status == "completed", "the turn did not survive a declined command")
    check(not declined.exists(), "a declined command ran")
    check(accepted.exists(), "an approved command did not run")
    return "declined: not run; approved: run"


async def interrupt(walk: Walk) -> str:
    turn = walk.say("%stream 1000 words over 60 seconds")
    await walk.until_text(turn)
    began = time.perf_counter()
    turn.cancel()
    result = await turn.result()
    took = time.perf_counter() - began
    check(result.status == "interrupted", f"the turn ended with status {result.status}")
    _, after = await walk.play("%say Carrying on.")
    check(after.status == "completed", "the turn after the interrupt failed")
    return f"stopped within {took * 1000:.0f} ms, and the next turn ran"


async def resume(walk: Walk) -> str:
    turn = walk.say("%stream 1000 words over 60 seconds")
    await walk.until_text(turn)
    pid = (await walk.engine.link()).pid
    check(pid is not None, "Codex has no process")
    os.kill(pid or 0, signal.SIGKILL)
    result = await turn.result()
    check(result.status == "failed", f"the turn ended with status {result.status} although Codex was killed")
    _, after = await walk.play("%say I am back, and I remember.")
    check(after.status == "completed", "Codex did not come back")
    page = await walk.session.history()
    said = [event.text for event in page.events if isinstance(event, UserSaid)]
    check(any("24 words" in text for text in said), "the thread lost its history")
    return f"process {pid} was killed with kill -9; the same thread continued in a new one"


async def mcp(walk: Walk) -> str:
    flags = ("--codex-bin", walk.codex_bin) if walk.codex_bin else ()
    async with visitor(walk.note, *flags) as client:
        asks = {"approval-policy": "on-request", "sandbox": "workspace-write", "cwd": str(walk.work)}
        first = await client.call("codex", prompt="%run! touch granted", identity="reviewer", **asks)
        agent_id = first.get("agent_id")
        second = await client.call("codex-reply", agent_id=agent_id, prompt="%say Carrying on.")
        listed = (await client.call("agent_sessions")).get("sessions", [])
        closed = await client.call("agent_close", identity="reviewer")
    check(client.asked == [agent_id], "the approval did not reach the client with its session's id")
    check(client.events > 0, "the client received no events")
    check(second.get("content") == "Carrying on.", f"codex-reply returned {second.get('content')!r}")
    check([row["identity"] for row in listed] == ["reviewer"], "agent_sessions does not list the session")
    check(closed.get("status") == "closed", "agent_close did not close it")
    return f"a session named reviewer: {client.events} events, an approval from the client, closed"


async def mail(walk: Walk) -> str:
    flags = ("--codex-bin", walk.codex_bin) if walk.codex_bin else ()
    async with visitor(walk.note, *tour_mail.FLAGS, *flags) as client:
        came = await tour_mail.exchange(client)
    check(not came.problem, came.problem)
    check(came.counted.get("delivered") == 1, f"agent_status does not count the message: {came.counted}")
    check(came.counted.get("turns") == 1, "the message did not start a turn of its own")
    said = [(answer.get("from"), answer.get("text")) for answer in came.answers]
    check(said == [(tour_mail.REVIEWER, tour_mail.ANSWER)], f"the reply was {said}")
    took_ms = 1000 * (came.counted.get("latency_last_s") or 0)
    return f"it started a turn in reviewer within {took_ms:.0f} ms, and the reply came back as mail"


async def acp(walk: Walk) -> str:
    flags = ("--codex-bin", walk.codex_bin) if walk.codex_bin else ()
    async with tour_acp.editor(walk.note, *flags) as client:
        came = await tour_acp.visit(client, walk.work, walk.note)
    check(came.before.get("mode") == "config", f"a new session is in mode {came.before.get('mode')!r}")
    chosen = {**came.before, "mode": tour_acp.MODE}
    check(tour_acp.MODE in came.modes and came.after == chosen, f"the options are {came.after}")
    check(len(came.text.split()) == tour_acp.WORDS, f"{tour_acp.WORDS} words were asked for: {came.text!r}")
    check(came.chunks > 1, "the words arrived all at once instead of streaming")
    check(came.statuses == ["completed"], f"the command ended with status {came.statuses}")
    check(tour_acp.OUTPUT in came.output, f"the editor was shown {came.output!r}")
    check({"allow_once", "reject_once"} <= set(came.offered), f"the buttons were {came.offered}")
    check(came.is_granted, "an approved command did not run")
    check(came.stops == ["end_turn"] * 3 + ["cancelled"], f"the prompts ended with {came.stops}")
    return (
        f"text in {came.chunks} pieces, output as content, an approval by button, "
        f"cancelled within {came.cancel_s * 1000:.0f} ms"
    )


STOPS: list[tuple[str, Callable[[Walk], Awaitable[str]]]] = [
    ("Streamed text", stream),
    ("A command in the sandbox", command),
    ("An edit with its diff", edit),
    ("An approval, asked and answered", approval),
    ("An interrupt", interrupt),
    ("A resume after Codex was killed", resume),
    ("Codex over MCP, as Claude uses it", mcp),
    ("Mail from one Codex to another", mail),
    ("Codex over ACP, as an editor uses it", acp),
]


def _last_line(ran: Activity) -> str:
    return (ran.output or "no output").strip().splitlines()[-1]


def check(condition: bool, problem: str) -> None:
    if not condition:
        raise Missed(problem)


# ── on the screen ──────────────────────────────────────────────────────────


class _Guide:
    """Says where we are; with `--json` nothing until the end."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._style = Style(sys.stdout)
        self._screen = Screen(sys.stdout, sys.stdout, answer=PlainAnswer(sys.stdout))
        self._number = 0

    def open(self, version: str) -> None:
        line = f"The real Codex {version}, a scripted model on loopback: no account, no network."
        self.note(self._style.bold("Laneway: a guided demo") + "\n" + line)

    def show(self, event: Event) -> None:
        if not self._quiet:
            self._screen.show(event)

    def note(self, text: str) -> None:
        if not self._quiet:
            print(text, flush=True)

    async def visit(self, title: str, stop: Callable[[Walk], Awaitable[str]], walk: Walk) -> Report:
        self._number += 1
        self.note("\n" + self._style.bold(f"{self._number}  {title}"))
        began = time.perf_counter()
        try:
            async with asyncio.timeout(STOP_S):
                detail, is_good = await stop(walk), True
        except (Missed, LanewayError) as problem:
            detail, is_good = str(problem), False
        except TimeoutError:
            detail, is_good = f"no result within {STOP_S:g} s", False
        self._screen.end_message()
        mark = self._style.green("✔") if is_good else self._style.red("✘")
        self.note(f"{mark} {detail}")
        return Report(stop.__name__, is_good, detail, round(time.perf_counter() - began, 3))

    def close(self, version: str, reports: list[Report]) -> None:
        good = sum(report.ok for report in reports)
        if self._quiet:
            told: dict[str, Any] = {"ok": good == len(reports), "codex": version, "stops": reports}
            sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
            return
        seconds = sum(report.seconds for report in reports)
        self.note(f"\n{good} of {len(reports)} steps passed, in {seconds:.1f} s.")
        if good == len(reports):
            self.note('Next: laneway ask "…" with your own Codex login, or laneway ask --rehearse "%help".')
