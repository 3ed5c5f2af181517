"""A plugin as a lane: started once, one turn at a time, and no turn that it can keep from ending."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import SessionClosed, UsageError
from laneway.core.model import DECLINE, Answer, Asked, Failure, Notice, Text, TurnDone, Withdrawn
from laneway.lanes.adapter import INTERRUPT_S
from laneway.lanes.asking import FIELD, GRACE_S
from laneway.lanes.contract import Lane, LaneSummary, LaneTurn
from laneway.lanes.protocol import LaneInput
from tests.lanes.samples import Painter, PluginStage, kinds, registered, settle
from tests.lanes.test_registry import aider

pytestmark = pytest.mark.usefixtures("fresh_registry")


def yes(text: str) -> Answer:
    return Answer(choice_id="accept", values={FIELD: text})


@pytest.mark.covers("003-lane.4")
async def test_a_turn_shows_what_the_plugin_says_and_hands_back_its_summary(tmp_path: Path) -> None:
    """Accepted with its first sign of life."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        assert isinstance(stage.lane, Lane)
        done = await stage.heard.play("the shed")
        assert kinds(stage.heard.events) == [
            "TurnStarted",
            "Thought",
            "Accepted",
            "Text",
            "LaneSummary",
            "TurnDone",
        ]
        (summary,) = stage.heard.only(LaneSummary)
        assert (summary.summary, done.status, done.text) == ("painted the shed", "completed", "done")


@pytest.mark.covers("003-lane.11")
async def test_the_documents_sample_takes_a_turn(tmp_path: Path) -> None:
    """It shows nothing and ends."""
    async with PluginStage(aider(), tmp_path) as stage:
        assert (await stage.heard.play("fix it")).status == "completed"
        assert kinds(stage.heard.events) == ["TurnStarted", "Accepted", "TurnDone"]


@pytest.mark.covers("003-lane.3")
async def test_a_plugin_is_started_once_and_only_when_it_is_needed(tmp_path: Path) -> None:
    """And stopped once."""
    cls = registered(Painter)
    async with PluginStage(cls, tmp_path) as stage:
        assert stage.cls.made == []
        await stage.heard.play("one")
        await stage.heard.play("two")
        assert [plugin.calls for plugin in stage.cls.made] == [["start"]]
        assert stage.plugin.cwd == str(tmp_path)
    assert stage.plugin.calls == ["start", "stop"]


@pytest.mark.covers("003-lane.2")
async def test_a_plugin_gets_context_text_and_images(tmp_path: Path) -> None:
    """The context in front, as the document has it."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        turn = LaneTurn(ticket="t", text="the shed", context="<told/>", images=(tmp_path / "a.png",))
        stage.lane.begin(turn)
        await stage.end("t")
        assert stage.plugin.inputs == [LaneInput("<told/>\n\nthe shed", [str(tmp_path / "a.png")])]


async def test_a_second_turn_at_once_is_refused(tmp_path: Path) -> None:
    """The first one goes on."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        ticket = stage.heard.begin("on")
        with pytest.raises(UsageError, match="still in a turn"):
            stage.lane.begin(LaneTurn(ticket="other", text="x"))
        await stage.heard.wait(Text)
        await stage.lane.interrupt()
        assert (await stage.end(ticket)).status == "interrupted"


# ── failures ───────────────────────────────────────────────────────────────


@pytest.mark.covers("003-lane.6")
async def test_a_plugin_that_raised_is_stopped_and_forgotten(tmp_path: Path) -> None:
    """Its words are shown without secrets; the next turn starts a new one."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        done = await stage.heard.play("fail")
        assert done.failure == Failure(
            kind="lane_error", message="Lane paint error: out of paint, token=[redacted]"
        )
        assert stage.plugin.calls == ["start", "stop"]
        assert (await stage.heard.play("again")).status == "completed"
        assert [plugin.calls for plugin in stage.cls.made] == [["start", "stop"], ["start"]]


async def test_a_plugin_that_exits_does_not_end_the_program(tmp_path: Path) -> None:
    """It has failed."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        done = await stage.heard.play("exit")
        assert done.failure == Failure(kind="lane_error", message="Lane paint error: it called exit(3)")


@pytest.mark.parametrize("method", ["__init__", "start"])
async def test_a_plugin_that_cannot_be_started_says_so(method: str, tmp_path: Path) -> None:
    """What was begun is stopped, and the next turn tries again."""

    async def start(self: Painter, **_: object) -> None:
        raise OSError("no aider on PATH")

    def init(self: Painter) -> None:
        raise OSError("no aider on PATH")

    async with PluginStage(
        registered(Painter, **{method: start if method == "start" else init}), tmp_path
    ) as stage:
        for _ in range(2):
            done = await stage.heard.play("x")
            assert done.failure == Failure(
                kind="lane_start", message="Failed to start paint: no aider on PATH"
            )
    assert [plugin.calls for plugin in stage.cls.made] in ([], [["stop"], ["stop"]])


@pytest.mark.covers("003-lane.6")
async def test_a_stop_that_raises_or_hangs_keeps_nobody(tmp_path: Path) -> None:
    """The failure is told all the same."""

    async def raising(self: Painter) -> None:
        raise RuntimeError("no")

    async def hanging(self: Painter) -> None:
        await asyncio.Event().wait()

    for stop, command in ((raising, "raises"), (hanging, "hangs")):
        async with PluginStage(registered(Painter, stop=stop, command=command), tmp_path) as stage:
            ticket = stage.heard.begin("fail")
            await stage.look(stage.is_done, turns=100)
            assert (await stage.end(ticket)).status == "failed"


# ── interrupts ─────────────────────────────────────────────────────────────


@pytest.mark.covers("003-lane.5")
async def test_a_turn_that_hears_the_interrupt_ends_by_itself(tmp_path: Path) -> None:
    """The plugin stays, and works on."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        ticket = stage.heard.begin("on")
        await stage.heard.wait(Text)
        await stage.lane.interrupt()
        await stage.lane.interrupt()
        assert (await stage.end(ticket)).status == "interrupted"
        await stage.heard.play("more")
        assert [plugin.calls for plugin in stage.cls.made] == [["start", "interrupt"]]


@pytest.mark.covers("003-lane.5")
async def test_an_unheard_interrupt_is_followed_by_a_cancel_ten_seconds_later(tmp_path: Path) -> None:
    """Not before."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        ticket = stage.heard.begin("on")
        await stage.heard.wait(Text)
        stage.plugin.hears = False
        await stage.lane.interrupt()
        stage.clock.advance(INTERRUPT_S - 0.1)
        await settle()
        assert stage.heard.only(TurnDone) == []
        stage.clock.advance(0.1)
        assert (await stage.end(ticket)).status == "interrupted"
        await stage.heard.play("more")
        assert [plugin.calls for plugin in stage.cls.made] == [["start", "interrupt"]]
    assert INTERRUPT_S == 10


async def test_a_plugin_without_an_interrupt_is_cancelled_at_once(tmp_path: Path) -> None:
    """As the sample of the document is."""
    cls: Any = aider()

    async def run_turn(self: object, prompt: object) -> None:
        await asyncio.Event().wait()

    cls.run_turn = run_turn
    async with PluginStage(cls, tmp_path) as stage:
        ticket = stage.heard.begin("fix")
        await settle()
        await stage.lane.interrupt()
        assert (await stage.end(ticket)).status == "interrupted"


async def test_a_plugin_that_ignores_the_cancel_is_left_behind(tmp_path: Path) -> None:
    """Its turn ends, another plugin takes the next one, and what the old one says is of no turn."""
    deaf = asyncio.Event()

    async def run_turn(self: Painter, words: LaneInput) -> None:
        if words.text != "deaf":
            return
        await self.platform.send_message("working")
        while not deaf.is_set():
            try:
                await deaf.wait()
            except asyncio.CancelledError:
                continue

    async with PluginStage(registered(Painter, run_turn=run_turn), tmp_path) as stage:
        ticket = stage.heard.begin("deaf")
        await stage.heard.wait(Text)
        await stage.lane.interrupt()
        await stage.look(lambda: stage.heard.only(TurnDone), turns=200)
        assert (await stage.end(ticket)).status == "interrupted"
        assert (await stage.heard.play("next")).status == "completed"
        assert len(stage.cls.made) == 2
        deaf.set()


async def test_an_interrupt_while_it_starts_cancels_the_start(tmp_path: Path) -> None:
    """Nothing of it stays."""

    async def start(self: Painter, **_: object) -> None:
        await asyncio.Event().wait()

    async with PluginStage(registered(Painter, start=start), tmp_path) as stage:
        ticket = stage.heard.begin("x")
        await settle()
        await stage.lane.interrupt()
        assert (await stage.end(ticket)).status == "interrupted"
        await settle()
        assert stage.plugin.calls == ["stop"]


async def test_an_interrupt_that_raises_ends_the_turn(tmp_path: Path) -> None:
    """It was asked for, so it is no failure; the plugin is forgotten."""

    async def interrupt(self: Painter) -> None:
        raise RuntimeError("no")

    async with PluginStage(registered(Painter, interrupt=interrupt), tmp_path) as stage:
        ticket = stage.heard.begin("on")
        await stage.heard.wait(Text)
        await stage.lane.interrupt()
        assert (await stage.end(ticket)).status == "interrupted"
        assert stage.plugin.calls == ["start", "stop"]


# ── questions ──────────────────────────────────────────────────────────────


@pytest.mark.covers("003-lane.7")
async def test_a_plugin_that_wants_input_has_a_question(tmp_path: Path) -> None:
    """Its last message is what it asks; the answer is handed over."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        ticket = stage.heard.begin("ask")
        await stage.look(lambda: stage.heard.only(Asked))
        (asked,) = stage.heard.only(Asked)
        assert (asked.question.kind, asked.question.message) == ("input", "Which colour?")
        assert asked.question.engine == "paint", "who asks is told by its own name"
        stage.lane.answer(asked.question.question_id, yes("blue"))
        assert (await stage.end(ticket)).status == "completed"
        assert stage.heard.words == "Which colour?It is blue now."


async def test_an_answer_to_another_question_or_a_second_one_is_left_alone(tmp_path: Path) -> None:
    """The first one counts."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        ticket = stage.heard.begin("ask")
        await stage.look(lambda: stage.heard.only(Asked))
        question = stage.heard.only(Asked)[0].question
        stage.lane.answer("another", yes("red"))
        stage.lane.answer(question.question_id, yes("blue"))
        stage.lane.answer(question.question_id, yes("green"))
        await stage.end(ticket)
        assert stage.heard.words.endswith("It is blue now.")


async def test_a_decline_reaches_the_plugin_as_an_empty_answer(tmp_path: Path) -> None:
    """So that it does not wait for ever."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        ticket = stage.heard.begin("ask")
        await stage.look(lambda: stage.heard.only(Asked))
        stage.lane.answer(stage.heard.only(Asked)[0].question.question_id, DECLINE)
        await stage.end(ticket)
        assert stage.heard.words.endswith("It is grey now.")


async def test_a_question_that_the_plugin_takes_back_is_withdrawn(tmp_path: Path) -> None:
    """And may come again."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        ticket = stage.heard.begin("ask")
        await stage.look(lambda: stage.heard.only(Asked))
        stage.plugin.answer.set_result("its own")
        assert (await stage.end(ticket)).status == "completed"
        assert len(stage.heard.only(Withdrawn)) == 1


async def test_a_flag_that_stays_up_after_the_answer_is_no_second_question(tmp_path: Path) -> None:
    """Only after a while."""

    async def run_turn(self: Painter, words: LaneInput) -> None:
        await self.stopped.wait()

    async def handle_user_input(self: Painter, text: str) -> None:
        self.calls.append(text)

    cls = registered(Painter, run_turn=run_turn, wants_user_input=True, handle_user_input=handle_user_input)
    async with PluginStage(cls, tmp_path) as stage:
        ticket = stage.heard.begin("x")
        await stage.look(lambda: stage.heard.only(Asked))
        first = stage.heard.only(Asked)[0].question
        assert first.message == "paint waits for your answer."
        stage.lane.answer(first.question_id, yes("blue"))
        await stage.look(turns=round(GRACE_S / 0.1) - 2)
        assert len(stage.heard.only(Asked)) == 1
        await stage.look(lambda: len(stage.heard.only(Asked)) == 2)
        assert stage.plugin.calls == ["start", "blue"]
        stage.plugin.stopped.set()
        await stage.end(ticket)


@pytest.mark.parametrize("member", ["handle_user_input", "wants_user_input"])
async def test_a_plugin_that_fails_over_a_question_has_its_turn_failed(member: str, tmp_path: Path) -> None:
    """Even if `run_turn` would wait on."""

    async def handle_user_input(self: Painter, text: str) -> None:
        raise RuntimeError("no such colour")

    @property  # type: ignore[misc]
    def wants_user_input(self: Painter) -> bool:
        raise RuntimeError("no such colour")

    members = {"handle_user_input": handle_user_input, "wants_user_input": wants_user_input}
    async with PluginStage(registered(Painter, **{member: members[member]}), tmp_path) as stage:
        ticket = stage.heard.begin("ask")
        await stage.look(lambda: stage.heard.only(Asked) or stage.heard.only(TurnDone))
        for asked in stage.heard.only(Asked):
            stage.lane.answer(asked.question.question_id, yes("blue"))
        done = await stage.end(ticket)
        assert done.failure == Failure(kind="lane_error", message="Lane paint error: no such colour")
        assert stage.plugin.calls == ["start", "stop"]


# ── ends ───────────────────────────────────────────────────────────────────


async def test_a_lane_that_is_closed_while_its_plugin_stops_tells_the_end_first(tmp_path: Path) -> None:
    """The failure, and not something else."""
    may_stop = asyncio.Event()

    async def stop(self: Painter) -> None:
        self.calls.append("stop")
        await may_stop.wait()

    async with PluginStage(registered(Painter, stop=stop), tmp_path) as stage:
        stage.heard.begin("fail")
        await settle()
        assert stage.heard.only(TurnDone) == []
        closing = asyncio.ensure_future(stage.lane.close())
        await settle()
        may_stop.set()
        await closing
        assert [done.status for done in stage.heard.only(TurnDone)] == ["failed"]
        assert stage.plugin.calls == ["start", "stop"]


async def test_a_closed_lane_begins_nothing(tmp_path: Path) -> None:
    """Nor does one that is not open."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        await stage.lane.close()
        with pytest.raises(SessionClosed):
            stage.heard.begin("x")


async def test_what_a_plugin_says_between_turns_is_a_notice(tmp_path: Path) -> None:
    """It belongs to no turn."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        await stage.heard.play("x")
        await stage.plugin.platform.send_message("dry now")
        assert stage.heard.events[-1] == Notice(level="info", message="dry now")


@pytest.mark.covers("003-lane.13")
async def test_the_formatter_makes_markdown_that_nothing_inside_can_end(tmp_path: Path) -> None:
    """Nor hide a character in."""
    async with PluginStage(registered(Painter), tmp_path) as stage:
        await stage.heard.play("x")
        form = stage.plugin.formatter
        assert form.bold("a*b") == "**a\\*b**"
        assert form.code("a`b\u202e") == "`` a`b\\u202e ``"
        assert form.code_block("```\nx", "sh") == "````sh\n```\nx\n````"
        assert form.escape("[x](y) <z>") == "\\[x\\]\\(y\\) \\<z\\>"


def test_a_lane_is_made_without_starting_anything() -> None:
    """`/lanes` makes every lane."""
    cls: Any = registered(Painter)
    before = os.getpid()
    from laneway.lanes.adapter import PluginLane

    lane = PluginLane(cls)
    assert (lane.name, lane.usage, lane.description) == ("paint", "Usage: /paint <task>", "Paint something")
    assert (lane.thread_id, cls.made, os.getpid()) == (None, [], before)
