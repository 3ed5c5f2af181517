"""The real Claude Code, killed at any instant: each input is taken once, and nothing is left."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from laneway.base.errors import EngineLost, LanewayError
from laneway.claude.thread import ClaudeThread
from laneway.core.model import Accepted, Answer, Asked
from laneway.core.offers import Compaction
from laneway.core.ports import TextPart, TurnSpec
from laneway.core.session import Session
from laneway.core.turn import Turn
from laneway.wire.guardian import descendants
from tests.claude.support import ClaudeStage, real
from tests.claude.test_real_lives import is_alive, prompts
from tests.codex.support import only, play, say
from tests.core.support import until

ROUNDS = 200 if os.environ.get("LANEWAY_CHAOS") else 20
KEEPER = """
import os, sys, time
began = open("/proc/self/stat").read().rpartition(")")[2].split()[19]
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()} {began}\\n")
time.sleep(600)
"""


def allow_tools(here: ClaudeStage) -> None:
    """In the user's own settings: a turn that survives its kill would wait for a permission otherwise."""
    settings = {"permissions": {"allow": ["Bash", "Write", "Edit"]}}
    (here.rehearsal.folder.config / "settings.json").write_text(json.dumps(settings))


def process_of(session: Session) -> int | None:
    thread = session._handle._thread
    return thread.pid if isinstance(thread, ClaudeThread) else None


class Life(NamedTuple):
    """A process, which another one with the same id is not: ids come again in so many rounds."""

    pid: int
    began: int
    """When it was started, as the kernel counts."""

    @property
    def goes_on(self) -> bool:
        return is_alive(self.pid) and began(self.pid) == self.began


def began(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):
        return None


def kill(session: Session, killed: set[Life]) -> None:
    pid = process_of(session)
    since = None if pid is None else began(pid)
    if pid is not None and since is not None:
        killed.add(Life(pid, since))
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # the last kill came after the end of its turn, and its death has not been told yet


async def result_of(turn: Turn) -> bool:
    """Wait for the end of a turn, whatever it is; whether its input was taken."""
    events = [event async for event in turn.events]
    try:
        await turn.result()
    except EngineLost:
        pass
    return bool(only(events, Accepted))


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_killed_at_any_instant_every_input_is_taken_exactly_once(tmp_path: Path) -> None:
    """Whoever is told that it was not taken says it again; the transcript then has each once.

    Every third turn leaves a process behind that has gone to a session of its own.
    """
    chance = random.Random(ROUNDS)
    killed: set[Life] = set()
    keeper, kept = tmp_path / "keeper.py", tmp_path / "pids"
    keeper.write_text(KEEPER)
    kept.touch()
    async with real(deadline_s=8 * ROUNDS) as here:
        allow_tools(here)
        session = await here.session()
        await play(session, "%say first")
        for number in range(ROUNDS):
            script, longest_s = f"%say input {number}", 0.3
            if number % 3 == 0:
                leave = f"%run setsid python3 {keeper} {kept} >/dev/null 2>&1 & true"
                script, longest_s = f"{leave}\n{script}", 0.8
            turn = say(session, script)
            await asyncio.sleep(chance.uniform(0, longest_s))
            kill(session, killed)
            is_taken = await result_of(turn)
            while not is_taken:
                events, _ = await play(session, script)
                is_taken = bool(only(events, Accepted))
        taken = [text.rpartition("%say ")[2] for text in prompts(here, session.thread_id)]
        assert taken == ["first", *(f"input {number}" for number in range(ROUNDS))]
        left = {Life(*map(int, line.split())) for line in kept.read_text().splitlines()}
        assert left
    assert len(killed) >= ROUNDS // 2
    await until(lambda: not any(life.goes_on for life in killed | left))


# ── what may be under way ─────────────────────────────────────────────────

Act = Callable[[Session], Coroutine[Any, Any, Turn]]


async def steering(session: Session) -> Turn:
    turn = say(session, "%stream 100 words over 1 seconds", "%run true", "%say done")
    for number in range(3):
        await asyncio.sleep(0.05)
        try:
            await session.steer((TextPart(f"%say added {number}"),))
        except LanewayError:
            pass  # too early, or too late
    return turn


async def interrupting(session: Session) -> Turn:
    turn = say(session, "%stream 100 words over 5 seconds")
    await asyncio.sleep(0.2)
    turn.cancel()
    return turn


async def asking(session: Session) -> Turn:
    turn = say(session, "%ask Which colour? red | blue", "%say done")

    async def answer() -> None:
        async for event in session.subscribe():
            if isinstance(event, Asked):
                try:
                    await session.answer(event.question.question_id, Answer(choice_id="decline"))
                except LanewayError:
                    pass  # it was withdrawn
                return

    answering = asyncio.create_task(answer())
    turn_result = asyncio.create_task(turn.result())
    turn_result.add_done_callback(lambda done: (done.exception(), answering.cancel()))
    return turn


async def compacting(session: Session) -> Turn:
    return session.say(TurnSpec(parts=(), special_turn=Compaction()))


async def calling(session: Session) -> Turn:
    return say(session, "%run true", "%patch notes.txt hello", "%say done")


@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("act", [steering, interrupting, asking, compacting, calling])
async def test_killed_in_the_middle_of_anything_the_call_is_answered_and_the_next_turn_works(
    act: Act,
) -> None:
    """A steer, an interrupt, a question, a compaction, tools; and nobody waits for ever."""
    chance = random.Random(ROUNDS)
    killed: set[Life] = set()
    rounds = max(3, ROUNDS // 5)
    async with real(deadline_s=15 * rounds) as here:
        allow_tools(here)
        session = await here.session()
        await play(session, "%say first")
        for number in range(rounds):
            acting = asyncio.create_task(act(session))
            await asyncio.sleep(chance.uniform(0, 0.5))
            kill(session, killed)
            await result_of(await acting)
            _, result = await play(session, f"%say next {number}")
            assert (result.status, result.text) == ("completed", f"next {number}")
    await until(lambda: not any(life.goes_on for life in killed))


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_killed_during_its_start_the_next_start_works() -> None:
    """The start fails or not; nothing is left of it."""
    chance = random.Random(ROUNDS)
    rounds = max(3, ROUNDS // 5)
    async with real(deadline_s=15 * rounds) as here:
        before = await asyncio.to_thread(children)
        for number in range(rounds):
            opening = asyncio.create_task(here.session())
            await asyncio.sleep(chance.uniform(0, 0.5))
            for pid in await asyncio.to_thread(children) - before:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                session = await opening
            except LanewayError:
                session = await here.session()
            _, result = await play(session, f"%say next {number}")
            assert result.text == f"next {number}"
            await session.close()
        await until(lambda: children() <= before)


def children() -> set[int]:
    """Processes of Claude Code below this one, by their names."""
    return {pid for pid in descendants(os.getpid()) if name_of(pid) == "claude"}


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
