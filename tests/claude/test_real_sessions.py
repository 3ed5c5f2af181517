"""A session that becomes another one, is open elsewhere, or of which nothing is left to resume."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from laneway.base.errors import ActiveWriter, EngineCannot, ThreadUnknown, UsageError
from laneway.claude import locate
from laneway.claude.awake import AwakeThreads
from laneway.claude.transcript import TranscriptFiles
from laneway.core.model import Accepted, Notice, Other, ThreadKnown, UserSaid
from laneway.core.ports import TextPart, TurnSpec
from laneway.testing.claude import say as say_at
from laneway.testing.terminal import terminal
from tests.claude.pretending import GREETS, pretending, session_of
from tests.claude.support import ME, ClaudeStage, real
from tests.claude.test_real_lives import thread_of
from tests.codex.support import only, play
from tests.core.support import until


def transcripts_of(here: ClaudeStage) -> TranscriptFiles:
    return TranscriptFiles(here.rehearsal.folder.config)


# ── another conversation ───────────────────────────────────────────────────


async def test_a_session_that_is_cleared_goes_on_as_another_one() -> None:
    """Under the id that Claude Code gives it: inputs are taken, and it wakes without what was forgotten."""
    async with real(compose=lambda session: "context of ours") as here:
        session = await here.session()
        await play(session, "%say elephant")
        before = session.thread_id
        events, result = await play(session, "/clear")
        assert (result.status, len(only(events, Accepted))) == ("completed", 1)
        (known,) = only(events, ThreadKnown)
        assert session.thread_id == known.thread_id == thread_of(session).thread_id != before
        (notice,) = only(events, Notice)
        assert notice.message == (
            "Claude began a new conversation: it remembers nothing of what was said before."
        )
        assert only(events, Other) == []
        events, _ = await play(session, "%say giraffe")
        assert len(only(events, Accepted)) == 1
        assert "elephant" not in here.model_input()
        assert here.model_input().count("context of ours") == 1  # it is not in the new conversation yet
        await thread_of(session).sleep()
        events, result = await play(session, "%say awake")
        assert (result.text, len(only(events, Accepted))) == ("awake", 1)
        assert "giraffe" in here.model_input()
        assert "elephant" not in here.model_input()
        said = [event.text for event in only(list((await session.history()).events), UserSaid)]
        assert said == ["%say giraffe", "%say awake"]


async def test_both_conversations_can_be_resumed_once_it_was_cleared_and_only_the_new_one_is_locked() -> None:
    """What was forgotten belongs to nobody any more."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say elephant")
        before = session.thread_id
        await play(session, "/clear")
        await play(session, "%say giraffe")
        other = here.rehearsal.another_engine()
        try:
            with pytest.raises(ActiveWriter, match=f"in use by process {os.getpid()}"):
                await other.resume(session.thread_id, here.spec(), session)
            thread = await other.resume(before, here.spec(), session)
            await thread.release()
        finally:
            await other.aclose()


async def test_one_that_is_cleared_before_anything_else_wakes_as_well() -> None:
    """There is a conversation, and nothing was said in it."""
    async with real() as here:
        session = await here.session()
        await play(session, "/clear")
        await thread_of(session).sleep()
        events, result = await play(session, "%say awake")
        assert (result.text, len(only(events, Accepted))) == ("awake", 1)


@pytest.mark.parametrize("command", ["/exit", "/login", "/resume", "/cost", "/model"])
async def test_a_command_of_claude_codes_own_is_answered_and_counts_as_taken(command: str) -> None:
    """Also one that it does not have here; and it can be all that was said before the session sleeps."""
    async with real() as here:
        session = await here.session()
        events, result = await play(session, command)
        assert (result.status, len(only(events, Accepted))) == ("completed", 1)
        assert result.text
        await thread_of(session).sleep()
        _, result = await play(session, "%say awake")
        assert result.text == "awake"


# ── a copy ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "spec", [TurnSpec(parts=()), TurnSpec(parts=(), model="claude-sonnet-5")], ids=["asleep", "model"]
)
async def test_a_copy_knows_what_was_said_though_its_first_process_took_no_turn(spec: TurnSpec) -> None:
    """It slept before, or the first turn has another model: Claude Code had written nothing of the copy."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say elephant")
        copy = await here.hub.fork(ME, session.thread_id, here.spec())
        thread_id = copy.thread_id
        if spec.model is None:
            await thread_of(copy).sleep()
        result = await copy.say(replace(spec, parts=(TextPart("%say giraffe"),))).result()
        assert result.text == "giraffe"
        assert "elephant" in here.model_input()
        await thread_of(copy).sleep()
        await play(copy, "%say second")
        assert "elephant" in here.model_input()
        assert "giraffe" in here.model_input()
        assert copy.thread_id == thread_id
        await play(session, "%say original")
        assert "giraffe" not in here.model_input()


# ── open elsewhere ─────────────────────────────────────────────────────────


async def test_a_session_that_the_users_own_claude_code_has_open_is_refused_by_its_name() -> None:
    """Two processes would split its history. It is free again when that one has ended."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say mine")
        await thread_of(session).sleep()
        argv = [locate.find().path, f"--resume={session.thread_id}"]
        environment = here.rehearsal.environment | {"TERM": "xterm-256color"}
        async with terminal(argv, env=environment, cwd=here.work) as screen:
            await screen.wait_for("❯")
            await say_at(screen, "%say theirs")
            await screen.wait_for("● theirs")
            with pytest.raises(ActiveWriter, match=r"is in use by process \d+; fork it"):
                await session.say(TurnSpec(parts=(TextPart("%say split"),))).result()
        _, result = await play(session, "%say both")
        assert result.text == "both"
        assert "theirs" in here.model_input()
        assert "split" not in here.model_input()


async def test_the_mark_of_a_claude_code_that_was_killed_refuses_nobody() -> None:
    """Its file stays, and its process id may be another process's by now."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say mine")
        (mark,) = (here.rehearsal.folder.config / "sessions").glob("*.json")
        left = json.loads(mark.read_text())
        await thread_of(session).sleep()
        mark.write_text(json.dumps(left))
        mark.with_name("1.json").write_text(json.dumps({**left, "pid": os.getpid()}))
        mark.with_name("2.json").write_text("{")
        _, result = await play(session, "%say awake")
        assert result.text == "awake"


# ── nothing to resume ──────────────────────────────────────────────────────


async def test_a_session_whose_transcript_was_deleted_is_unknown_and_does_not_begin_anew() -> None:
    """A model that has forgotten everything must not be taken for the one that was spoken to."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say elephant")
        await thread_of(session).sleep()
        path = transcripts_of(here).find(session.thread_id)
        assert path is not None
        path.unlink()
        asked = len(here.model.requests)
        with pytest.raises(ThreadUnknown, match=f"Claude has no thread {session.thread_id}"):
            await session.say(TurnSpec(parts=(TextPart("%say two"),))).result()
        assert len(here.model.requests) == asked


async def test_a_transcript_that_is_deleted_while_it_is_written_is_begun_anew() -> None:
    """Inputs count as taken as before."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say elephant")
        path = transcripts_of(here).find(session.thread_id)
        assert path is not None
        path.unlink()
        events, _ = await play(session, "%say two")
        assert len(only(events, Accepted)) == 1


@pytest.mark.parametrize("by_user", [True, False])
async def test_a_session_of_which_nothing_is_written_down_stays_awake(by_user: bool) -> None:
    """Its memory would be lost, also with another model; whether we or the user asked for it."""
    awake = AwakeThreads(idle_s=0.01, max_awake=0)
    variables = {"CLAUDE_CODE_SKIP_PROMPT_HISTORY": "1"} if by_user else {}
    async with real(awake=awake, variables=variables) as here:
        session = await here.session(ephemeral=not by_user)
        await until(lambda: not thread_of(session).is_awake)  # nothing is lost yet
        events, _ = await play(session, "%say elephant")
        assert len(only(events, Accepted)) == 1
        await thread_of(session).sleep()
        with pytest.raises(EngineCannot, match="in a session of which nothing is written down"):
            await session.say(TurnSpec(parts=(TextPart("%say other"),), model="claude-sonnet-5")).result()
        await play(session, "%say two")
        assert "elephant" in here.model_input()
        assert [*here.rehearsal.folder.config.glob("projects/*/*.jsonl")] == []


async def test_a_claude_code_that_writes_no_transcript_at_all_is_found_out(tmp_path: Path) -> None:
    """Whatever keeps it from that: its inputs count as taken, and it does not sleep."""
    script = f"""{GREETS}
usage = {{{{"input_tokens": 1, "output_tokens": 1}}}}
while True:
    begin()
    say(type="stream_event", event={{{{"type": "message_delta", "usage": usage}}}})
    say(type="result", subtype="success", is_error=False, result="done")
"""
    async with pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        for prompt in ("one", "two"):
            events, result = await play(session, prompt)
            assert (result.text, len(only(events, Accepted))) == ("done", 1)
        await thread_of(session).sleep()
        assert thread_of(session).is_awake


async def test_a_folder_that_is_gone_is_named_and_the_session_goes_on_when_it_is_back() -> None:
    """The start fails for the folder, not for Claude Code."""
    async with real() as here:
        folder = here.work / "sub"
        folder.mkdir()
        session = await here.session(cwd=folder)
        await play(session, "%say elephant")
        await thread_of(session).sleep()
        folder.rmdir()
        with pytest.raises(UsageError, match=f"There is no folder {folder}"):
            await session.say(TurnSpec(parts=(TextPart("%say two"),))).result()
        folder.mkdir()
        _, result = await play(session, "%say back")
        assert result.text == "back"
        assert "elephant" in here.model_input()


async def test_an_unknown_folder_is_named_at_the_start() -> None:
    async with real() as here:
        with pytest.raises(UsageError, match=f"There is no folder {here.work}/nowhere"):
            await here.hub.start(ME, here.spec(cwd=here.work / "nowhere"))
