"""What every engine must do, as tests: a test class derives from `EngineKit` and sets the engine up.

The tests speak to the engine through a `Hub` and make its model act by a `KitScript`. An engine declares
what it can (`Offers`), and its set-up what else it has (`KitStage.has`). A test that needs more is skipped
with the reason, and where the lack can be seen, it is checked instead of skipped. Needs no pytest itself.
"""

from __future__ import annotations

import asyncio
import os
import unittest
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.errors import EngineCannot, QuestionGone, SessionClosed, ThreadUnknown
from laneway.core.hub import Hub
from laneway.core.model import (
    DECLINE,
    Accepted,
    Activity,
    Answer,
    Asked,
    Event,
    Other,
    Output,
    Text,
    TurnDone,
    TurnStarted,
    UserSaid,
    Withdrawn,
)
from laneway.core.offers import Compaction, ReviewUncommitted
from laneway.core.ports import ImagePart, TextPart, ThreadSpec, TurnSpec
from laneway.core.session import Session
from laneway.testing.processes import runs, wait_gone
from laneway.testing.turns import by_item, caught, first, granting, only, played, say
from laneway.wire.guardian import descendants

ME = "kit"
DEADLINE_S = 90.0
"""For one test with real processes on a busy machine."""
LOOK_S = 0.01
"""Between two looks at what other processes do."""
KNOWN_BY_NOBODY = "01a1e340-0000-7000-8000-000000000000"

Has: TypeAlias = Literal["reads", "words", "session_grants", "history_pages"]
"""`reads`: tools that look at files; `words`: passes words with a no on; `session_grants`: a yes may hold
for the session; `history_pages`: the history has pages."""


class KitScript:
    """The lines of a prompt that make the engine's model act. An engine may spell them differently."""

    def say(self, text: str) -> str:
        return f"%say {text}"

    def stream(self, words: int, over_s: float = 0) -> str:
        return f"%stream {words} words over {over_s} seconds"

    def run(self, command: str) -> str:
        """Run a command without asking."""
        return f"%run {command}"

    def run_asking(self, command: str) -> str:
        """Run a command that needs approval."""
        return f"%run! {command}"

    def twice(self, work: Path) -> tuple[str, str]:
        """Two steps that ask for the same; a yes for the session to the first covers the second."""
        line = self.run_asking(f"touch {work}/again")
        return line, line

    def edit(self, path: str, old: str, new: str) -> str:
        return f"%edit {path} {old} => {new}"

    def read(self, path: str) -> str:
        return f"%read {path}"

    def ask(self, question: str, *options: str) -> str:
        return f"%ask {question} {' | '.join(options)}"


class KitStage(msgspec.Struct, frozen=True, kw_only=True):
    """An engine behind a hub, with a scripted model, for one test."""

    hub: Hub
    work: Path
    """The folder to work in."""
    heard: Callable[[], str]
    """All that the model was given in its latest request, as one text."""
    kill: Callable[[Session], Awaitable[None]]
    """Kill the process that runs the session's thread."""
    unknown: Callable[[Session], None]
    """Have the engine receive something of the name `kit/unheardOf` that no version knows."""
    another: Callable[[], Hub]
    """Another hub on another engine of the same kind, which finds the same threads."""
    script: KitScript = KitScript()
    has: frozenset[Has] = frozenset()
    spec: dict[str, Any] = {}
    """Fields of every thread's `ThreadSpec`."""
    free: dict[str, Any] = {}
    """Further ones for a thread whose commands are not confined."""

    async def session(self) -> Session:
        return await self.hub.start(ME, ThreadSpec(cwd=self.work, **self.spec))

    async def resumed(self, hub: Hub, thread_id: str) -> Session:
        return await hub.resume(ME, thread_id, ThreadSpec(cwd=self.work, **self.spec))


class EngineKit:
    """Derive a test class from it, and define `stage`."""

    def stage(self) -> AbstractAsyncContextManager[KitStage]:
        """An engine that has not started anything; everything is gone at the end."""
        raise NotImplementedError

    # ── turns ──────────────────────────────────────────────────────────────

    async def test_a_turn_begins_is_accepted_streams_and_ends_once(self) -> None:
        """One start that names its ticket, one end, and it is the last."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            assert session.thread_id or not session.has_history
            turn = say(session, here.script.say("hello there"))
            events, result = await played(session, turn)
            (started,) = only(events, TurnStarted)
            assert started.ticket == turn.ticket
            assert only(events, TurnDone) == [events[-1]]
            (done,) = only(events, TurnDone)
            assert (done.status, done.turn_id, done.text) == ("completed", started.turn_id, "hello there")
            assert (result.status, result.text, result.turn_id) == (
                "completed",
                "hello there",
                started.turn_id,
            )
            accepted = only(events, Accepted)
            assert turn.ticket in [event.client_id or turn.ticket for event in accepted]
            assert events.index(started) < events.index(accepted[0]) < len(events) - 1
            assert here.script.say("hello there") in here.heard()
            assert session.thread_id

    async def test_text_comes_in_pieces_and_in_order(self) -> None:
        """Joined they are the final text."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            events, result = await played(session, say(session, here.script.stream(300, 0.5)))
            pieces = only(events, Text)
            assert len(pieces) > 1
            assert "".join(piece.text for piece in pieces).strip() == result.text.strip()
            assert len(result.text.split()) == 300

    async def test_two_threads_work_at_once_and_each_hears_its_own(self) -> None:
        """Whether they share a process or not."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            sessions = [await here.session(), await here.session()]
            assert sessions[0].agent_id != sessions[1].agent_id
            turns = [say(session, here.script.say(f"answer {n}")) for n, session in enumerate(sessions)]
            ended = await asyncio.gather(
                *(played(session, turn) for session, turn in zip(sessions, turns, strict=True))
            )
            assert [result.text for _, result in ended] == ["answer 0", "answer 1"]
            for number, (events, _) in enumerate(ended):
                assert "".join(piece.text for piece in only(events, Text)) == f"answer {number}"
            assert sessions[0].thread_id != sessions[1].thread_id

    async def test_what_nobody_knows_is_handed_on_and_disturbs_nothing(self) -> None:
        """As `Other`, in the middle of a turn."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            turn = say(
                session, here.script.run_asking(f"touch {here.work}/kit"), here.script.say("still here")
            )
            asked = await first(turn, Asked)
            here.unknown(session)
            await session.answer(asked.question.question_id, granting(asked.question, "once"))
            events, result = await played(session, turn)
            assert "kit/unheardOf" in [event.method for event in only(events, Other)]
            assert result.text == "still here"

    # ── activities ─────────────────────────────────────────────────────────

    async def test_a_command_has_its_output_and_its_exit_code(self) -> None:
        """Begun once and ended once; live output, if any, is not told twice."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            offers = session.engine.offers
            lines = (here.script.run("echo loud"), here.script.run("echo low; exit 3"))
            events, result = await played(session, say(session, *lines, here.script.say("done")))
            assert result.text == "done"
            for (begun, *_, over), text, code in zip(
                by_item(events, "command"), ("loud", "low"), (0, 3), strict=True
            ):
                assert (begun.status, over.status != "running") == ("running", True)
                assert text in (over.output or "")
                # Where codes are not always known, one that is known is right.
                assert over.exit_code == code or (over.exit_code is None and not offers.exit_codes)
                live = "".join(event.text for event in only(events, Output) if event.item_id == over.item_id)
                # What no `Output` carried is in `late_output`: each character once.
                assert len(live) + len(over.late_output) == len(over.output or "")
                assert offers.live_output or not live
                assert not over.is_cut

    async def test_an_edit_shows_its_change_as_a_diff(self) -> None:
        """By path, as hunks without file headers."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            path = here.work / "kit.txt"
            path.write_text("one\ntwo\nthree\n")
            session = await here.session()
            line = here.script.edit(str(path), "two", "2")
            events, _ = await played(session, say(session, line), decide="once")
            assert path.read_text() == "one\n2\nthree\n"
            ((*_, over),) = by_item(events, "edit")
            assert over.status == "completed"
            (change,) = over.changes
            assert (Path(change.path).name, change.kind) == ("kit.txt", "update")
            assert "-two\n+2\n" in change.diff
            assert not change.diff.startswith(("---", "diff "))
            assert [Path(location.path).name for location in over.locations] == ["kit.txt"]

    async def test_what_is_read_is_shown_as_a_read(self) -> None:
        """With the place that was looked at."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            needs(here, "reads", "has no tool that looks at files: it runs commands")
            path = here.work / "kit.txt"
            path.write_text("the word is lane\n")
            session = await here.session()
            line = here.script.read(str(path))
            events, _ = await played(session, say(session, line), decide="once")
            ((begun, *_, over),) = by_item(events, "read")
            assert (begun.status, over.status) == ("running", "completed")
            assert over.look is not None
            assert (over.look.purpose, Path(over.look.path).name) == ("read", "kit.txt")
            assert "the word is lane" in here.heard()

    # ── questions ──────────────────────────────────────────────────────────

    async def test_a_yes_lets_it_run_and_a_no_does_not(self) -> None:
        """Asked with the command; the turn goes on after both."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            for decision in ("once", "nothing"):
                marker = here.work / decision
                line = here.script.run_asking(f"touch {marker}")
                turn = say(session, line, here.script.say("over"))
                events, result = await played(session, turn, decide=decision)
                (asked,) = only(events, Asked)
                assert (asked.question.kind, result.text) == ("command", "over")
                assert f"touch {marker}" in (asked.question.command or "")
                assert asked.question.engine == session.engine.name
                assert asked.question.turn_id in (None, result.turn_id)
                gone = [event.question_id for event in only(events, Withdrawn)]
                assert asked.question.question_id in gone
                assert marker.exists() == (decision == "once")

    async def test_a_yes_for_the_session_is_asked_for_once(self) -> None:
        """The same again needs no question."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            needs(here, "session_grants", "offers no yes for the session here")
            session = await here.session()
            asked = []
            for line in here.script.twice(here.work):
                events, _ = await played(session, say(session, line), decide="session")
                asked.append(len(only(events, Asked)))
            assert asked == [1, 0]

    async def test_words_with_a_no_reach_the_model(self) -> None:
        """Or no choice offers them."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            turn = say(
                session, here.script.run_asking(f"touch {here.work}/kit"), here.script.say("as you like")
            )
            asked = await first(turn, Asked)
            choice = asked.question.words_choice
            if choice is None:
                assert "words" not in here.has
                await session.answer(asked.question.question_id, DECLINE)
            else:
                answer = Answer(choice_id=choice.choice_id, words="use a screwdriver instead")
                await session.answer(asked.question.question_id, answer)
            result = await turn.result()
            assert result.text == "as you like"
            assert ("use a screwdriver instead" in here.heard()) == ("words" in here.has)

    async def test_a_question_of_the_model_takes_a_choice(self) -> None:
        """By its label; the model is told."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            turn = say(session, here.script.ask("Which?", "red", "blue"), here.script.say("noted"))
            asked = await first(turn, Asked)
            (field,) = asked.question.fields
            assert (asked.question.kind, field.text) == ("input", "Which?")
            assert [option.label for option in field.options] == ["red", "blue"]
            value = ["blue"] if field.is_multiple else "blue"
            answer = msgspec.structs.replace(granting(asked.question, "once"), values={field.field_id: value})
            await session.answer(asked.question.question_id, answer)
            assert (await turn.result()).text == "noted"
            assert "blue" in here.heard()

    async def test_an_interrupt_withdraws_the_open_question(self) -> None:
        """Before the turn is done; a late answer is told so."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            turn = say(session, here.script.run_asking(f"touch {here.work}/never"))
            question = (await first(turn, Asked)).question
            turn.cancel()
            events = [event async for event in turn.events]
            assert (await turn.result()).status == "interrupted"
            assert [event.question_id for event in only(events, Withdrawn)] == [question.question_id]
            assert isinstance(events[-1], TurnDone)
            assert session.questions == []
            assert await caught(
                QuestionGone, session.answer(question.question_id, granting(question, "once"))
            )
            assert not (here.work / "never").exists()

    # ── interrupts and steering ────────────────────────────────────────────

    async def test_an_interrupt_ends_the_turn_and_the_next_one_works(self) -> None:
        """In the middle of its text, and in a running command, which ends too."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            lines: list[tuple[type[Event], str]] = [
                (Text, here.script.stream(1000, 60)),
                (Activity, here.script.run("sleep 600")),
            ]
            for kind, line in lines:
                turn = say(session, line)
                await first(turn, kind)
                turn.cancel()
                events = [event async for event in turn.events]
                result = await turn.result()
                assert (result.status, result.stopped_by) == ("interrupted", "cancel")
                assert isinstance(events[-1], TurnDone)
                _, again = await played(session, say(session, here.script.say("fine")))
                assert again.text == "fine"

    async def test_what_is_added_to_a_running_turn_is_taken_up_or_refused(self) -> None:
        """In the same turn, with its ticket; an engine that cannot says so in a sentence."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            turn = say(session, here.script.run_asking(f"touch {here.work}/kit"), here.script.say("old plan"))
            asked = await first(turn, Asked)
            steering = session.steer((TextPart(here.script.say("new plan")),), ticket="kit-steer")
            cannot = await caught(EngineCannot, steering)
            assert (cannot is None) == session.engine.offers.steering
            assert cannot is None or cannot.engine == session.engine.name
            await session.answer(asked.question.question_id, granting(asked.question, "once"))
            events, result = await played(session, turn)
            assert result.status == "completed"
            assert result.text == ("new plan" if cannot is None else "old plan")
            assert only(events, TurnStarted) == []

    # ── threads ────────────────────────────────────────────────────────────

    async def test_a_dead_process_fails_its_turn_and_the_next_one_resumes(self) -> None:
        """In the engine's name, with what was said before; threads with another process live on."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session, other = await here.session(), await here.session()
            await played(session, say(session, here.script.say("remember the milk")))
            await played(other, say(other, here.script.say("hello")))
            turn = say(session, here.script.stream(1000, 60))
            # Input that was lost may be sent again: only what was accepted is lost with its process.
            missing = {Accepted, Text}
            async for event in turn.events:
                missing.discard(type(event))
                if not missing:
                    break
            await here.kill(session)
            result = await turn.result()
            assert result.status == "failed"
            assert result.failure is not None
            assert result.failure.kind == "engine_lost"
            assert result.failure.message.startswith(f"{session.engine.name} ended unexpectedly: ")
            assert other.is_engine_lost == session.engine.shares_process
            _, again = await played(session, say(session, here.script.say("back again")))
            assert again.text == "back again"
            assert "remember the milk" in here.heard()
            _, again = await played(other, say(other, here.script.say("me too")))
            assert again.text == "me too"

    async def test_a_closed_thread_is_resumed_elsewhere(self) -> None:
        """With its history, under its id."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            await played(session, say(session, here.script.say("the word is lane")))
            thread_id = session.thread_id
            await session.close()
            await here.hub.wait_gone(session.agent_id)
            async with here.another() as elsewhere:
                resumed = await here.resumed(elsewhere, thread_id)
                assert resumed.thread_id == thread_id
                _, result = await played(resumed, say(resumed, here.script.say("here")))
                assert result.text == "here"
                assert "the word is lane" in here.heard()

    async def test_a_thread_that_nobody_knows_is_an_error_of_its_own(self) -> None:
        """In the engine's name."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            unknown = await caught(ThreadUnknown, here.resumed(here.hub, KNOWN_BY_NOBODY))
            assert unknown is not None
            assert unknown.thread_id == KNOWN_BY_NOBODY
            assert str(unknown).startswith(f"{here.hub.engine.name} has no thread")

    async def test_a_copy_knows_what_was_said_and_goes_its_own_way(self) -> None:
        """Under an id of its own."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            if not session.engine.offers.forks:
                raise unittest.SkipTest(f"{session.engine.name} declares that it makes no copies")
            await played(session, say(session, here.script.say("the word is lane")))
            copy = await here.hub.fork(ME, session.thread_id, ThreadSpec(cwd=here.work, **here.spec))
            _, result = await played(copy, say(copy, here.script.say("only in the copy")))
            assert result.text == "only in the copy"
            assert "the word is lane" in here.heard()
            assert copy.thread_id != session.thread_id
            await played(session, say(session, here.script.say("in the original")))
            assert "only in the copy" not in here.heard()

    async def test_what_it_declares_not_to_have_is_refused_in_its_name(self) -> None:
        """Before the turn begins; the thread can be used."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            offers, text = session.engine.offers, (TextPart(here.script.say("hello")),)
            lacking: list[TurnSpec] = []
            if not offers.images:
                lacking.append(TurnSpec(parts=(*text, ImagePart(url="data:image/png;base64,iVBORw0KGgo="))))
            if not offers.schemas:
                lacking.append(TurnSpec(parts=text, output_schema={"type": "object"}))
            if not offers.reviews:
                lacking.append(TurnSpec(parts=(), special_turn=ReviewUncommitted()))
            if not offers.compaction:
                lacking.append(TurnSpec(parts=(), special_turn=Compaction()))
            for spec in lacking:
                cannot = await caught(EngineCannot, session.say(spec).result())
                assert cannot is not None
                assert str(cannot).startswith(f"{session.engine.name} cannot ")
            _, result = await played(session, say(session, here.script.say("fine")))
            assert result.text == "fine"
            if not offers.forks:
                copy = ThreadSpec(cwd=here.work, **here.spec)
                assert await caught(EngineCannot, here.hub.fork(ME, session.thread_id, copy))

    async def test_the_history_is_the_same_events(self) -> None:
        """The newest page first, oldest first within it; pages lead back to the first turn."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            for number in range(3):
                await played(session, say(session, here.script.say(f"answer {number}")))
            page = await session.history(limit=2)
            newest = [event.text for event in only(list(page.events), Text)]
            if "history_pages" not in here.has:
                assert (newest, page.older) == (["answer 0", "answer 1", "answer 2"], None)
                return
            assert newest == ["answer 1", "answer 2"]
            assert page.older is not None
            older = await session.history(page.older, limit=2)
            kinds = [type(event) for event in older.events]
            assert kinds == [TurnStarted, UserSaid, Text, TurnDone]
            assert only(list(older.events), UserSaid)[0].text == here.script.say("answer 0")

    async def test_a_thread_is_found_in_the_list(self) -> None:
        """By its folder."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            session = await here.session()
            await played(session, say(session, here.script.say("hello")))
            listed = await session.engine.list_threads(cwd=here.work)
            assert session.thread_id in [info.thread_id for info in listed.threads]

    async def test_a_shutdown_leaves_nothing_running(self) -> None:
        """Commands included, also those that left their process group."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            before = set(descendants(os.getpid()))
            session = await here.hub.start(ME, ThreadSpec(cwd=here.work, **(here.spec | here.free)))
            turn = say(session, here.script.run("setsid sleep 601 & sleep 600"))
            playing = asyncio.ensure_future(played(session, turn))
            tree: list[int] = []
            while sum(runs(pid, "sleep") for pid in tree) < 2:
                await asyncio.sleep(LOOK_S)
                tree = [pid for pid in descendants(os.getpid()) if pid not in before]
            await here.hub.shutdown()
            await playing
            for pid in tree:
                await wait_gone(pid)
            assert await caught(SessionClosed, here.session())


# ── what the tests are made of ─────────────────────────────────────────────


def needs(here: KitStage, ability: Has, why: str) -> None:
    """Skip a test by design, aloud."""
    if ability not in here.has:
        raise unittest.SkipTest(f"{here.hub.engine.name} {why}")
