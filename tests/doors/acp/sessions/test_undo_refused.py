"""A turn that Codex cannot take back, such as a cancelled review: `/undo` says so and can go on behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.base.errors import EngineRefused
from laneway.commands import slash as commands
from laneway.commands.last_turns import LastTurns as Memory
from laneway.commands.slash import Invocation
from laneway.commands.undo import LastTurn
from laneway.core.model import FileChange, TurnDone
from tests.commands.hand_session import HandSession
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import Client

BOUNDARY = "turn {} does not have a persisted start boundary"
GONE = "turn not found: {}"
"""As Codex 0.163 says it."""


@pytest.fixture
def session(tmp_path: Path) -> HandSession:
    return HandSession(tmp_path)


async def undo(session: HandSession) -> str:
    """Returns what was said."""
    assert await commands.run(session, Invocation("undo")) is None
    return session.said[-1]


def refusal(message: str) -> EngineRefused:
    return EngineRefused("thread/revert", -32600, message)


@pytest.mark.parametrize("words", [BOUNDARY, GONE])
async def test_the_next_undo_reaches_the_turn_before_one_that_codex_cannot_take_back(
    session: HandSession, words: str
) -> None:
    """With that one, it says; nothing is changed until then."""
    session.turns = [LastTurn("u1"), LastTurn("u2")]
    session.answers["thread/revert"] = [refusal(words.format("u2")), {}]
    assert await undo(session) == (
        f"Codex cannot take back this turn: {words.format('u2')}. Nothing was changed. "
        "The next /undo goes on with the turn before it, and takes this one along."
    )
    assert "is taken back" in await undo(session)
    assert [params["beforeTurnId"] for _, params in session.done] == ["u2", "u1"]


async def test_the_edits_of_such_a_turn_are_said_to_stay(session: HandSession) -> None:
    """The next one takes back only its own."""
    session.turns = [LastTurn("u1", (FileChange(path="/w/a", kind="update", diff="@@"),), "")]
    session.answers["thread/revert"] = refusal(BOUNDARY.format("u1"))
    assert (await undo(session)).endswith("Its edits stay in the files.")


async def test_in_a_session_taken_up_again_codex_names_what_is_older(session: HandSession) -> None:
    """The turn that was passed over may be the newest still, or be gone."""
    listed = {"data": [{"id": "u3"}, {"id": "u2"}, {"id": "u1"}]}
    session.answers |= {"thread/turns/list": listed, "thread/revert": {}}
    for settled, wanted in (("u3", "u2"), ("u2", "u1"), ("u9", "u3")):
        session.turns = [LastTurn(settled, is_settled=True)]
        assert "it is not known what it edited" in await undo(session)
        assert session.done[-1] == ("thread/revert", {"threadId": "t1", "beforeTurnId": wanted})
    session.turns = [LastTurn("u1", is_settled=True)]
    assert await undo(session) == "There is no other turn to undo."


def test_memory_keeps_the_place_of_what_it_forgets() -> None:
    """Turns that ended while nobody looked are older than that."""
    memory = Memory()
    assert memory.last is None
    memory.forget("old")
    assert memory.last == LastTurn("old", is_settled=True)
    for turn_id in ("u1", "u2"):
        memory.end(TurnDone(turn_id=turn_id, status="completed"))
    assert memory.last == LastTurn("u2")
    memory.forget("u2")
    assert memory.last == LastTurn("u1")
    memory.forget("u1")
    assert memory.last == LastTurn("u1", is_settled=True)


# ── the real Codex ─────────────────────────────────────────────────────────


async def say(client: Client, session: str, text: str) -> str:
    """The last message that the prompt was answered with."""
    assert await client.prompt(session, text) == {"stopReason": "end_turn"}
    return client.messages(session)[-1]


async def cancelled_review(client: Client, session: str) -> None:
    prompt = client.start_prompt(session, "/review %run sleep 600")
    await client.wait_update(lambda update: update.kind == "tool_call" and "sleep 600" in str(update.body))
    client.cancel(session)
    assert await prompt == {"stopReason": "cancelled"}


async def test_undo_gets_behind_a_cancelled_review(shared: Shared) -> None:
    """Codex keeps no beginning of it. The turn before takes it along."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        await say(client, session, "%say The first is kept.")
        await say(client, session, "%say The second goes.")
        await cancelled_review(client, session)
        await say(client, session, "/undo")  # refused, in words of Codex that name the turn
        assert "is taken back" in await say(client, session, "/undo")
        await say(client, session, "And now?")
        seen = str(here.requests[-1]["input"])
        assert "The first is kept." in seen
        assert "The second goes." not in seen
        assert "Review was interrupted." not in seen
        assert "is taken back" in await say(client, session, "/undo")
        assert "is taken back" in await say(client, session, "/undo")
        assert "There is no other turn to undo." in await say(client, session, "/undo")


@pytest.mark.needs("history_pages")
async def test_undo_gets_behind_a_cancelled_review_in_a_session_that_came_back(shared: Shared) -> None:
    """To the beginning of the conversation, though Codex may list such a review as one turn or as two."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        await say(client, session, "%say The first goes.")
        await say(client, session, "%say The second goes.")
        await cancelled_review(client, session)
        await client.ask("session/close", {"sessionId": session})
        await client.load(session)
        steps = 0
        while "There is no other turn to undo." not in await say(client, session, "/undo"):
            steps += 1
            assert steps <= 4, client.messages(session)
        await say(client, session, "And now?")
        assert "goes." not in str(here.requests[-1]["input"])
