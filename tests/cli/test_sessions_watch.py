"""`laneway sessions watch` and `stop`: from another terminal to a session that lives elsewhere."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.cli.main import build_parser
from laneway.core.model import Failure, UserSaid
from laneway.store.layout import sessions_root
from laneway.testing.terminal import terminal
from tests.cli.support import LANEWAY, laneway, start
from tests.cli.watching import watching
from tests.core.support import until
from tests.doors.local.support import LocalStage, local_stage

TEAM = ("--team", "crew")


@asynccontextmanager
async def home_of(state: Path, run: Path, **options: Any) -> AsyncIterator[tuple[LocalStage, dict[str, str]]]:
    """A local_stage in this process, and the environment in which a terminal finds it."""
    root = sessions_root(environment={"ATM_HOME": str(state)})
    async with local_stage(root, run, **options) as home:
        yield home, {**home.environment, "ATM_HOME": str(state)}


# ── watching ───────────────────────────────────────────────────────────────


async def test_a_person_sees_who_it_is_what_is_said_and_how_it_ends(tmp_path: Path, run: Path) -> None:
    """The answer on standard output, everything else beside it; a question that is open comes first."""
    async with home_of(tmp_path, run) as (home, env):
        ann = await home.here.open("ann")
        turn = await home.here.busy(ann)
        thread = home.here.thread(ann)
        thread.ask("q1")
        await until(lambda: ann.session.questions)
        async with watching("ann", *TEAM, env=env) as there:
            await there.wait_for(lambda: "where the session was started" in there.err)
            assert f"ann  busy  1 turn  {home.here.root}" in there.err
            assert f"{ann.agent_id}  thread {ann.thread_id}  team crew  process {os.getpid()}" in there.err
            assert "? May I?" in there.err
            home.here.clock.advance(301)
            await there.wait_for(lambda: "declined, because nobody decided in time" in there.err)
            thread.say("Good \x1b[31mmorning")
            thread.end(text="Good morning")
            await turn.result()
            await there.wait_for(lambda: "the turn is completed" in there.err)
            await home.here.sessions.close("me", agent_id=ann.agent_id)
            assert await there.ended() == 0
            assert there.out == "Good \x1b[31mmorning\n"  # no terminal: as it is, for whoever reads it
            assert f"session {ann.agent_id} was closed" in there.err


async def test_programs_get_one_event_a_line(tmp_path: Path, run: Path) -> None:
    """The session first. `--team` may stand before the word, as ever."""
    async with home_of(tmp_path, run) as (home, env):
        ann = await home.here.open("ann")
        async with watching(ann.thread_id, "--json", env=env) as there:
            await home.here.turn(ann, "one")
            await home.here.sessions.close("me", agent_id=ann.agent_id)
            assert await there.ended() == 0
            assert there.kinds == ["session", "turn_started", "accepted", "turn_done", "closed"]
            assert there.events[0]["agent_id"] == ann.agent_id
            assert there.events[3]["text"] == "done: one"
            assert there.err == ""


async def test_on_a_terminal_no_word_of_theirs_moves_the_cursor(tmp_path: Path, run: Path) -> None:
    """Ctrl-C on the keyboard leaves."""
    async with home_of(tmp_path, run) as (home, env):
        ann = await home.here.open("ann")
        given = {**os.environ, **env, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)}
        words = [*LANEWAY, "sessions", "watch", "ann", *TEAM]
        async with terminal(words, env=given, cwd=tmp_path) as screen:
            await screen.wait_for(f"process {os.getpid()}")
            turn = await home.here.busy(ann)
            home.here.thread(ann).emit(UserSaid(turn_id="t", item_id="u", text="Say\x1b[2J it"))
            home.here.thread(ann).say("Good \x1b[2Jmorning")
            home.here.thread(ann).end("failed", failure=Failure(kind="other", message="no\x1b[2J luck"))
            await turn.result()
            for text in ("» Say\\x1b[2J it", "Good \\x1b[2Jmorning", "the turn is failed: no\\x1b[2J luck"):
                await screen.wait_for(text)
            screen.press("ctrl-c")
            await screen.wait_for("the session goes on")


async def test_who_leaves_with_ctrl_c_leaves_the_session_alone(tmp_path: Path, run: Path) -> None:
    """And is told so."""
    async with home_of(tmp_path, run) as (home, env):
        ann = await home.here.open("ann")
        turn = await home.here.busy(ann)
        async with watching("ann", *TEAM, env=env) as there:
            there.process.send_signal(signal.SIGINT)
            assert await there.ended() == 130
            assert there.err.endswith("laneway: you have left; the session goes on\n")
        assert ann.state == "busy"
        home.here.thread(ann).end(text="still here")
        assert (await turn.result()).text == "still here"


async def test_a_reader_that_goes_away_ends_the_watch_quietly(tmp_path: Path, run: Path) -> None:
    """`… | head -1`."""
    async with home_of(tmp_path, run) as (home, env):
        ann = await home.here.open("ann")
        reading, writing = os.pipe()
        process = await start("sessions", "watch", ann.agent_id, "--json", env=env, stdout=writing)
        os.close(writing)
        with os.fdopen(reading) as lines:
            assert json.loads(await asyncio.to_thread(lines.readline))["event"] == "session"
        await home.here.turn(ann, "one")
        async with asyncio.timeout(20):
            _, err = await process.communicate()
        assert (process.returncode, err) == (1, b"")
        assert ann.state == "idle"


# ── stopping ───────────────────────────────────────────────────────────────


async def test_stop_says_what_it_did(tmp_path: Path, run: Path) -> None:
    """Running, idle, closed: each in a sentence, or as data."""
    async with home_of(tmp_path, run) as (home, env):
        ann = await home.here.open("ann")
        turn = await home.here.busy(ann)
        stopped = await laneway("sessions", "stop", "ann", *TEAM, env=env)
        assert (stopped.code, stopped.out, stopped.err) == (0, "ann was stopped.\n", "")
        assert (await turn.result()).status == "interrupted"
        idle = await laneway("sessions", *TEAM, "stop", "ann", env=env)
        assert (idle.code, idle.out) == (0, "ann is idle: there was nothing to stop.\n")
        closed = await laneway("sessions", "stop", ann.agent_id, "--close", "--json", env=env)
        assert closed.code == 0
        told = json.loads(closed.out)
        assert (told["identity"], told["was"], told["status"]) == ("ann", "idle", "closed")
        gone = await laneway("sessions", "stop", "ann", *TEAM, env=env)
        assert gone.code == 2
        assert f"Session {ann.agent_id} of ann does not run: it is closed." in gone.err


def test_flags_before_the_action_hold_behind_it() -> None:
    """And the listing takes its flags on either side, or without an action, as it always did."""
    for words in (
        ["sessions", "--team", "t", "--json", "--older-than", "3", "--prune"],
        ["sessions", "list", "--team", "t", "--json", "--older-than", "3", "--prune"],
        ["sessions", "--team", "t", "--older-than", "3", "list", "--json", "--prune"],
    ):
        options = build_parser(words).parse_args(words)
        assert (options.team, options.json, options.older_than, options.prune) == ("t", True, 3.0, True)
    words = ["sessions", "--team", "t", "stop", "ann"]
    options = build_parser(words).parse_args(words)
    assert (options.team, options.who, options.json, options.close) == ("t", "ann", False, False)
    assert build_parser(["sessions"]).parse_args(["sessions"]).older_than == 0.0
