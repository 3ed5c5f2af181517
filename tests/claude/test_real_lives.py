"""The life of a thread's process: resumed, forked, locked, asleep, killed at any instant."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from laneway.base.errors import ActiveWriter, EngineCannot, NotLoggedIn, ThreadUnknown
from laneway.claude.awake import AwakeThreads
from laneway.claude.inputs import content_of
from laneway.claude.thread import ClaudeThread
from laneway.claude.turns import Input
from laneway.core.model import (
    Accepted,
    Answer,
    Asked,
    EngineBack,
    EngineGone,
    Event,
    FromSubagent,
    Notice,
    Outlived,
    Text,
    TurnDone,
    TurnStarted,
    Withdrawn,
)
from laneway.core.ports import TextPart, TurnSpec
from laneway.core.session import Session
from tests.claude.support import ME, ClaudeStage, real, tool
from tests.codex.support import first, only, play, say
from tests.core.support import until


def thread_of(session: Session) -> ClaudeThread:
    thread = session._handle.thread
    assert isinstance(thread, ClaudeThread)
    return thread


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def transcript(here: ClaudeStage, thread_id: str) -> str:
    found = here.rehearsal.engine._setup.transcripts.find(thread_id)
    return "" if found is None else found.read_text()


def prompts(here: ClaudeStage, thread_id: str) -> list[str]:
    """What was said in a session, in the order of its transcript."""
    entries = [json.loads(line) for line in transcript(here, thread_id).splitlines() if line.startswith("{")]
    contents = [entry["message"]["content"] for entry in entries if entry.get("type") == "user"]
    texts = [each if isinstance(each, str) else each[-1].get("text", "") for each in contents]
    return [text for text in texts if text.startswith("%")]


async def test_a_session_is_resumed_with_its_history() -> None:
    """By its id, by another engine, once the first has released it."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say remember me")
        thread_id = session.thread_id
        await session.close()
        again = await here.hub.resume(ME, thread_id, here.spec())
        await play(again, "%say fine")
        assert again.thread_id == thread_id
        assert "remember me" in here.model_input()


async def test_a_fork_goes_its_own_way() -> None:
    """It has the history, and adds nothing to the original."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say remember me")
        copy = await here.hub.fork(ME, session.thread_id, here.spec())
        await play(copy, "%say only in the copy")
        assert "remember me" in here.model_input()
        assert copy.thread_id != session.thread_id
        assert "only in the copy" not in transcript(here, session.thread_id)


@pytest.mark.parametrize("thread_id", ["a609a162-2226-4f7c-be80-85b3d058e61c", "../../etc/passwd", "--help"])
async def test_an_unknown_session_is_an_error_that_names_it(thread_id: str) -> None:
    """Whatever it looks like, and no process is started for it."""
    async with real() as here:
        with pytest.raises(ThreadUnknown, match="Claude has no thread"):
            await here.hub.resume(ME, thread_id, here.spec())
        assert here.model.requests == []


async def test_a_session_is_run_by_one_process_at_a_time() -> None:
    """Two would split its history; the second is refused with the name of the first."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say mine")
        other = here.rehearsal.another_engine()
        try:
            with pytest.raises(ActiveWriter, match=f"in use by process {os.getpid()}"):
                await other.resume(session.thread_id, here.spec(), session)
            await session.close()
            thread = await other.resume(session.thread_id, here.spec(), session)
            await thread.release()
        finally:
            await other.aclose()


async def test_without_a_login_nothing_is_opened() -> None:
    """Known from the handshake, without a call of the model; one sentence with the remedy."""
    async with real(variables={"ANTHROPIC_API_KEY": ""}) as here:
        with pytest.raises(NotLoggedIn, match="to Claude: run `laneway login --engine claude`"):
            await here.session()
        assert here.model.requests == []


@pytest.mark.parametrize("sandbox", ["workspace-write", "nonsense"])
async def test_a_sandbox_that_cannot_be_enforced_is_refused(sandbox: str) -> None:
    """With a sentence that says what can be had."""
    async with real() as here:
        with pytest.raises(EngineCannot, match=f"Claude cannot keep to the sandbox {sandbox}. Leave"):
            await here.session(sandbox=sandbox)


async def test_an_idle_session_sleeps_and_wakes_with_its_next_turn() -> None:
    """Nobody is told; the history is the same."""
    async with real(awake=AwakeThreads(idle_s=0.05)) as here:
        session = await here.session()
        events, _ = await play(session, "%say remember me")
        thread = thread_of(session)
        await until(lambda: not thread.is_awake)
        more, result = await play(session, "%say awake")
        assert result.text == "awake"
        assert "remember me" in here.model_input()
        assert only([*events, *more], EngineGone) == []


async def test_a_session_that_is_never_used_sleeps_too() -> None:
    """It was opened, and nobody said anything."""
    async with real(awake=AwakeThreads(idle_s=0.05)) as here:
        session = await here.session()
        await until(lambda: not thread_of(session).is_awake)
        _, result = await play(session, "%say awake")
        assert result.text == "awake"


async def test_what_is_said_behind_a_steer_that_came_too_late_is_answered() -> None:
    """The steer becomes a turn of nobody, and the next turn of somebody follows it."""
    async with real() as here:
        session = await here.session()
        turn = say(session, "%stream 20 words over 1 seconds")
        await first(turn, Text)
        await session.steer((TextPart("%say too late"),))
        await turn.result()
        events, result = await play(session, "%say next")
        assert (result.status, result.text) == ("completed", "next")
        (started,) = [event for event in only(events, TurnStarted) if event.ticket is not None]
        assert only(events, TurnDone)[-1].turn_id == started.turn_id


async def test_another_model_does_not_end_what_still_runs() -> None:
    """A process with another model would be another process: what runs in this one would be lost."""
    async with real() as here:
        session = await here.session()
        command = "$(echo sleep) 30"
        script = tool("Bash", command=command, run_in_background=True, description="wait")
        yes = Answer(choice_id="accept")
        await play(session, script, "%say started", decide=lambda question: yes)
        await until(lambda: not thread_of(session).is_idle)
        spec = TurnSpec(parts=(TextPart("%say other"),), model="claude-sonnet-5")
        with pytest.raises(EngineCannot, match="while something else runs in the session"):
            await session.say(spec).result()
        _, result = await play(session, "%say same")
        assert result.text == "same"


async def test_of_many_idle_sessions_only_some_stay_awake() -> None:
    """The longest unused one sleeps first; one that works does not."""
    async with real(awake=AwakeThreads(max_awake=2)) as here:
        sessions = [await here.session() for _ in range(3)]
        threads = [thread_of(session) for session in sessions]
        await until(lambda: [thread.is_awake for thread in threads] == [False, True, True])
        working = say(sessions[1], "%stream 1000 words over 60 seconds")
        await first(working, Text)
        await play(sessions[0], "%say awake")
        await until(lambda: [thread.is_awake for thread in threads] == [True, True, False])
        working.cancel()
        assert (await working.result()).status == "interrupted"


async def test_a_death_is_told_and_the_next_turn_brings_the_session_back() -> None:
    """The turn that ran is lost, and says how; nothing of it is run again."""
    async with real() as here:
        session = await here.session()
        subscription = session.subscribe()
        turn = say(session, "%run true; touch x", "%say never")
        asked = await first(turn, Asked)
        await until(lambda: session.has_history)
        os.kill(thread_of(session).pid or 0, signal.SIGKILL)
        result = await turn.result()
        assert result.failure is not None
        assert (result.status, result.failure.kind) == ("failed", "engine_lost")
        assert result.failure.message.startswith("Claude ended unexpectedly: killed by SIGKILL")
        _, again = await play(session, "%say back")
        assert again.text == "back"
        await session.close()
        seen = [event async for event in subscription]
        assert [event.how for event in only(seen, EngineGone)] == ["killed by SIGKILL"]
        assert len(only(seen, EngineBack)) == 1
        assert [event.question_id for event in only(seen, Withdrawn)] == [asked.question.question_id]
        assert prompts(here, session.thread_id) == ["%run true; touch x\n%say never", "%say back"]


async def test_what_runs_in_the_background_is_told_to_be_over_when_its_process_dies() -> None:
    """A command and a subagent that their turn did not wait for; the next turn works."""
    async with real() as here:
        # A question of the helper's would be taken back at the end of the turn, at any instant.
        (here.rehearsal.folder.config / "settings.json").write_text('{"permissions": {"allow": ["Bash"]}}')
        session = await here.session()
        subscription = session.subscribe()
        wait = "$(echo sleep) 600"
        helper = {"description": "a helper", "prompt": f"%run {wait}", "subagent_type": "general-purpose"}
        script = (
            tool("Bash", command=wait, run_in_background=True),
            tool("Agent", **helper, run_in_background=True),
        )
        await play(session, *script, "%say parent")
        await until(lambda: len(thread_of(session)._reader.background) == 2)
        os.kill(thread_of(session).pid or 0, signal.SIGKILL)
        seen: list[Event] = []
        async for event in subscription:
            seen.append(event)
            if isinstance(event, EngineGone):
                break
        assert [event.activity.status for event in only(seen, Outlived)] == ["interrupted"]
        inner = [event.inner for event in only(seen, FromSubagent)]
        assert [done.status for done in only(inner, TurnDone)] == ["failed"]
        _, result = await play(session, "%say back")
        assert result.text == "back"


async def test_nothing_is_left_when_claude_code_is_killed() -> None:
    """Not its commands either, wherever they went: the guardian ends them."""
    async with real() as here:
        session = await here.session()
        note = here.work / "pids"
        inner = f"import os,time; open({str(note)!r},'a').write(str(os.getpid())+' '); time.sleep(600)"
        command = f"setsid python3 -c {shlex.quote(inner)} & python3 -c {shlex.quote(inner)}"
        turn = say(session, f"%run {command}")
        asked = await first(turn, Asked)
        await session.answer(asked.question.question_id, Answer(choice_id="accept"))
        await until(lambda: note.exists() and len(note.read_text().split()) == 2)
        pids = [int(pid) for pid in note.read_text().split()]
        assert all(map(is_alive, pids))
        os.kill(thread_of(session).pid or 0, signal.SIGKILL)
        assert (await turn.result()).status == "failed"
        await until(lambda: not any(map(is_alive, pids)))


async def test_an_input_that_a_crash_lost_is_sent_again() -> None:
    """Before it stood in the transcript: the turn goes on, and whoever watches is told."""
    async with real() as here:
        session = await here.session()
        killed: list[int] = []

        def kill(event: Event) -> None:
            if isinstance(event, TurnStarted) and not killed:
                killed.append(thread_of(session).pid or 0)
                os.kill(killed[0], signal.SIGKILL)

        session.attach(Killer(kill))
        events, result = await play(session, "%say taken once")
        assert (result.status, result.text) == ("completed", "taken once")
        assert len(only(events, TurnStarted)) == len(only(events, TurnDone)) == 1
        assert len(only(events, Accepted)) == 1
        (notice,) = only(events, Notice)
        assert "sent again" in notice.message
        assert prompts(here, session.thread_id) == ["%say taken once"]


class Killer:
    """A reader that does something with each event, on the engine's reader."""

    lost = 0

    def __init__(self, do: Callable[[Event], None]) -> None:
        self._do = do

    def push(self, event: Event) -> None:
        self._do(event)

    def close(self) -> None:
        pass


async def test_what_stands_in_the_transcript_and_is_sent_again_is_left_out_and_its_turn_ends() -> None:
    """The real Claude Code says only that it is completed; nothing is said twice, and nobody waits."""
    async with real() as here:
        session = await here.session()
        _, result = await play(session, "%say first")
        thread = thread_of(session)
        assert result.turn_id is not None
        again = Input(result.turn_id, "again", content_of((TextPart("%say first"),)), "", is_turn=True)
        again.resent = 1
        # It is sent again only to a new process; one that has just had it may not say that it is completed.
        await until(lambda: not thread._reader.is_busy)
        await thread._end_process()
        process = await thread._awake(thread._wanted)
        thread._reader.turns.expect(again)
        process.send_input(again.uuid, again.content)
        assert await again.begun == result.turn_id
        assert not thread._reader.is_busy
        _, result = await play(session, "%say second")
        assert result.text == "second"
        assert prompts(here, session.thread_id) == ["%say first", "%say second"]
