"""When an input counts as taken, when a turn is over, and what takes a question back."""

from __future__ import annotations

import asyncio
from pathlib import Path

from laneway.core.model import (
    Accepted,
    Answer,
    Asked,
    Event,
    Text,
    TurnDone,
    TurnStarted,
    UserSaid,
    Withdrawn,
)
from laneway.core.ports import TextPart
from tests.claude.pretending import GREETS, LIVES, pretending, session_of
from tests.codex.support import first, only, play, say
from tests.core.support import until

DEADLINE_S = 60
BLOCK = '{{"type": "text", "text": "hello"}}'
TEXT = f'say(type="assistant", uuid="u", message={{{{"id": "m", "content": [{BLOCK}]}}}})\n'


async def test_an_input_is_accepted_when_it_stands_in_the_transcript_and_not_when_it_comes_back(
    tmp_path: Path,
) -> None:
    """A kill in between loses it. Its turn does not end before, although its result has come."""
    script = (
        GREETS
        + LIVES
        + """
given = asked()
say(type="command_lifecycle", command_uuid=given["uuid"], state="started")
say(type="user", isReplay=True, uuid=given["uuid"], message=given["message"])
"""
        + TEXT
        + """
gate = os.path.join(os.environ["HOME"], "gate")
while not os.path.exists(gate):
    time.sleep(0.01)
say(type="result", subtype="success", is_error=False, result="hello")
record(given)
asked()
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        turn = say(session, "first")
        events: list[Event] = []
        async for event in turn.events:
            events.append(event)
            if isinstance(event, Text):
                assert only(events, Accepted) == []
                (tmp_path / "gate").touch()
        order = [type(event) for event in events]
        assert order == [TurnStarted, UserSaid, Text, Accepted, TurnDone]
        assert (await turn.result()).text == "hello"


async def test_what_stands_in_the_transcript_before_its_start_is_reported_is_accepted(tmp_path: Path) -> None:
    """Inputs of one turn are written together, and each part of the transcript is read only once."""
    script = (
        GREETS
        + LIVES
        + """
given = begin()
added = asked()
record(given)
record(added)
for state in ("queued", "started"):
    say(type="command_lifecycle", command_uuid=added["uuid"], state=state)
"""
        + TEXT
        + """
say(type="result", subtype="success", is_error=False, result="hello")
asked()
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        turn = say(session, "first")
        await first(turn, TurnStarted)
        await session.steer((TextPart("and this"),), ticket="added")
        rest = [event async for event in turn.events]
        assert {event.client_id for event in only(rest, Accepted)} == {turn.ticket, "added"}


async def test_one_that_is_idle_runs_no_turn_though_the_result_never_came(tmp_path: Path) -> None:
    """Being idle is its last word on a turn; what it was before this turn ends nothing."""
    state = 'say(type="system", subtype="session_state_changed", state="{}")\n'
    running, idle = state.format("running"), state.format("idle")
    script = (
        GREETS
        + LIVES
        + f"{idle}given = begin()\nrecord(given)\n{idle}{running}{TEXT}{idle}"
        + "given = begin()\nend('two')\nasked()\n"
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        events, result = await play(session, "first")
        assert (result.status, result.text) == ("completed", "hello")
        assert len(only(events, Accepted)) == len(only(events, TurnDone)) == 1
        _, result = await play(session, "second")
        assert result.text == "two"


async def test_a_question_that_is_cancelled_is_withdrawn_and_needs_no_answer(tmp_path: Path) -> None:
    """The turn goes on; the one that is asked next is answered as ever."""
    script = (
        GREETS
        + """
begin()
tool = {{"subtype": "can_use_tool", "tool_name": "Bash", "input": {{"command": "ls"}}}}
say(type="control_request", request_id="one", request=tool)
say(type="control_cancel_request", request_id="one")
say(type="control_request", request_id="two", request=tool)
reply = asked()["response"]
end(reply["request_id"] + " " + reply["response"]["behavior"])
asked()
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        turn = say(session, "hello")
        gone = (await first(turn, Asked)).question
        assert (await first(turn, Withdrawn)).question_id == gone.question_id
        kept = (await first(turn, Asked)).question
        await until(lambda: session.questions == [kept])
        await session.answer(kept.question_id, Answer(choice_id="accept"))
        assert (await turn.result()).text == "two allow"
