"""What the user's other terminals can do: list, watch, stop, close; and what they cannot break."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from laneway.base.errors import EngineError, RemoteError, WireBroken
from laneway.core.model import DECLINE, Activity, Answer
from laneway.core.named.session import ClosedSession
from laneway.core.subscription import MAX_EVENTS
from laneway.doors.local.api import STOP_S, LocalApi
from laneway.doors.local.client import connect
from laneway.doors.local.shapes import (
    ANSWER,
    CLOSE,
    LIST,
    NOT_A_PERSON,
    NOT_HERE,
    STOP,
    WATCH,
    Listed,
    Stopped,
)
from laneway.wire.messages import Raw, encode
from tests.core.named.support import stage
from tests.core.support import until
from tests.doors.local.support import LocalStage, Stranger, local_stage, onlooker
from tests.doors.sample_questions import TOOL


async def ask(home: LocalStage, method: str, reply: Any, **which: str) -> Any:
    async with connect(home.door.path) as visitor:
        return await visitor.call(method, which, reply=reply)


def noted(home: LocalStage) -> list[str]:
    """What stands in the audit log, which is written in the background."""
    return [line["event_type"] for line in home.here.audit()]


async def test_all_sessions_are_listed_whoever_owns_them(tmp_path: Path, run: Path) -> None:
    """With what they are and do."""
    async with local_stage(tmp_path, run) as home:
        ann, bob = await home.here.open("ann"), await home.here.open("bob")
        await home.here.busy(bob)
        home.here.thread(bob).ask("q1")
        await until(lambda: bob.session.questions)
        listed: Listed = await ask(home, LIST, Listed)
        rows = [(s.agent_id, s.identity, s.team, s.state, s.turns, s.open_questions) for s in listed.sessions]
        assert rows == [
            (ann.agent_id, "ann", "crew", "idle", 0, 0),
            (bob.agent_id, "bob", "crew", "busy", 1, 1),
        ]
        home.here.thread(bob).end()


async def test_a_watcher_sees_a_session_from_now_on_until_it_is_closed(tmp_path: Path, run: Path) -> None:
    """First what is the case, then every event in order, then the end."""
    async with local_stage(tmp_path, run) as home:
        ann = await home.here.open("ann")
        await home.here.turn(ann, "before")
        async with onlooker(home.door.path, identity="ann") as looking:
            (snapshot,) = looking.snapshots
            assert (snapshot.session.agent_id, snapshot.session.turns) == (ann.agent_id, 1)
            turn = await home.here.busy(ann)
            home.here.thread(ann).say("hello ")
            home.here.thread(ann).end(text="hello")
            await turn.result()
            await home.here.sessions.close("me", agent_id=ann.agent_id)
            assert (await looking.answer).lost == 0
            assert looking.kinds == ["turn_started", "accepted", "text", "turn_done", "closed"]
            assert looking.events[2]["text"] == "hello "


async def test_who_comes_while_a_question_is_open_sees_it(tmp_path: Path, run: Path) -> None:
    """In the snapshot, whole; and hears when it is settled."""
    async with local_stage(tmp_path, run) as home:
        ann = await home.here.open("ann")
        turn = await home.here.busy(ann)
        home.here.thread(ann).ask("q1")
        await until(lambda: ann.session.questions)
        async with onlooker(home.door.path, agent_id=ann.agent_id) as looking:
            (question,) = looking.snapshots[0].questions
            assert (question.question_id, question.message) == ("q1", "May I?")
            assert [choice.choice_id for choice in question.choices] == ["accept", "decline"]
            await ann.session.answer("q1", DECLINE)
            home.here.thread(ann).end()
            await turn.result()
            await until(lambda: "turn_done" in looking.kinds)
            assert (looking.kinds[0], looking.events[0]["question_id"]) == ("withdrawn", "q1")


async def test_two_watchers_hear_the_same(tmp_path: Path, run: Path) -> None:
    """And one that leaves takes nothing from the other, nor from the session."""
    async with local_stage(tmp_path, run) as home:
        ann = await home.here.open("ann")
        async with onlooker(home.door.path, identity="ann") as stays:
            async with onlooker(home.door.path, thread_id=ann.thread_id) as leaves:
                await home.here.turn(ann, "one")
                await until(lambda: leaves.kinds == stays.kinds == ["turn_started", "accepted", "turn_done"])
            await home.here.turn(ann, "two")
            await until(lambda: len(stays.kinds) == 6)
        assert ann.state == "idle"


async def test_a_watcher_that_stops_reading_loses_events_and_slows_nobody(tmp_path: Path, run: Path) -> None:
    """What it lost is counted; how the turn went reaches it all the same."""
    async with local_stage(tmp_path, run) as home:
        ann = await home.here.open("ann")
        async with onlooker(home.door.path, identity="ann") as quick:
            with Stranger(home.door.path, buffer_bytes=4096) as slow:
                await slow.send(request(WATCH, identity="ann"))
                await slow.lines_until(lambda message: message.get("method") == "session/snapshot")
                turn = await home.here.busy(ann)
                number = 2 * MAX_EVENTS
                for count in range(number):
                    home.here.thread(ann).emit(work(str(count)))
                    if count % 500 == 0:
                        await until(partial(quick.has, count))
                home.here.thread(ann).end(text="done")
                assert (await turn.result()).text == "done"
                await until(lambda: quick.kinds[-1] == "turn_done")
                assert (quick.lost, quick.kinds.count("activity")) == (0, number)
                told = await slow.lines_until(lambda message: "turn_done" in json.dumps(message)[:200])
        kinds = [message["params"]["event"]["event"] for message in told]
        assert told[-1]["params"]["lost"] == number - kinds.count("activity") > 0


def work(item_id: str) -> Activity:
    return Activity(
        turn_id="t", item_id=item_id, kind="command", title="x" * 500, status="completed", exit_code=0
    )


def request(method: str, number: int = 1, **params: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


async def test_stop_ends_the_turn_that_runs_and_those_that_wait(tmp_path: Path, run: Path) -> None:
    """Whoever asked for them is answered, and the session can be used again."""
    async with local_stage(tmp_path, run) as home:
        ann = await home.here.open("ann")
        runs = await home.here.busy(ann)
        waits = home.here.sessions.say(ann, "later")
        stopped: Stopped = await ask(home, STOP, Stopped, identity="ann")
        assert (stopped.was, stopped.is_stopped) == ("busy", True)
        assert [(await turn.result()).status for turn in (runs, waits)] == ["interrupted", "interrupted"]
        await until(lambda: ann.state == "idle")
        assert (await home.here.turn(ann, "again")).text == "done: again"
        again: Stopped = await ask(home, STOP, Stopped, identity="ann")
        assert (again.was, again.is_stopped) == ("idle", True)
        await until(lambda: noted(home).count("turn_done") == 3)
        assert noted(home).count("stop") == 1


async def test_a_turn_that_does_not_stop_is_told_as_such(tmp_path: Path, run: Path) -> None:
    """After longer than the session itself waits for it."""
    async with local_stage(tmp_path, run, is_obedient=False) as home:
        ann = await home.here.open("ann")
        await home.here.busy(ann)
        stopping = asyncio.ensure_future(ask(home, STOP, Stopped, identity="ann"))
        await until(lambda: home.here.thread(ann).interrupted)
        await pass_time(home, stopping, STOP_S + 1)
        stopped: Stopped = await stopping
        assert (stopped.was, stopped.is_stopped) == ("busy", False)
        home.here.thread(ann).end("interrupted")


async def pass_time(home: LocalStage, waiting: asyncio.Future[Any], seconds: float) -> None:
    for _ in range(int(seconds * 10)):
        home.here.clock.advance(0.1)
        for _ in range(5):
            await asyncio.sleep(0)
    await until(waiting.done)


async def test_a_turn_that_never_begins_is_stopped_without_an_event(tmp_path: Path, run: Path) -> None:
    """Codex refuses it in the very moment: nothing tells of that but the session's state."""
    async with local_stage(tmp_path, run) as home:
        ann = await home.here.open("ann")
        thread = home.here.thread(ann)
        thread.hold_starts, thread.refuse_with = asyncio.Event(), EngineError("no")
        turn = home.here.sessions.say(ann, "work")
        await until(lambda: thread.started)
        stopping = asyncio.ensure_future(ask(home, STOP, Stopped, identity="ann"))
        await until(lambda: "stop" in noted(home))
        thread.hold_starts.set()
        await pass_time(home, stopping, 1)
        assert (await stopping).is_stopped
        assert (await turn.result()).status == "interrupted"


async def test_close_ends_a_session_with_everything_that_belongs_to_it(tmp_path: Path, run: Path) -> None:
    """Though it is another's: the user of this machine may."""
    async with local_stage(tmp_path, run) as home:
        ann = await home.here.open("ann")
        turn = await home.here.busy(ann)
        ended: ClosedSession = await ask(home, CLOSE, ClosedSession, identity="ann")
        assert (ended.agent_id, ended.was, ended.status) == (ann.agent_id, "busy", "closed")
        assert (await turn.result()).stopped_by == "close"
        assert home.here.entries("ann")[0]["status"] == "closed"
        assert home.here.store.holder("ann") is None


@pytest.mark.parametrize("method", [WATCH, STOP, CLOSE])
async def test_a_session_that_is_not_here_is_said_so(method: str, tmp_path: Path, run: Path) -> None:
    """By a code of its own. What is kept and not live is not here."""
    async with local_stage(tmp_path, run) as home:
        ann = await home.here.open("ann")
        await home.here.sessions.close("me", agent_id=ann.agent_id)
        for which in ({"identity": "ann"}, {"agent_id": "agent_none"}, {"thread_id": "t"}):
            with pytest.raises(RemoteError) as caught:
                await ask(home, method, Any, **which)
            assert caught.value.code == NOT_HERE


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b'{"id":1,"method":"sessions/fly","params":{}}', -32601),
        (b'{"id":1,"method":"initialize"}', -32601),
        (b'{"id":1,"method":"sessions/watch"}', -32602),
        (b'{"id":1,"method":"sessions/watch","params":null}', -32602),
        (b'{"id":1,"method":"sessions/stop","params":[1]}', -32602),
        (b'{"id":1,"method":"sessions/stop","params":{"agent_id":7}}', -32602),
        (b'{"id":1,"method":"sessions/stop","params":{"agent_id":""}}', -32602),
        (b'{"id":1,"method":"sessions/close","params":{"agent_id":"a","identity":"b"}}', -32602),
        (b"GET / HTTP/1.1", -32700),
        (b"\xff\xfe\x00", -32700),
        (b"[]", -32600),
        (b'{"x": "' + b"y" * 100_000 + b'"}', -32600),
    ],
)
async def test_garbage_is_answered_and_harms_nothing(
    sent: bytes, code: int, tmp_path: Path, run: Path
) -> None:
    """On the same connection the next good request is served."""
    async with local_stage(tmp_path, run) as home:
        await home.here.open("ann")
        with Stranger(home.door.path) as stranger:
            await stranger.send(sent + b"\n" + request(LIST, 2))
            told = await stranger.lines_until(lambda message: message.get("id") == 2)
            assert told[0]["error"]["code"] == code
            assert [each["identity"] for each in told[-1]["result"]["sessions"]] == ["ann"]


async def test_when_the_sessions_end_their_watchers_hear_it_before_the_door_is_shut(
    tmp_path: Path, run: Path
) -> None:
    """And nothing is left in the folder."""
    async with local_stage(tmp_path, run) as home:
        await home.here.open("ann")
        async with connect(home.door.path) as silent, onlooker(home.door.path, identity="ann") as looking:
            await home.here.sessions.shutdown()
            await home.door.__aexit__(None, None, None)
            await looking.answer
            assert looking.kinds == ["closed"]
            with pytest.raises(WireBroken):
                await silent.call(LIST, reply=Listed)
        assert list((run / "laneway").iterdir()) == []


async def test_a_watcher_that_never_reads_does_not_keep_the_door_open(tmp_path: Path, run: Path) -> None:
    """A terminal may be stopped for days."""
    async with local_stage(tmp_path, run) as home:
        ann = await home.here.open("ann")
        with Stranger(home.door.path, buffer_bytes=4096) as slow:
            await slow.send(request(WATCH, identity="ann"))
            await slow.lines_until(lambda message: message.get("method") == "session/snapshot")
            turn = await home.here.busy(ann)
            for count in range(MAX_EVENTS):
                home.here.thread(ann).emit(work(str(count)))
            home.here.thread(ann).end()
            await turn.result()
            await home.here.sessions.shutdown()
            await home.door.__aexit__(None, None, None)
            with pytest.raises((EOFError, ConnectionResetError)):
                await slow.lines_until(lambda message: False)


async def test_a_question_is_not_answered_by_a_program(tmp_path: Path, run: Path) -> None:
    """Only by a person at a terminal; it stays open, and nothing is noted."""
    async with local_stage(tmp_path, run) as home:
        ann = await home.here.open("ann")
        await home.here.busy(ann)
        home.here.thread(ann).ask("q1")
        await until(lambda: ann.session.questions)
        with pytest.raises(RemoteError) as caught:
            await ask(home, ANSWER, Any, identity="ann", question_id="q1", choice_id="accept")
        assert caught.value.code == NOT_A_PERSON
        assert home.here.thread(ann).answers == {}
        assert "answer" not in noted(home)
        home.here.thread(ann).end()


@pytest.mark.parametrize("params", [{}, {"question_id": "q1"}, {"question_id": 1, "choice_id": "accept"}])
async def test_an_answer_without_its_question_is_no_request(
    params: dict[str, Any], tmp_path: Path, run: Path
) -> None:
    """Said as such, before anybody is looked at."""
    async with local_stage(tmp_path, run) as home:
        await home.here.open("ann")
        with pytest.raises(RemoteError) as caught:
            await ask(home, ANSWER, Any, identity="ann", **params)
        assert caught.value.code == -32602


class Person:
    """The channel of a person at a terminal."""

    async def is_person(self) -> bool:
        return True


async def test_a_persons_words_with_a_no_reach_the_engine(tmp_path: Path, run: Path) -> None:
    """From another terminal, too."""
    async with stage(tmp_path) as here:
        ann = await here.open("ann")
        await here.busy(ann)
        here.thread(ann).ask("q1", **TOOL)
        await until(lambda: ann.session.questions)
        params = {"identity": "ann", "question_id": "q1", "choice_id": "decline", "words": "use curl"}
        await LocalApi(here.sessions, here.clock).serve(cast(Any, Person()), ANSWER, Raw(encode(params)))
        assert here.thread(ann).answers["q1"] == Answer(choice_id="decline", words="use curl")
        here.thread(ann).end()
