"""Turns of the real Claude Code: text, thoughts, failures, interrupts, steering."""

from __future__ import annotations

import pytest

from laneway.core.model import (
    Accepted,
    Event,
    Notice,
    Text,
    Thought,
    TurnDone,
    TurnStarted,
    Usage,
    UserSaid,
)
from laneway.core.ports import TextPart, TurnSpec
from tests.claude.support import real
from tests.codex.support import first, only, play, say


async def test_text_streams_between_one_start_and_one_end() -> None:
    """Started first, accepted before its end, done last, and the text complete and told once."""
    async with real() as here:
        session = await here.session()
        events, result = await play(session, "%think first a thought", "%say Hello from a rehearsal.")
        assert isinstance(events[0], TurnStarted)
        assert isinstance(events[-1], TurnDone)
        assert len(only(events, TurnStarted)) == len(only(events, TurnDone)) == 1
        assert [said.text for said in only(events, UserSaid)] == [
            "%think first a thought\n%say Hello from a rehearsal."
        ]
        assert len(only(events, Accepted)) == 1
        assert "".join(event.text for event in only(events, Thought)) == "first a thought"
        assert "".join(event.text for event in only(events, Text)) == "Hello from a rehearsal."
        assert len({event.item_id for event in only(events, Text)}) == 1
        assert (result.status, result.text) == ("completed", "Hello from a rehearsal.")
        assert only(events, Usage)[-1].total.output == 20
        assert only(events, Usage)[-1].window == 1_000_000


@pytest.mark.parametrize(
    ("line", "kind", "status"),
    [("%fail 500", "server_error", 500), ("%fail 401 no key", "authentication_failed", 401)],
)
async def test_a_model_that_fails_makes_a_failed_turn_not_an_exception(
    line: str, kind: str, status: int
) -> None:
    """With a kind for programs and a message for people; the session goes on."""
    async with real() as here:
        session = await here.session()
        events, result = await play(session, line)
        assert result.status == "failed"
        assert result.failure is not None
        assert (result.failure.kind, result.failure.http_status) == (kind, status)
        remedy = "no key. If your login has expired, run `laneway login --engine claude`."
        assert result.failure.message.endswith(remedy) == (status == 401)
        assert isinstance(events[-1], TurnDone)
        assert only(events, Text) == []  # the error is no answer of the model
        _, again = await play(session, "%say fine")
        assert again.text == "fine"


async def test_a_stream_that_breaks_off_fails_the_turn() -> None:
    """What came before stays."""
    async with real() as here:
        session = await here.session()
        events, result = await play(session, "%say a start", "%break")
        assert result.status == "failed"
        assert "".join(event.text for event in only(events, Text)) == "a start"


async def test_a_retry_is_told_while_the_turn_goes_on() -> None:
    """With cause and try, so that nobody takes it for silence."""
    async with real(variables={"CLAUDE_CODE_MAX_RETRIES": "1"}) as here:
        session = await here.session()
        events, result = await play(session, "%fail 500 busy")
        assert result.status == "failed"
        (notice,) = only(events, Notice)
        assert (notice.level, notice.will_retry) == ("warning", True)
        assert "server error, HTTP 500" in notice.message
        assert "try 1 of 1" in notice.message


async def test_an_interrupt_ends_the_turn_and_the_next_one_works() -> None:
    """In the middle of a stream."""
    async with real() as here:
        session = await here.session()
        turn = say(session, "%stream 1000 words over 60 seconds")
        await first(turn, Text)
        turn.cancel()
        result = await turn.result()
        assert (result.status, result.stopped_by) == ("interrupted", "cancel")
        _, again = await play(session, "%say fine")
        assert again.text == "fine"


async def test_an_interrupt_takes_back_what_waits_behind_the_turn() -> None:
    """Claude Code itself would go on with it."""
    async with real() as here:
        session = await here.session()
        turn = say(session, "%stream 1000 words over 60 seconds")
        await first(turn, Text)
        await session.steer((TextPart("%say I waited"),))
        turn.cancel()
        assert (await turn.result()).status == "interrupted"
        _, again = await play(session, "%say fine")
        assert again.text == "fine"
        assert "I waited" not in here.model_input()


async def test_steering_adds_to_the_running_turn() -> None:
    """The same turn takes it up, and no second one starts."""
    async with real() as here:
        session = await here.session()
        turn = say(session, "%stream 20 words over 1 seconds", "%run ls", "%say old plan")
        await first(turn, Text)
        await session.steer((TextPart("%say new plan"),), ticket="steer-1")
        rest = [event async for event in turn.events]
        result = await turn.result()
        assert (result.status, result.text) == ("completed", "new plan")
        assert [event.text for event in only(rest, UserSaid)] == ["%say new plan"]
        assert only(rest, TurnStarted) == []
        assert "steer-1" in [event.client_id for event in only(rest, Accepted)]


async def test_a_steer_that_comes_too_late_is_a_turn_of_nobody() -> None:
    """The text was the last of its turn: Claude Code answers in another one, which has no ticket."""
    async with real() as here:
        session = await here.session()
        subscription = session.subscribe()
        turn = say(session, "%stream 20 words over 1 seconds")
        await first(turn, Text)
        await session.steer((TextPart("%say too late"),), ticket="late")
        assert (await turn.result()).text.startswith("one two")
        seen = []
        async for event in subscription:
            seen.append(event)
            if len(only(seen, TurnDone)) == 2:
                break
        assert [event.ticket for event in only(seen, TurnStarted)] == [turn.ticket, None]
        assert only(seen, TurnDone)[-1].text == "too late"
        assert "late" in [event.client_id for event in only(seen, Accepted)]
        _, again = await play(session, "%say fine")
        assert again.text == "fine"


async def test_what_was_added_too_late_is_answered_together_and_each_of_it_is_taken() -> None:
    """Claude Code makes one message of what waits; each of it is shown once, in the turn that answers it."""
    async with real() as here:
        session = await here.session()
        subscription = session.subscribe()
        turn = say(session, "%stream 20 words over 1 seconds")
        await first(turn, Text)
        for name in ("one", "two", "three"):
            await session.steer((TextPart(f"%say {name}"),), ticket=name)
        await turn.result()
        seen: list[Event] = []
        async for event in subscription:
            seen.append(event)
            if len(only(seen, Accepted)) == len(only(seen, UserSaid)) == 4:
                break
        assert [event.client_id for event in only(seen, Accepted)][1:] == ["one", "two", "three"]
        _, own = only(seen, TurnStarted)
        after = seen[seen.index(own) :]
        assert [event.text for event in only(after, UserSaid)] == ["%say one", "%say two", "%say three"]
        assert {event.turn_id for event in only(after, UserSaid)} == {own.turn_id}
        _, again = await play(session, "%say fine")
        assert again.text == "fine"


async def test_an_answer_follows_its_schema_and_the_next_is_free_again() -> None:
    """A schema holds for one turn."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    async with real() as here:
        session = await here.session()
        spec = TurnSpec(parts=(TextPart('%say {"a": 3}'),), output_schema=schema)
        result = await session.say(spec).result()
        assert (result.status, result.text) == ("completed", '{"a":3}')
        _, again = await play(session, '%say {"a": 3}')
        assert again.text == '{"a": 3}'


async def test_the_context_of_a_turn_stands_in_front_of_the_prompt_and_only_when_it_changes() -> None:
    """It is shown to the model, not to people, and is no script."""
    texts = iter(["%say evil", "%say evil", "another"])
    async with real(compose=lambda session: next(texts)) as here:
        session = await here.session()
        events, result = await play(session, "%say good")
        assert result.text == "good"
        assert [event.text for event in only(events, UserSaid)] == ["%say good"]
        assert here.model_input().count("%say evil") == 1
        await play(session, "%say still good")
        assert here.model_input().count("%say evil") == 1
        await play(session, "%say fine")
        assert "<laneway-context>\\nanother\\n</laneway-context>" in here.model_input()
