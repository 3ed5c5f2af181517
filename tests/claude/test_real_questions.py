"""Questions of the real Claude Code: commands, patches, tools, plans and choices, and all answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from laneway.core.model import Activity, Answer, Asked, Field, FieldOption, Question, Withdrawn
from tests.claude.support import real, tool
from tests.codex.support import first, only, play, say

YES = Answer(choice_id="accept")
NO = Answer(choice_id="decline")
SESSION = Answer(choice_id="acceptForSession")


def noting(seen: list[Question], answer: Answer) -> Callable[[Question], Answer]:
    def decide(question: Question) -> Answer:
        seen.append(question)
        return answer

    return decide


@pytest.mark.parametrize(("answer", "exists"), [(YES, True), (NO, False)])
async def test_a_command_runs_only_with_approval(answer: Answer, exists: bool) -> None:
    """The question shows command, folder and engine; declined means not run, and the turn goes on."""
    async with real() as here:
        session = await here.session()
        seen: list[Question] = []
        script = ("%run touch made.txt", "%say went on")
        events, result = await play(session, *script, decide=noting(seen, answer))
        (question,) = seen
        assert (question.kind, question.command, question.cwd, question.engine) == (
            "command",
            "touch made.txt",
            str(here.work),
            "Claude",
        )
        assert [choice.grants for choice in question.choices] == ["once", "session", "nothing", "stop"]
        assert (here.work / "made.txt").exists() is exists
        assert [event.status for event in only(events, Activity)] == [
            "running",
            "completed" if exists else "declined",
        ]
        assert (result.status, result.text) == ("completed", "went on")


async def test_a_yes_for_the_session_is_asked_once_and_written_nowhere() -> None:
    """Claude Code's own suggestion would go into a file of the repository."""
    async with real() as here:
        session = await here.session()
        seen: list[Question] = []
        script = ("%run python3 -c pass", "%run python3 -c pass", "%say done")
        await play(session, *script, decide=noting(seen, SESSION))
        assert len(seen) == 1
        assert seen[0].choices[1].label == "Allow `python3 -c pass` for this session"
        assert list(here.work.rglob("settings*.json")) == []
        other = await here.session()
        await play(other, *script, decide=noting(seen, YES))
        assert len(seen) == 3


async def test_a_no_may_carry_words() -> None:
    """The model is told them instead of a bare refusal."""
    async with real() as here:
        session = await here.session()
        no = Answer(choice_id="decline", words="use a branch first")
        _, result = await play(session, "%run touch x", "%say went on", decide=lambda question: no)
        assert result.text == "went on"
        assert "use a branch first" in here.model_input()


async def test_a_no_that_stops_ends_the_turn() -> None:
    """The model gets no further chance."""
    async with real() as here:
        session = await here.session()
        stop = Answer(choice_id="cancel")
        events, result = await play(session, "%run touch x", "%say went on", decide=lambda question: stop)
        assert result.status == "interrupted"
        assert [event.status for event in only(events, Activity)] == ["running", "declined"]


async def test_a_patch_is_asked_with_its_changes() -> None:
    """Also where a file is overwritten."""
    async with real() as here:
        session = await here.session()
        (here.work / "old.txt").write_text("one\ntwo\n")
        seen: list[Question] = []
        await play(session, "%patch new.txt hello", "%patch old.txt one\\n2\\n", decide=noting(seen, YES))
        assert [question.kind for question in seen] == ["patch", "patch"]
        shown = [(change.path, change.kind, change.diff) for question in seen for change in question.changes]
        assert shown == [
            (str(here.work / "new.txt"), "add", "hello"),
            (str(here.work / "old.txt"), "update", "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"),
        ]
        assert (here.work / "old.txt").read_text() == "one\n2\n"


async def test_edits_can_be_allowed_for_the_session() -> None:
    """All of them: that is what Claude Code suggests, and what the choice says."""
    async with real() as here:
        session = await here.session()
        seen: list[Question] = []
        await play(session, "%patch a.txt 1", "%patch b.txt 2", decide=noting(seen, SESSION))
        assert [choice.label for choice in seen[0].choices if choice.grants == "session"] == [
            "Allow all edits for this session"
        ]
        assert len(seen) == 1
        assert (here.work / "b.txt").read_text() == "2"


async def test_another_tool_is_asked_with_its_arguments() -> None:
    """Whatever it is."""
    async with real() as here:
        session = await here.session()
        seen: list[Question] = []
        await play(session, tool("WebFetch", url="http://127.0.0.1:9/x", prompt="q"), decide=noting(seen, NO))
        (question,) = seen
        assert (question.kind, question.tool, question.arguments) == (
            "tool",
            "WebFetch",
            {"url": "http://127.0.0.1:9/x", "prompt": "q"},
        )


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (YES, "approved"),
        (Answer(choice_id="decline", words="test first"), "test first"),
    ],
)
async def test_a_plan_is_shown_and_approved_or_sent_back(answer: Answer, told: str) -> None:
    """With its text; a no says what is wrong with it."""
    async with real() as here:
        session = await here.session()
        seen: list[Question] = []
        _, result = await play(session, "%plan look; build", "%say went on", decide=noting(seen, answer))
        (question,) = seen
        assert (question.kind, question.plan) == ("plan", "1. look\n2. build\n")
        assert result.text == "went on"
        assert told in here.model_input()


async def test_the_model_asks_with_options_and_own_words_are_an_answer_too() -> None:
    """The answer that a person gives is what the model gets to see."""
    async with real() as here:
        session = await here.session()
        seen: list[Question] = []
        answer = Answer(choice_id="accept", values={"answer-1": ["red", "or rather pink"]})
        await play(session, "%ask Which? red | blue", decide=noting(seen, answer))
        (question,) = seen
        assert question.kind == "input"
        assert question.fields == (
            Field(
                field_id="answer-1",
                header="Choose",
                text="Which?",
                options=(
                    FieldOption(label="red", description="red"),
                    FieldOption(label="blue", description="blue"),
                ),
                allows_other=True,
            ),
        )
        assert 'Which?\\"=\\"red, or rather pink' in here.model_input().replace("\\\\", "\\")


async def test_the_model_asks_several_things_at_once_of_which_one_takes_several_choices() -> None:
    """Each with its header, and each option with what it means."""
    options = [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]
    asked = [
        {"question": "Which?", "header": "Colours", "options": options, "multiSelect": True},
        {"question": "Where?", "header": "Place", "options": options, "multiSelect": False},
    ]
    async with real() as here:
        session = await here.session()
        seen: list[Question] = []
        answer = Answer(choice_id="accept", values={"answer-1": ["red", "blue"], "answer-2": "outside"})
        await play(session, tool("AskUserQuestion", questions=asked), decide=noting(seen, answer))
        shown = [(field.header, field.text, field.is_multiple) for field in seen[0].fields]
        assert shown == [("Colours", "Which?", True), ("Place", "Where?", False)]
        assert [option.description for option in seen[0].fields[0].options] == ["warm", "cold"]
        heard = here.model_input().replace("\\\\", "\\")
        assert 'Which?\\"=\\"red, blue' in heard
        assert 'Where?\\"=\\"outside' in heard


@pytest.mark.parametrize("answer", [NO, YES])
async def test_a_question_nobody_answers_is_declined_and_the_turn_goes_on(answer: Answer) -> None:
    """A yes without an answer is none."""
    async with real() as here:
        session = await here.session()
        _, result = await play(
            session, "%ask Which? red | blue", "%say went on", decide=lambda question: answer
        )
        assert (result.status, result.text) == ("completed", "went on")


async def test_an_interrupt_withdraws_the_open_question() -> None:
    """Whoever still shows it learns that it is gone."""
    async with real() as here:
        session = await here.session()
        turn = say(session, "%run touch x")
        asked = await first(turn, Asked)
        turn.cancel()
        rest = [event async for event in turn.events]
        assert (await turn.result()).status == "interrupted"
        assert [event.question_id for event in only(rest, Withdrawn)] == [asked.question.question_id]
        assert session.questions == []
        assert only(rest, Activity)[-1].status in ("interrupted", "declined")


async def test_never_asking_means_that_what_would_be_asked_is_denied() -> None:
    """Without a sandbox that could hold it, Claude Code may not just act."""
    async with real() as here:
        session = await here.session(approval_policy="never")
        events, result = await play(session, "%run touch made.txt", "%say went on")
        assert only(events, Asked) == []
        assert not (here.work / "made.txt").exists()
        assert result.text == "went on"
