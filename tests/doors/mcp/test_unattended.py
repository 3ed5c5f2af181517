"""Questions in turns that no call waits for: who is asked, who takes them over, what no answer means."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import RemoteError
from laneway.core.model import TurnStarted
from laneway.core.named.opening import Budget
from laneway.doors.mcp.dropin import DropIn
from laneway.doors.mcp.events import Silence
from laneway.doors.mcp.presets import SessionDefaults
from laneway.doors.mcp.unattended import Unattended
from laneway.testing.engine import HandThread
from tests.core.named.support import stage
from tests.core.support import until
from tests.doors.mcp.hand import FORMS, Client, Message, Place, place

MINUTES_S = 300.0
"""After which a question is declined by itself."""


def begin_own(thread: HandThread) -> None:
    """Codex starts a turn that nobody asked it for."""
    thread.turn_id = "codex-own"
    thread.emit(TurnStarted(turn_id="codex-own"))


def mail_turn(home: Place, agent_id: str) -> Any:
    named = home.here.sessions.find("me", agent_id=agent_id)
    return home.here.sessions.say(named, "mail", kind="mail", source="mail")


def answered(thread: HandThread, question_id: str = "q") -> Callable[[], bool]:
    return lambda: question_id in thread.answers


@pytest.mark.parametrize("is_in_turn", [True, False])
@pytest.mark.parametrize(("action", "choice"), [("accept", "accept"), ("decline", "decline")])
async def test_what_codex_asks_by_itself_is_put_to_the_client(
    tmp_path: Path, is_in_turn: bool, action: str, choice: str
) -> None:
    """In a turn that Codex started, and outside of all turns."""
    async with place(tmp_path) as home:
        client = await home.client()
        agent_id, thread = await home.session(client)
        if is_in_turn:
            begin_own(thread)
        thread.ask("q")
        asked, answer = await client.question()
        assert (asked["agent_id"], asked["codex_mcp_tool_call_id"]) == (agent_id, "")
        answer.set_result({"action": action})
        await until(answered(thread))
        assert thread.answers["q"].choice_id == choice
        assert await home.audit() == [choice]


@pytest.mark.parametrize("how", ["no forms", "refuses", "dismisses", "gone"])
@pytest.mark.parametrize("unattended", ["decline", "park"])
async def test_where_nobody_can_be_asked_the_setting_decides(
    tmp_path: Path, how: str, unattended: Unattended
) -> None:
    """At once, in both cases: nothing waits for a time to be up."""
    async with place(tmp_path, unattended) as home:
        client = await home.client({} if how == "no forms" else FORMS)
        agent_id, thread = await home.session(client)
        client.is_there = how != "gone"
        begin_own(thread)
        thread.ask("q")
        if how in ("refuses", "dismisses"):
            _, answer = await client.question()
            if how == "refuses":
                answer.set_exception(RemoteError(-32601, "no such method"))
            else:
                answer.set_result({"action": "cancel"})
        if unattended == "decline":
            await until(answered(thread))
            assert thread.answers["q"].choice_id == "decline"
            assert "questions" not in await client.tool("agent_status")
            return
        status = await waiting(client)
        assert [row["agent_id"] for row in status] == [agent_id]
        assert not thread.answers
        await client.tool("agent_answer", question_id="q", action="accept")
        assert thread.answers["q"].choice_id == "accept"
        assert await home.audit() == ["accept"]


async def waiting(client: Client) -> list[Message]:
    """What `agent_status` says is parked, once anything is."""
    while not (found := (await client.tool("agent_status")).get("questions")):
        await asyncio.sleep(0)
    rows: list[Message] = found
    return rows


async def test_a_parked_question_is_its_owners_alone(tmp_path: Path) -> None:
    """Another client of the server is not told of it, and cannot answer it."""
    async with place(tmp_path, "park") as home:
        owner, other = await home.client({}), await home.client({}, "somebody else")
        _, thread = await home.session(owner)
        thread.ask("q")
        await waiting(owner)
        assert "questions" not in await other.tool("agent_status")
        with pytest.raises(RemoteError) as caught:
            await other.tool("agent_answer", question_id="q", action="accept")
        assert caught.value.code == -32007
        assert not thread.answers


async def test_a_parked_question_that_is_over_waits_no_longer(tmp_path: Path) -> None:
    """Its time was up: declined, and in the log. Its turn ended: gone."""
    async with place(tmp_path, "park") as home:
        client = await home.client({})
        agent_id, thread = await home.session(client)
        session = home.here.sessions.find("me", agent_id=agent_id).session
        begin_own(thread)
        thread.ask("late")
        await until(lambda: session.questions)  # its time runs
        await waiting(client)
        home.here.clock.advance(MINUTES_S)
        await until(answered(thread, "late"))
        assert "questions" not in await client.tool("agent_status")
        assert await home.audit() == ["timed out"]
        thread.ask("moot")
        await waiting(client)
        thread.end()
        await until(answered(thread, "moot"))
        assert "questions" not in await client.tool("agent_status")


async def test_a_call_that_waits_behind_the_turn_tells_what_was_declined(tmp_path: Path) -> None:
    """It is the first whom anything can be told; its own turn follows."""
    async with place(tmp_path) as home:
        client = await home.client({})
        agent_id, thread = await home.session(client)
        turn = mail_turn(home, agent_id)
        await until(lambda: len(thread.started) == 2)
        reply = client.start("codex-reply", agent_id=agent_id, prompt="next")
        await until(lambda: home.here.sessions.find("me", agent_id=agent_id).turns == 3)
        thread.ask("q")
        await until(answered(thread))
        thread.end()
        await turn.result()
        await until(lambda: len(thread.started) == 3)
        thread.end(text="done")
        text = (await reply)["content"]
        assert text.startswith("done\n\nDeclined, because this client can ask nobody: ")


async def test_a_question_that_a_cancelled_call_leaves_is_put_to_the_client_again(tmp_path: Path) -> None:
    """The call was only waiting its turn: what the running turn wants to know is still to be answered."""
    async with place(tmp_path) as home:
        client = await home.client()
        agent_id, thread = await home.session(client)
        turn = mail_turn(home, agent_id)
        await until(lambda: len(thread.started) == 2)
        reply = client.start("codex-reply", agent_id=agent_id, prompt="next")
        await until(lambda: home.here.sessions.find("me", agent_id=agent_id).turns == 3)
        thread.ask("q")
        asked, first = await client.question()
        reply.cancel()
        again, second = await client.question(2)
        assert first.cancelled()
        assert (asked["codex_mcp_tool_call_id"] != "", again["codex_mcp_tool_call_id"]) == (True, "")
        second.set_result({"action": "accept"})
        await until(answered(thread))
        assert thread.answers["q"].choice_id == "accept"
        thread.end()
        await turn.result()


async def test_what_is_parked_while_a_call_waits_comes_back_with_that_call(tmp_path: Path) -> None:
    """The client was asked, then another call came, then the client gave no answer."""
    async with place(tmp_path, "park") as home:
        client = await home.client()
        agent_id, thread = await home.session(client)
        turn = mail_turn(home, agent_id)
        await until(lambda: len(thread.started) == 2)
        thread.ask("q")
        _, first = await client.question()
        reply = client.start("codex-reply", agent_id=agent_id, prompt="next")
        await until(lambda: home.here.sessions.find("me", agent_id=agent_id).turns == 3)
        first.set_result({"action": "cancel"})
        _, second = await client.question(2)  # now by the call, which dismisses it as well
        second.set_result({"action": "cancel"})
        held_up = await reply
        assert (held_up["status"], held_up["question"]["question_id"]) == ("input_required", "q")
        result = client.start("agent_answer", question_id="q", action="accept")
        await until(answered(thread))
        thread.end()
        await turn.result()
        await until(lambda: len(thread.started) == 3)
        thread.end(text="done")
        assert (await result)["content"] == "done"


async def test_a_second_question_behind_a_call_that_has_returned_is_found_by_status(tmp_path: Path) -> None:
    """Nobody waits for that call now; when somebody does again, the second one comes back with it."""
    async with place(tmp_path, "park") as home:
        client = await home.client({})
        agent_id, thread = await home.session(client)
        turn = mail_turn(home, agent_id)
        await until(lambda: len(thread.started) == 2)
        thread.ask("one")
        await waiting(client)
        held_up = await client.tool("codex-reply", agent_id=agent_id, prompt="next")
        assert held_up["question"]["question_id"] == "one"
        thread.ask("two")
        (row,) = await waiting(client)
        assert row["question"]["question_id"] == "two"
        again = await client.tool("agent_answer", question_id="one", action="accept")
        assert (again["status"], again["question"]["question_id"]) == ("input_required", "two")
        result = client.start("agent_answer", question_id="two", action="decline")
        await until(answered(thread, "two"))
        assert [thread.answers[key].choice_id for key in ("one", "two")] == ["accept", "decline"]
        thread.end()
        await turn.result()
        await until(lambda: len(thread.started) == 3)
        thread.end(text="done")
        assert (await result)["content"] == "done"


async def test_the_death_of_codex_leaves_no_question_behind(tmp_path: Path) -> None:
    """Neither with the client nor parked."""
    async with place(tmp_path) as home:
        client = await home.client()
        _, thread = await home.session(client)
        begin_own(thread)
        thread.ask("q")
        _, answer = await client.question()
        home.here.engine.die()
        await until(answer.cancelled)


async def test_a_session_whose_call_was_refused_is_heard_all_the_same(tmp_path: Path) -> None:
    """It was resumed, then its turn was refused: it is live, and what Codex asks in it is not lost."""
    async with place(tmp_path, budget=Budget(max_turns=1)) as home:
        client = await home.client()
        agent_id, thread = await home.session(client)
        await client.tool("agent_close", agent_id=agent_id)
        with pytest.raises(RemoteError) as caught:
            await client.tool("codex", agent_id=agent_id, prompt="again")
        assert caught.value.code == -32010
        resumed = home.here.engine.threads[thread.info.thread_id]
        begin_own(resumed)
        resumed.ask("q")
        _, answer = await client.question()
        answer.set_result({"action": "accept"})
        await until(answered(resumed))


@pytest.mark.parametrize("capabilities", [FORMS, {}])
async def test_the_drop_in_puts_it_to_every_client_as_it_does_in_a_call(
    tmp_path: Path, capabilities: Message
) -> None:
    """The old server's clients do not say that they can answer."""
    async with stage(tmp_path) as here:
        server = DropIn(
            here.sessions.hub, here.clock, SessionDefaults(cwd=tmp_path, base_dir=tmp_path), Silence
        )
        home = Place(here, server.server("1"))
        client = await home.client(capabilities)
        _, thread = await home.session(client)
        begin_own(thread)
        thread.ask("q")
        _, answer = await client.question()
        answer.set_result({"decision": "approved"})
        await until(answered(thread))
        assert thread.answers["q"].choice_id == "accept"
