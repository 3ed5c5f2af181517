"""`laneway tour`: a guided demo of what works on this machine, with the real Codex.

Each stop shows one feature and checks that it worked; the tour succeeds only if all stops do. The
MCP server, team mail, the ACP agent, the chat and background jobs each have their stop.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from laneway.app.runtime import LOCAL, Runtime, open_runtime
from laneway.base.errors import LanewayError
from laneway.base.plain import code_label
from laneway.cli import tour_acp, tour_chat, tour_jobs, tour_mail
from laneway.cli.command_settings import codex_choice, settings_for
from laneway.cli.main import add_common
from laneway.cli.tour_mcp import demo_client
from laneway.codex.binary import Feature, missing_features, parse_version
from laneway.core.model import DECLINE, Activity, Answer, Asked, Diff, Event, Text, UserSaid
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.core.session import Session
from laneway.core.turn import Turn, TurnResult
from laneway.terminal import Style
from laneway.terminal.answer import PlainAnswer
from laneway.terminal.screen import Screen

STOP_S = 30.0
"""For one stop. All stops together take a few seconds on a slow machine."""

_NO_TEMP = {"exclude_slash_tmp": True, "exclude_tmpdir_env_var": True}
"""Codex lets every sandbox write to the temp folder; if the home is in there, nothing would be outside."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "A guided demo: the real Codex against a scripted model on loopback.\n"
        "It needs no account, no network and no input, and touches nothing of yours."
    )
    add_common(parser)
    parser.set_defaults(run=lambda options: asyncio.run(tour(options)))


class StopFailed(Exception):
    """A stop of the tour did not work."""


class TourReport(msgspec.Struct, frozen=True):
    """The result of one stop, as `--json` prints it."""

    stop: str
    ok: bool
    detail: str
    seconds: float


async def tour(options: argparse.Namespace) -> int:
    options.rehearse = True  # a real model would not follow the script
    guide = _Guide(quiet=options.json)
    async with open_runtime(codex_choice(options, settings_for(options, Path()))) as runtime:
        assert runtime.work is not None
        version = (await runtime.engine.abilities()).version
        guide.open(version)
        session = await runtime.hub.start(
            LOCAL,
            ThreadSpec(
                cwd=runtime.work,
                sandbox="workspace-write",
                approval_policy="on-request",
                config={"sandbox_workspace_write": _NO_TEMP},
            ),
        )
        missing = missing_features(parse_version(version) or ())
        context = TourContext(runtime, session, guide, options.codex_bin, missing)
        reports = [await guide.run_stop(title, stop, context) for title, stop in STOPS]
    is_good = all(report.ok for report in reports)
    guide.close(version, reports)
    return 0 if is_good else 1


class TourContext:
    """What the stops share: one session, and methods to run its turns."""

    def __init__(
        self,
        runtime: Runtime,
        session: Session,
        guide: _Guide,
        codex_bin: str | None,
        missing: Sequence[Feature],
    ) -> None:
        self.session = session
        self.missing = missing
        """What this version of Codex does not have."""
        self.codex_bin = codex_bin
        self.note = guide.note
        self.engine = runtime.engine
        assert runtime.work is not None
        self.work = runtime.work
        self._guide = guide

    def say(self, *lines: str) -> Turn:
        return self.session.say(TurnSpec(parts=(TextPart("\n".join(lines)),)))

    async def play(
        self, *lines: str, decide: Callable[[Asked], Answer] | None = None
    ) -> tuple[list[Event], TurnResult]:
        """Run a turn to its end and show it; questions are answered by `decide`."""
        turn = self.say(*lines)
        events: list[Event] = []
        async for event in turn.events:
            events.append(event)
            self._guide.show(event)
            if isinstance(event, Asked):
                answer = decide(event) if decide else DECLINE
                question = event.question
                subject = (
                    question.command
                    or ", ".join(change.path for change in question.changes)
                    or question.message
                )
                self._guide.note(f"? {code_label(subject)} — answered: {answer.choice_id}")
                await self.session.answer(event.question.question_id, answer)
        return events, await turn.result()

    async def until_text(self, turn: Turn) -> None:
        """Show the events of a turn until its first text."""
        async for event in turn.events:
            self._guide.show(event)
            if isinstance(event, Text):
                return
        raise StopFailed("the turn ended before it produced any text")


# ── the stops ──────────────────────────────────────────────────────────────


async def stream(context: TourContext) -> str:
    events, result = await context.play("%stream 24 words over 1 seconds")
    pieces = [event for event in events if isinstance(event, Text)]
    check(len(result.text.split()) == 24, f"24 words were asked for: {result.text!r}")
    check(len(pieces) > 4, "the words arrived all at once instead of streaming")
    return f"24 words in {len(pieces)} pieces, as they were written"


async def command(context: TourContext) -> str:
    outside = context.work.parent / "outside.txt"
    events, _ = await context.play(
        "%run echo hello > inside.txt; (echo hello > ../outside.txt) || echo refused"
    )
    ended = [event for event in events if isinstance(event, Activity) and event.status != "running"]
    check(len(ended) == 1, "the command was not run")
    check(ended[0].status == "completed", f"the sandbox does not work here: {_last_line(ended[0])}")
    check((context.work / "inside.txt").exists(), "the command could not write in its own folder")
    check(not outside.exists(), "the sandbox let the command write outside its folder")
    return "it could write in its folder; the sandbox stopped it from writing elsewhere"


async def edit(context: TourContext) -> str:
    path = context.work / "greeting.py"
    path.write_text('print("hello")\n')
    events, _ = await context.play('%edit greeting.py print("hello") => print("hello, colleague")')
    diffs = [event.diff for event in events if isinstance(event, Diff)]
    check(path.read_text() == 'print("hello, colleague")\n', "the file was not edited")
    check(bool(diffs) and '+print("hello, colleague")' in diffs[-1], "the diff does not show the edit")
    return "greeting.py was edited, and the diff shows it"


async def approval(context: TourContext) -> str:
    answers = iter([DECLINE, Answer(choice_id="accept")])
    declined, accepted = context.work.parent / "declined", context.work.parent / "accepted"
    events, result = await context.play(
        "%run! touch ../declined", "%run! touch ../accepted", decide=lambda question: next(answers)
    )
    check(sum(isinstance(event, Asked) for event in events) == 2, "Codex did not ask")
    check(result.status == "completed", "the turn did not survive a declined command")
    check(not declined.exists(), "a declined command ran")
    check(accepted.exists(), "an approved command did not run")
    return "declined: not run; approved: run"


async def interrupt(context: TourContext) -> str:
    turn = context.say("%stream 1000 words over 60 seconds")
    await context.until_text(turn)
    began = time.perf_counter()
    turn.cancel()
    result = await turn.result()
    took_s = time.perf_counter() - began
    check(result.status == "interrupted", f"the turn ended with status {result.status}")
    _, after = await context.play("%say Carrying on.")
    check(after.status == "completed", "the turn after the interrupt failed")
    return f"stopped within {took_s * 1000:.0f} ms, and the next turn ran"


async def resume(context: TourContext) -> str:
    turn = context.say("%stream 1000 words over 60 seconds")
    await context.until_text(turn)
    pid = (await context.engine.link()).pid
    if pid is None:  # never zero: that would kill our own process group
        raise StopFailed("Codex has no process")
    os.kill(pid, signal.SIGKILL)
    result = await turn.result()
    check(result.status == "failed", f"the turn ended with status {result.status} although Codex was killed")
    _, after = await context.play("%say I am back, and I remember.")
    check(after.status == "completed", "Codex did not come back")
    page = await context.session.history()
    prompts = [event.text for event in page.events if isinstance(event, UserSaid)]
    check(any("24 words" in text for text in prompts), "the thread lost its history")
    return f"process {pid} was killed with kill -9; the same thread continued in a new one"


async def mcp(context: TourContext) -> str:
    flags = ("--codex-bin", context.codex_bin) if context.codex_bin else ()
    async with demo_client(context.note, *flags) as client:
        arguments = {"approval-policy": "on-request", "sandbox": "workspace-write", "cwd": str(context.work)}
        first = await client.call("codex", prompt="%run! touch granted", identity="reviewer", **arguments)
        agent_id = first.get("agent_id")
        second = await client.call("codex-reply", agent_id=agent_id, prompt="%say Carrying on.")
        rows = (await client.call("agent_sessions")).get("sessions", [])
        closed = await client.call("agent_close", identity="reviewer")
    check(client.question_agents == [agent_id], "the approval did not reach the client with its session's id")
    check(client.events > 0, "the client received no events")
    check(second.get("content") == "Carrying on.", f"codex-reply returned {second.get('content')!r}")
    check([row["identity"] for row in rows] == ["reviewer"], "agent_sessions does not list the session")
    check(closed.get("status") == "closed", "agent_close did not close it")
    return f"a session named reviewer: {client.events} events, an approval from the client, closed"


async def mail(context: TourContext) -> str:
    flags = ("--codex-bin", context.codex_bin) if context.codex_bin else ()
    async with demo_client(context.note, *tour_mail.FLAGS, *flags) as client:
        demo = await tour_mail.exchange(client)
    check(not demo.problem, demo.problem)
    check(demo.counted.get("delivered") == 1, f"agent_status does not count the message: {demo.counted}")
    check(demo.counted.get("turns") == 1, "the message did not start a turn of its own")
    replies = [(answer.get("from"), answer.get("text")) for answer in demo.answers]
    check(replies == [(tour_mail.REVIEWER, tour_mail.ANSWER)], f"the reply was {replies}")
    took_ms = 1000 * (demo.counted.get("latency_last_s") or 0)
    return f"it started a turn in reviewer within {took_ms:.0f} ms, and the reply came back as mail"


async def acp(context: TourContext) -> str:
    flags = ("--codex-bin", context.codex_bin) if context.codex_bin else ()
    async with tour_acp.editor(context.note, *flags) as client:
        demo = await tour_acp.run_demo(client, context.work, context.note)
    check(demo.before.get("mode") == "config", f"a new session is in mode {demo.before.get('mode')!r}")
    expected = {**demo.before, "mode": tour_acp.MODE}
    check(tour_acp.MODE in demo.modes and demo.after == expected, f"the options are {demo.after}")
    check(len(demo.text.split()) == tour_acp.WORDS, f"{tour_acp.WORDS} words were asked for: {demo.text!r}")
    check(demo.chunks > 1, "the words arrived all at once instead of streaming")
    check(demo.statuses == ["completed"], f"the command ended with status {demo.statuses}")
    check(tour_acp.OUTPUT in demo.output, f"the editor was shown {demo.output!r}")
    check({"allow_once", "reject_once"} <= set(demo.offered), f"the buttons were {demo.offered}")
    check(demo.is_granted, "an approved command did not run")
    check(demo.stops == ["end_turn"] * 3 + ["cancelled"], f"the prompts ended with {demo.stops}")
    return (
        f"text in {demo.chunks} pieces, output as content, an approval by button, "
        f"cancelled within {demo.cancel_s * 1000:.0f} ms"
    )


async def chat(context: TourContext) -> str:
    flags = ("--codex-bin", context.codex_bin) if context.codex_bin else ()
    asks = "user_questions" not in {feature.name for feature in context.missing}
    shown, end = await tour_chat.run_demo(context.work, context.note, *flags, asks=asks)
    check(end == "exit code 0", f"the conversation ended with {end}")
    rows = shown.splitlines()
    # Not its output: before 0.163 a Codex on a busy machine may tell nothing of what a command printed.
    check("▸ codex::Bash(seq 3 | wc -l)" in rows, "the command of Codex was not shown")
    check(not asks or any("answered by you: blue" in row for row in rows), "the answer did not reach Codex")
    tasks = 2 if asks else 1
    check(shown.count("CODEX COMPLETED") == tasks, f"Codex did not complete its turns ({tasks})")
    check(tour_chat.SAID in rows, f"{tour_chat.lead()} did not answer")
    if not asks:
        return f"{tour_chat.lead()} leads, and Codex did the task that it was given; this Codex cannot ask"
    return f"{tour_chat.lead()} leads; Codex was given two tasks, and its question was answered"


async def jobs(context: TourContext) -> str:
    flags = ("--codex-bin", context.codex_bin) if context.codex_bin else ()
    async with demo_client(lambda text: None, *tour_jobs.FLAGS, *flags) as client:
        await tour_jobs.run_demo(client, context.work, context.note, check)
    return "the conflict was found; one edit was rolled back and returned; in sequence there is none"


STOPS: list[tuple[str, Callable[[TourContext], Awaitable[str]]]] = [
    ("Streamed text", stream),
    ("A command in the sandbox", command),
    ("An edit with its diff", edit),
    ("An approval, asked and answered", approval),
    ("An interrupt", interrupt),
    ("A resume after Codex was killed", resume),
    ("Codex over MCP, as Claude uses it", mcp),
    ("Mail from one Codex to another", mail),
    ("Codex over ACP, as an editor uses it", acp),
    ("Two agents in one conversation", chat),
    ("Two workers in the background edit one file", jobs),
]


def _last_line(activity: Activity) -> str:
    return (activity.output or "no output").strip().splitlines()[-1]


def check(condition: bool, problem: str) -> None:
    if not condition:
        raise StopFailed(problem)


# ── on the screen ──────────────────────────────────────────────────────────


class _Guide:
    """Prints the progress of the tour; with `--json` nothing until the end."""

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

    async def run_stop(
        self, title: str, stop: Callable[[TourContext], Awaitable[str]], context: TourContext
    ) -> TourReport:
        self._number += 1
        self.note("\n" + self._style.bold(f"{self._number}  {title}"))
        began = time.perf_counter()
        try:
            async with asyncio.timeout(STOP_S):
                detail, is_good = await stop(context), True
        except (StopFailed, LanewayError) as problem:
            detail, is_good = str(problem), False
        except TimeoutError:
            detail, is_good = f"no result within {STOP_S:g} s", False
        self._screen.end_message()
        mark = self._style.green("✔") if is_good else self._style.red("✘")
        self.note(f"{mark} {detail}")
        return TourReport(stop.__name__, is_good, detail, round(time.perf_counter() - began, 3))

    def close(self, version: str, reports: list[TourReport]) -> None:
        good = sum(report.ok for report in reports)
        if self._quiet:
            data: dict[str, Any] = {"ok": good == len(reports), "codex": version, "stops": reports}
            sys.stdout.write(msgspec.json.encode(data).decode() + "\n")
            return
        seconds = sum(report.seconds for report in reports)
        self.note(f"\n{good} of {len(reports)} steps passed, in {seconds:.1f} s.")
        if good == len(reports):
            self.note('Next: laneway ask "…" with your own Codex login, or laneway ask --rehearse "%help".')
