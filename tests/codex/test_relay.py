"""The engine on `codex mcp-server`: turns by their events, its faults, and what is passed through."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from laneway.base.errors import BinaryError, EngineLost, EngineRefused
from laneway.codex.locate import Binary
from laneway.codex.relay import check_has_mcp_server, relay_engine
from laneway.core.model import (
    Accepted,
    Answer,
    Asked,
    Event,
    Failure,
    FileChange,
    Notice,
    Other,
    Question,
    Text,
    ThreadKnown,
    TurnDone,
    TurnStarted,
    UserSaid,
    Withdrawn,
)
from laneway.core.ports import ImagePart, TextPart, TurnSpec
from laneway.testing.processes import wait_gone
from tests.codex.relay_support import SPEC, relay, relayed
from tests.codex.support import ME, first, only, play, say


def texts(events: list[Event]) -> str:
    return "".join(event.text for event in only(events, Text))


# ── turns ──────────────────────────────────────────────────────────────────


@pytest.mark.covers("FR-1.3")
async def test_nothing_runs_before_the_first_session_and_nothing_after_the_last() -> None:
    """Lazily started, one process for all threads, gone with the hub."""
    engine = relay()
    async with relayed(engine) as hub:
        assert not engine.is_running
        one, two = await hub.start(ME, SPEC), await hub.start(ME, SPEC)
        pid = engine.pid
        assert pid is not None
        for session in (one, two):
            _, result = await play(session, "hello")
            assert result.text == "hello"
        assert engine.pid == pid
        assert one.thread_id != two.thread_id
    await wait_gone(pid)
    assert engine.ended is None


async def test_a_thread_has_its_id_from_its_first_event_on() -> None:
    """`codex` begins the thread; nobody hears of the turn before its id is known."""
    async with relayed(relay()) as hub:
        session = await hub.start(ME, SPEC)
        assert session.thread_id == ""
        heard = session.subscribe()
        await play(session, "hello")
        known = await anext(heard)
        assert known == ThreadKnown(thread_id=session.thread_id)
        assert session.info.thread_id == session.thread_id != ""


async def test_a_turn_is_told_in_the_words_of_the_core() -> None:
    """Begun, accepted, said, done: once each, every notification the frame of exactly one of them."""
    async with relayed(relay()) as hub:
        session = await hub.start(ME, SPEC)
        turn = say(session, "hello")
        events = [event async for event in turn.events]
        assert [type(event) for event in events] == [TurnStarted, UserSaid, Accepted, Text, TurnDone]
        assert events[0] == TurnStarted(turn_id="turn-1", ticket=turn.ticket, frame=events[0].frame)
        said = events[1]
        assert isinstance(said, UserSaid)
        assert said.client_id == turn.ticket
        assert events[2] == Accepted(turn_id="turn-1", item_id=said.item_id, client_id=turn.ticket)
        frames = [
            msgspec.json.decode(event.frame)["params"]["msg"]["type"] for event in events if event.frame
        ]
        assert frames == ["task_started", "user_message", "agent_message", "task_complete"]


async def test_what_a_turn_should_know_goes_behind_the_instructions_first_and_before_the_words_later() -> (
    None
):
    """`codex-reply` takes no instructions."""
    async with relayed(relay(), compose=lambda session: f"[turn {session.turns}]") as hub:
        session = await hub.start(ME, msgspec.structs.replace(SPEC, developer_instructions="Be brief."))
        heard = session.subscribe()
        await play(session, "one")
        configured = next(e for e in [await anext(heard) for _ in range(2)] if isinstance(e, Other))
        assert configured.params["arguments"] == {
            "prompt": "one",
            "cwd": "/",
            "developer-instructions": "Be brief.\n\n[turn 0]",
        }
        events, _ = await play(session, "two")
        assert only(events, UserSaid)[0].text == "[turn 1]\n\ntwo"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (TurnSpec(parts=(ImagePart(path="/x.png"),)), "text and nothing else"),
        (TurnSpec(parts=(TextPart("x"),), output_schema={}), "no schema"),
        (TurnSpec(parts=(TextPart("x"),), model="other"), "cannot change the model"),
    ],
)
async def test_what_the_old_server_cannot_take_is_refused_not_left_out(spec: TurnSpec, why: str) -> None:
    """With the way out in the sentence."""
    async with relayed(relay()) as hub:
        session = await hub.start(ME, SPEC)
        await play(session, "hello")
        with pytest.raises(EngineRefused, match=f"{why}.*--backend app-server"):
            await session.say(spec).result()
        assert (await play(session, "again"))[1].status == "completed"


async def test_a_call_that_is_refused_before_there_is_a_thread_is_told_in_the_childs_words() -> None:
    """And the next one may do better."""
    async with relayed(relay()) as hub:
        session = await hub.start(ME, SPEC)
        with pytest.raises(EngineRefused, match="refused codex: bad config"):
            await say(session, "refuse bad config").result()
        assert (await play(session, "hello"))[1].text == "hello"


async def test_a_thread_that_must_not_be_kept_is_refused() -> None:
    """The old server writes every thread to the disk."""
    async with relayed(relay()) as hub:
        with pytest.raises(EngineRefused, match="keeps every thread"):
            await hub.start(ME, msgspec.structs.replace(SPEC, ephemeral=True))


async def test_an_answer_without_an_event_ends_the_turn_all_the_same() -> None:
    """Nobody listens after the answer: waiting on would be for ever."""
    async with relayed(relay()) as hub:
        session = await hub.start(ME, SPEC)
        _, result = await play(session, "silent done")
        assert (result.status, result.text) == ("completed", "done")


async def test_an_end_that_overtakes_the_text_brings_the_text() -> None:
    """Seen where two calls listen to one thread."""
    async with relayed(relay()) as hub:
        session = await hub.start(ME, SPEC)
        events, result = await play(session, "shuffle")
        assert (result.text, texts(events)) == ("late", "late")


async def test_nonsense_is_counted_and_the_turn_goes_on() -> None:
    """Odd shapes, unknown events and those of other turns still reach the doors, as `Other`."""
    engine = relay()
    async with relayed(engine) as hub:
        session = await hub.start(ME, SPEC)
        events, result = await play(session, "garbage")
        assert (result.status, texts(events)) == ("completed", "garbage")
        odd = [event.params["type"] for event in only(events, Other)]
        assert odd == ["plan_update", "brand_new", "agent_message"]
        assert (await engine.link()).garbage == 4


# ── the faults of the old server ───────────────────────────────────────────


async def test_a_cancelled_turn_ends_and_the_thread_goes_on() -> None:
    """The old server never answers the cancelled call, and later answers the wrong one: nobody notices."""
    engine = relay()
    async with relayed(engine) as hub:
        session = await hub.start(ME, SPEC)
        turn = say(session, "hang")
        await first(turn, TurnStarted)
        turn.cancel()
        assert (await turn.result()).status == "interrupted"
        for words in ("one", "two", "three"):
            events, result = await play(session, words)
            assert (result.text, len(only(events, TurnDone))) == (words, 1)
        pid = engine.pid
    assert pid is not None
    await wait_gone(pid)


async def test_after_a_failed_turn_the_thread_says_that_it_cannot_go_on() -> None:
    """Or else every later answer would come one call late. Other threads are not concerned."""
    async with relayed(relay()) as hub:
        session, other = await hub.start(ME, SPEC), await hub.start(ME, SPEC)
        events, result = await play(session, "fail out of luck")
        assert result.failure == Failure(kind="internal_server_error", message="out of luck")
        assert [event.level for event in only(events, Notice)] == ["error"]
        for _ in range(2):
            with pytest.raises(EngineRefused, match="start a new session"):
                await say(session, "again").result()
        assert (await play(other, "hello"))[1].text == "hello"


async def test_a_failed_turn_that_somebody_still_listens_to_harms_nothing() -> None:
    """A call left open by an interrupt hears the end of the failed turn."""
    async with relayed(relay()) as hub:
        session = await hub.start(ME, SPEC)
        turn = say(session, "hang")
        await first(turn, TurnStarted)
        turn.cancel()
        await turn.result()
        assert (await play(session, "fail out of luck"))[1].status == "failed"
        assert (await play(session, "hello"))[1].text == "hello"


@pytest.mark.parametrize(
    ("prompt", "how"), [("exit 3", "exit code 3"), ("signal SIGSEGV", "killed by SIGSEGV")]
)
async def test_a_death_in_mid_turn_fails_the_turn_and_the_thread_is_gone(prompt: str, how: str) -> None:
    """With its cause; a new process knows nothing of the old one's threads, and says so."""
    engine = relay()
    async with relayed(engine) as hub:
        session, idle = await hub.start(ME, SPEC), await hub.start(ME, SPEC)
        _, result = await play(session, prompt)
        assert result.failure == Failure(kind="engine_lost", message=f"Codex ended unexpectedly: {how}")
        assert (engine.is_running, engine.ended, idle.lost_how) == (False, how, how)
        with pytest.raises(EngineRefused, match="another process of it began"):
            await say(session, "hello").result()
        fresh = await hub.start(ME, SPEC)
        assert (await play(fresh, "hello"))[1].text == "hello"


async def test_where_a_dead_process_must_not_be_replaced_it_is_not() -> None:
    """Until whoever decides allows it, once."""
    engine = relay()
    engine.renews = False
    async with relayed(engine) as hub:
        await play(await hub.start(ME, SPEC), "exit 3")
        with pytest.raises(EngineLost, match="exit code 3"):
            await hub.start(ME, SPEC)
        engine.renew()
        assert (await play(await hub.start(ME, SPEC), "hello"))[1].text == "hello"


async def test_a_session_can_be_had_back_while_the_process_lives() -> None:
    """Released threads are kept by the process; held ones are taken by nobody else."""
    async with relayed(relay()) as hub:
        session = await hub.start(ME, SPEC)
        await play(session, "one")
        thread_id = session.thread_id
        await session.close()
        await hub.wait_gone(session.agent_id)
        again = await hub.resume(ME, thread_id, SPEC)
        events, result = await play(again, "two")
        assert (again.thread_id, result.text) == (thread_id, "two")
        assert only(events, TurnStarted)[0].turn_id == "turn-2"
        assert [info.thread_id for info in (await hub.engine.list_threads()).threads] == [thread_id]


async def test_a_child_that_never_shakes_hands_is_an_error_not_a_hang() -> None:
    """And its process is gone."""
    mute = relay("--mute", "--deaf", handshake_s=0.3)
    with pytest.raises(EngineLost, match="no answer to initialize"):
        await mute.abilities()
    await mute.aclose()


# ── approvals ──────────────────────────────────────────────────────────────


def choosing(grants: str) -> Callable[[Question], Answer]:
    return lambda question: Answer(
        choice_id=next(c.choice_id for c in question.choices if c.grants == grants)
    )


@pytest.mark.parametrize(
    ("grants", "told"),
    [
        ("once", '{"decision": "approved"}'),
        ("session", '{"decision": "approved_for_session"}'),
        ("nothing", '{"decision": {"denied": {"rejection": "The user declined."}}}'),
    ],
)
async def test_an_approval_is_asked_and_answered_in_the_childs_words(grants: str, told: str) -> None:
    """The command as one would type it, the way back as the old server reads it."""
    async with relayed(relay()) as hub:
        session = await hub.start(ME, SPEC)
        events, result = await play(session, "ask", decide=choosing(grants))
        question = only(events, Asked)[0].question
        assert (question.kind, question.command, question.cwd) == ("command", "rm -r x", "/")
        assert (question.thread_id, question.turn_id, question.item_id) == (
            session.thread_id,
            "turn-1",
            "call-1",
        )
        assert result.text == told


async def test_an_edit_is_shown_before_it_is_approved() -> None:
    """By path, kind and text."""
    async with relayed(relay()) as hub:
        session = await hub.start(ME, SPEC)
        events, _ = await play(session, "patch", decide=choosing("once"))
        change = FileChange(path="/a.txt", kind="add", diff="x\n")
        assert only(events, Asked)[0].question.changes == (change,)


async def test_decline_and_stop_ends_the_turn_though_the_child_never_answers() -> None:
    """As after an interrupt, the thread goes on."""
    async with relayed(relay()) as hub:
        session = await hub.start(ME, SPEC)
        _, result = await play(session, "ask", decide=choosing("stop"))
        assert result.status == "interrupted"
        assert (await play(session, "hello"))[1].text == "hello"


async def test_a_question_whose_turn_is_stopped_is_declined_and_withdrawn() -> None:
    """Nobody's yes comes after the end."""
    async with relayed(relay()) as hub:
        session = await hub.start(ME, SPEC)
        turn = say(session, "ask")
        asked = await first(turn, Asked)
        heard = session.subscribe()
        turn.cancel()
        assert (await turn.result()).status == "interrupted"
        rest = [await anext(heard)]
        while not isinstance(rest[-1], TurnDone):
            rest.append(await anext(heard))
        assert only(rest, Withdrawn)[0].question_id == asked.question.question_id
        assert session.questions == []


# ── which Codex ────────────────────────────────────────────────────────────


def test_a_codex_without_an_mcp_server_is_named_with_the_remedy() -> None:
    """The version, the place, and both ways out."""
    check_has_mcp_server((0, 153, 4), "/bin/codex")
    with pytest.raises(BinaryError) as refused:
        check_has_mcp_server((0, 154, 0), "/bin/codex")
    assert str(refused.value) == (
        "Codex 0.154.0 at /bin/codex has no mcp-server; 0.153.4 was the last that had one: leave out"
        " --backend mcp-server, or name a Codex up to 0.153.4 with --codex-bin."
    )


async def test_todays_codex_is_refused_in_words_when_it_is_first_needed() -> None:
    """It takes `mcp-server` for a prompt and ends; the version is looked at only then."""
    from laneway.codex import locate

    found = locate.find()
    engine = relay_engine(Binary(found.path, "test"))
    with pytest.raises(BinaryError, match="has no mcp-server"):
        await engine.abilities()
    await engine.aclose()
