"""Questions of lanes in a conversation: one valid answer each, nothing of a secret, no by default."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from laneway.doors.chat.messages import Place, ReplyTarget, Sender
from laneway.doors.chat.outputs import QuestionOver, Said, TurnBegan
from laneway.doors.chat.ports import DelegatingHost
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn
from laneway.testing.clock import HandClock
from tests.doors.chat.chats import ANNA, BEN, Talk, talking

SECRET = "hunter2-of-anna"


async def asking(turn: ScriptedTurn) -> None:
    """Ask as the words say, show the answer, end."""
    turn.accept()
    match turn.given.text:
        case "approve":
            answer = await turn.answered(turn.approve())
            turn.say(f"choice {answer.choice_id}")
        case "secret":
            answer = await turn.answered(turn.ask_words("Which password?", is_secret=True))
            turn.say(f"it has {len(str(answer.values['answer']))} characters")
        case "colour":
            answer = await turn.answered(turn.ask_words("Which colour?", ("red", "blue")))
            turn.say(f"colour {answer.values.get('answer', 'none')}")
        case _:
            turn.text("working")


def files_with(folder: Path, text: str, except_in: str = "") -> list[str]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    allowed = except_in.encode() or b"\0" * 64
    return [str(path) for path in found if text.encode() in path.read_bytes().replace(allowed, b"")]


async def test_the_next_words_answer_the_lane_that_asks_and_no_other_lane_hears_them(tmp_path: Path) -> None:
    """An option, free words, and the turn goes on."""
    lanes = ScriptedLanes(play=asking)
    async with talking(tmp_path, lanes) as talk:
        for number, (words, colour) in enumerate((("blue", "blue"), ("b", "blue"), ("pink", "pink")), 1):
            await talk.say("/codex colour")
            await talk.view.question(number)
            answered = await talk.view.receipt(await talk.say(words))
            assert (answered.kind, answered.lane) == ("answered", "codex")
            assert (await talk.view.ended("codex", number)).text == f"colour {colour}"
        assert [lane for lane, _ in talk.view.begun] == ["codex"] * 3
        over = talk.view.all(QuestionOver)
        assert [(each.how, each.by) for each in over] == [("answered", "Anna")] * 3


@pytest.mark.parametrize(
    ("words", "choice", "how"),
    [
        ("yes", "accept", "answered"),
        ("1", "accept", "answered"),
        ("session", "session", "answered"),
        ("no", "decline", "declined"),
        ("Decline and stop", "cancel", "declined"),
        ("no, use make", "decline", "declined"),
    ],
)
async def test_an_approval_takes_its_choices_and_words_that_are_none_ask_again(
    words: str, choice: str, how: str, tmp_path: Path
) -> None:
    """Nothing that is not clearly a yes is one."""
    lanes = ScriptedLanes(play=asking)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex approve")
        shown = await talk.view.question()
        assert [button.style for button in shown.buttons] == ["yes", "yes", "no", "no"]
        unclear = await talk.view.receipt(await talk.say("yesterday it worked"))
        assert unclear.kind == "refused"
        assert "none of the choices" in unclear.text
        await talk.say(words)
        assert (await talk.view.ended("codex")).text == f"choice {choice}"
        assert (await talk.view.wait(QuestionOver)).how == how


async def test_the_first_answer_wins_and_later_ones_are_told_so(tmp_path: Path) -> None:
    """By button and by words, from two places."""
    lanes = ScriptedLanes(play=asking)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex approve")
        shown = await talk.view.question()
        first = await talk.tap(shown.buttons[0].data)
        second = await talk.tap(shown.buttons[2].data, sender=BEN)
        assert (first.is_done, second.is_done, second.is_stale) == (True, False, True)
        assert "no answer any more" in second.text
        assert (await talk.view.ended("codex")).text == "choice accept"
        late = await talk.say("no", reply=ReplyTarget(lane="codex", question=shown.number))
        assert "no answer any more" in (await talk.view.receipt(late)).text
        assert len(talk.view.all(QuestionOver)) == 1


async def test_a_secret_is_neither_shown_nor_stored_nor_told_to_another_lane(tmp_path: Path) -> None:
    """Not in the input, not in the outputs, not in a title, not in the hand-back; the lane gets it."""

    async def leaking(turn: ScriptedTurn) -> None:
        turn.accept()
        if turn.given.text != "secret":
            turn.done()
            return
        answer = await turn.answered(turn.ask_words("Which password?", is_secret=True))
        assert answer.values["answer"] == SECRET
        turn.command(f"login {SECRET}", status="completed", exit_code=0)
        turn.done()

    lanes = ScriptedLanes(play=leaking)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex secret")
        await talk.view.question()
        await talk.say(SECRET)
        await talk.view.ended("codex")
        said = [each.text for each in talk.view.all(Said)]
        assert said == ["/codex secret", "(secret)"]
        (over,) = talk.view.all(QuestionOver)
        assert SECRET not in over.text
        await talk.say("and now?")
        given = (await lanes.given("and now?")).given.context
        assert "login [secret]" in given
        await talk.view.ended("claude")
    # What a command itself shows is the engine's; all that we write by ourselves has no trace of it.
    assert not files_with(tmp_path, SECRET, except_in=f"login {SECRET}")


async def test_a_secret_that_names_no_question_is_not_shown_either(tmp_path: Path) -> None:
    """Two are open, and it is unclear which is meant."""
    lanes = ScriptedLanes()
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex go")
        turn = await lanes.lane("codex").begun()
        turn.ask_words("Which password?", is_secret=True)
        turn.ask_words("Which colour?")
        await talk.view.question(2)
        refused = await talk.view.receipt(await talk.say(SECRET))
        assert "Several questions are open: #1, #2" in refused.text
        assert talk.view.all(Said)[-1].text == "(secret)"
        await talk.say("#2 blue")
        await talk.say(f"#1 {SECRET}")
        assert (await turn.answered("codex-turn-1?1")).values == {"answer": SECRET}
        assert (await turn.answered("codex-turn-1?2")).values == {"answer": "blue"}
    assert not files_with(tmp_path, SECRET)


async def test_two_lanes_that_ask_at_once_do_not_mix(tmp_path: Path) -> None:
    """A lane and the one that it has given work to: by button, by reply, by number."""
    lanes = ScriptedLanes()
    async with talking(tmp_path, lanes) as talk:
        await talk.say("go")
        claude = await lanes.lane("claude").begun()
        host = lanes.lane("claude").host
        assert isinstance(host, DelegatingHost)
        work = asyncio.ensure_future(host.delegate("codex", "help"))
        codex = await lanes.given("help")
        one, two = claude.ask_words("Which colour?"), codex.ask_words("Which size?")
        first, second = await talk.view.question(1), await talk.view.question(2)
        assert (first.lane, second.lane) == ("claude", "codex")
        assert "Several questions" in (await talk.view.receipt(await talk.say("blue"))).text
        await talk.say(f"{second.number}: large")
        await talk.say("red", reply=ReplyTarget(lane="claude"))
        assert (await claude.answered(one)).values == {"answer": "red"}
        assert (await codex.answered(two)).values == {"answer": "large"}
        codex.say("helped")
        assert "helped" in await work
        claude.done()
        await talk.view.ended("claude")


async def test_input_for_a_lane_that_asks_waits_behind_the_question(tmp_path: Path) -> None:
    """It does not stop the lane, and it is no answer."""
    lanes = ScriptedLanes(play=asking)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex colour")
        await talk.view.question()
        held = await talk.say("/codex next")
        assert (await talk.view.receipt(held)).kind == "held"
        await talk.say("blue")
        assert (await talk.view.ended("codex")).text == "colour blue"
        await lanes.given("next")
        assert talk.view.receipts(held) == ["held", "begun"]


async def test_words_from_before_a_question_never_answer_it(tmp_path: Path) -> None:
    """They came while the question was still on its way."""
    now = [100.0]
    lanes = ScriptedLanes()
    async with talking(tmp_path, lanes, wall=lambda: now[0], busy="queue") as talk:
        await talk.say("/codex go")
        turn = await lanes.lane("codex").begun()
        turn.text("hm")
        early = await talk.say("never mind")
        now[0] = 101.0
        question = turn.approve()
        await talk.view.question()
        assert talk.view.receipts(early) == ["queued"]
        assert question not in turn.answers


async def test_a_question_without_an_answer_is_declined_after_half_an_hour(tmp_path: Path) -> None:
    """And says so."""
    clock = HandClock()
    lanes = ScriptedLanes(play=asking)
    async with talking(tmp_path, lanes, clock=clock) as talk:
        await talk.say("/codex approve")
        await talk.view.question()
        clock.advance(1799)
        assert not talk.view.all(QuestionOver)
        clock.advance(2)
        assert (await talk.view.wait(QuestionOver)).how == "expired"
        assert (await talk.view.ended("codex")).text == "choice decline"


async def test_a_stop_takes_the_question_with_it(tmp_path: Path) -> None:
    """Its buttons do nothing any more."""
    lanes = ScriptedLanes(play=asking)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex approve")
        shown = await talk.view.question()
        await talk.say("/stop")
        assert (await talk.view.ended("codex")).status == "interrupted"
        assert (await talk.view.wait(QuestionOver)).how == "withdrawn"
        assert (await talk.tap(shown.buttons[0].data)).is_stale


async def test_who_is_no_owner_answers_no_approval_neither_by_words_nor_by_reply_nor_by_button(
    tmp_path: Path,
) -> None:
    """Not even of a turn of their own; a plain question of it they may answer, and nobody else may."""
    lanes = ScriptedLanes(play=asking)
    carl = Sender(platform="terminal", user_id="carl", name="Carl")
    async with talking(tmp_path, lanes, busy="queue") as talk:
        await talk.say("/codex approve", sender=BEN)
        shown = await talk.view.question()
        assert shown.for_owners
        assert not (await talk.tap(shown.buttons[0].data, sender=BEN)).is_done
        reply = ReplyTarget(lane="codex", question=shown.number)
        refused = await talk.view.receipt(await talk.say("yes", sender=BEN, reply=reply))
        assert refused.text == "Only an owner may answer that."
        words = await talk.say("yes", sender=BEN)
        assert (await talk.view.receipt(words)).kind == "held"
        assert not talk.view.all(QuestionOver)
        await talk.tap(shown.buttons[0].data)
        await talk.view.ended("codex")
        await talk.say("/stop")
        await talk.say("/codex colour", sender=BEN)
        shown = await talk.view.question(2)
        reply = ReplyTarget(lane="codex", question=shown.number)
        assert not (await talk.tap(f"q:{shown.number}:0", sender=carl)).is_done
        refused = await talk.view.receipt(await talk.say("red", sender=carl, reply=reply))
        assert "who asked for this turn" in refused.text
        await talk.say("blue", sender=BEN)
        await talk.view.wait(QuestionOver, lambda each: each.text == "blue")


async def test_where_nobody_can_answer_every_question_is_declined_at_once(tmp_path: Path) -> None:
    """An open one, and those that come."""
    lanes = ScriptedLanes(play=asking)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex approve")
        await talk.view.question()
        await talk.chat.decline_questions(await talk.conversation_id)
        assert (await talk.view.ended("codex")).text == "choice decline"
        await talk.say("/codex approve")
        assert (await talk.view.ended("codex", 2)).text == "choice decline"
        assert [each.how for each in talk.view.all(QuestionOver)] == ["declined", "declined"]


async def test_a_form_fills_in_what_words_would(tmp_path: Path) -> None:
    """Values that do not fit are refused."""
    lanes = ScriptedLanes(play=asking)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex colour")
        shown = await talk.view.question()
        assert not (await talk.tap(f"q:{shown.number}:9")).is_done
        assert not (await talk.tap("z:1")).is_done
        assert (await talk.tap(f"q:{shown.number}", values={"answer": "blue"})).is_done
        assert (await talk.view.ended("codex")).text == "colour blue"


async def test_a_view_that_joins_late_is_asked_what_is_still_open(tmp_path: Path) -> None:
    """And can answer it."""
    lanes = ScriptedLanes(play=asking)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex colour")
        await talk.view.question()
        other = Talk(talk.chat, Place("web", "two"))
        state = await other.join(await talk.conversation_id)
        (open_question,) = state.questions
        assert (await other.tap(open_question.buttons[0].data, sender=ANNA)).is_done
        await talk.view.ended("codex")
        assert (await other.join()).questions == ()
        assert len(talk.view.all(TurnBegan)) == 1
