"""Sessions end: closed by their owner, all at once, or by accident (FR-7, 17)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from laneway.base.errors import IdentityHeld, SessionClosed, SessionUnknown
from laneway.core.named.closer import SUMMARY_PROMPT
from laneway.core.named.opening import Budget
from laneway.store.registry import Entry
from laneway.store.store import Store
from laneway.testing.engine import HandEngine
from tests.core.named.support import ME, TEAM, stage, texts
from tests.core.support import until


async def test_fr_17_3_an_idle_session_is_closed_at_once_without_a_summary(tmp_path: Path) -> None:
    """Its thread is given back and its name is free when close returns."""
    async with stage(tmp_path, summaries=True) as here:
        named = await here.open("a")
        await here.turn(named)
        ended = await here.sessions.close(ME, agent_id=named.agent_id)
        assert (ended.was, ended.status, ended.summary) == ("idle", "closed", None)
        assert len(here.thread(named).started) == 1
        assert here.thread(named).is_released
        assert here.store.holder("a") is None
        assert [entry["status"] for entry in here.entries("a")] == ["closed"]
        assert here.sessions.live() == []


async def test_fr_17_4_a_busy_session_is_stopped_and_asked_for_a_summary(tmp_path: Path) -> None:
    """What waits behind the turn is refused; the summary is written; the status is closed."""
    async with stage(tmp_path, summaries=True) as here:
        named = await here.open("a")
        thread = here.thread(named)
        thread.replies[SUMMARY_PROMPT] = "All done."
        running = await here.busy(named)
        waiting = here.sessions.say(named, "later")
        ended = await here.sessions.close(ME, identity="a")
        assert (ended.was, ended.status, ended.summary) == ("busy", "closed", "All done.")
        assert (await running.result()).stopped_by == "close"
        with pytest.raises(SessionClosed):
            await waiting.result()
        assert [words for number in range(2) for words in texts(thread, number)] == ["work", SUMMARY_PROMPT]
        assert here.store.summary("a", named.thread_id) == "All done."
        assert [entry["status"] for entry in here.entries("a")] == ["closed"]


@pytest.mark.parametrize("is_obedient", [True, False], ids=["silent", "deaf"])
async def test_fr_17_4_a_summary_that_does_not_come_in_time_makes_it_interrupted(
    tmp_path: Path, is_obedient: bool
) -> None:
    """Whether the model says nothing or Codex will not even stop: one limit for all of it."""
    async with stage(tmp_path, summaries=True, is_obedient=is_obedient) as here:
        named = await here.open("a")
        await here.busy(named)
        closing = asyncio.ensure_future(here.sessions.close(ME, identity="a"))
        thread = here.thread(named)
        await until(lambda: len(thread.started) == 2 if is_obedient else thread.interrupted)
        here.clock.advance(11)
        ended = await closing
        assert (ended.status, ended.summary) == ("interrupted", None)
        assert [entry["status"] for entry in here.entries("a")] == ["interrupted"]
        assert here.store.summary("a", named.thread_id) is None
        assert (await here.open("a")).agent_id != named.agent_id


async def test_summaries_can_be_switched_off(tmp_path: Path) -> None:
    """Then a busy session is stopped and closed, and the model is not asked again."""
    async with stage(tmp_path, summaries=False) as here:
        named = await here.open("a")
        await here.busy(named)
        assert (await here.sessions.close(ME, identity="a")).status == "closed"
        assert len(here.thread(named).started) == 1


async def test_a_session_without_tokens_is_not_asked_for_a_summary(tmp_path: Path) -> None:
    """The budget holds for us, too."""
    async with stage(tmp_path, summaries=True, budget=Budget(max_tokens=10)) as here:
        named = await here.open("a")
        await here.turn(named, tokens=10)
        await here.sessions.shutdown()
        assert len(here.thread(named).started) == 1
        assert [entry["status"] for entry in here.entries("a")] == ["closed"]


async def test_fr_17_8_a_new_session_takes_the_name_and_the_old_one_stays_listed(tmp_path: Path) -> None:
    """With a thread of its own."""
    async with stage(tmp_path) as here:
        old = await here.open("a")
        await here.sessions.close(ME, identity="a")
        new = await here.open("a")
        assert (new.thread_id != old.thread_id, new.agent_id != old.agent_id) == (True, True)
        assert [(entry["agent_id"], entry["status"]) for entry in here.entries("a")] == [
            (old.agent_id, "closed"),
            (new.agent_id, "active"),
        ]


async def test_fr_17_9_closing_again_is_a_success_however_often_and_in_parallel(tmp_path: Path) -> None:
    """All who ask while it closes get the one outcome; later ones hear that it is closed."""
    async with stage(tmp_path, summaries=True) as here:
        named = await here.open("a")
        here.thread(named).replies[SUMMARY_PROMPT] = "Done."
        await here.busy(named)
        ended = await asyncio.gather(*(here.sessions.close(ME, identity="a") for _ in range(5)))
        assert len(set(map(str, ended))) == 1
        for _ in range(2):
            again = await here.sessions.close(ME, agent_id=named.agent_id)
            assert (again.was, again.status) == ("closed", "closed")
        assert (await here.sessions.close(ME, identity="a")).agent_id == named.agent_id
        with pytest.raises(SessionUnknown):
            await here.sessions.close(ME, identity="nobody")
        with pytest.raises(SessionClosed):
            here.sessions.say(named, "hello?")


async def test_fr_17_9_a_session_of_a_dead_process_is_marked_as_closed(tmp_path: Path) -> None:
    """Whether its name is free or in use by another session of ours; starts in that instant are not hurt."""
    with Store(tmp_path, TEAM).claim("a") as claim:
        for number in "123":
            claim.registry.update(Entry(agent_id=number, identity="a", team=TEAM, backend_id=f"t{number}"))
    async with stage(tmp_path) as here:
        first, _, _ = await asyncio.gather(
            here.sessions.close(ME, agent_id="1"),
            here.sessions.close(ME, agent_id="2"),
            here.open("a"),
        )
        assert first.status == "closed"
        await here.sessions.close(ME, agent_id="3")
        assert [entry["status"] for entry in here.entries("a")] == ["closed"] * 3 + ["active"]


async def test_a_stale_session_whose_name_is_in_use_elsewhere_stays_as_it_is(tmp_path: Path) -> None:
    """It does not run, so closing it is no error; only the owner of the name can write it down."""
    with Store(tmp_path, TEAM).claim("a") as claim:
        claim.registry.update(Entry(agent_id="1", identity="a", team=TEAM, backend_id="t"))
    with Store(tmp_path, TEAM).claim("a") as claim:
        claim.registry.update(Entry(agent_id="2", identity="a", team=TEAM, backend_id="u"))
        async with stage(tmp_path) as here:
            assert (await here.sessions.close(ME, agent_id="1")).status == "stale"
            with pytest.raises(IdentityHeld):
                await here.sessions.close(ME, agent_id="2")


async def test_a_session_that_ends_by_accident_is_interrupted_and_its_name_is_free(tmp_path: Path) -> None:
    """Whoever ended it, the books are right."""
    async with stage(tmp_path) as here:
        named = await here.open("a")
        await named.session.close()
        await until(lambda: not here.sessions.live())
        assert [entry["status"] for entry in here.entries("a")] == ["interrupted"]
        assert (await here.open("a")).identity == "a"


async def test_fr_7_1_fr_7_3_shutdown_asks_all_sessions_side_by_side_and_leaves_all_in_order(
    tmp_path: Path,
) -> None:
    """Busy ones are stopped first; those that did nothing have nothing to tell; then the engine goes."""
    async with stage(tmp_path, summaries=True) as here:
        names = ["busy", "idle", "new"]
        team = {name: await here.open(name) for name in names}
        await here.turn(team["idle"])
        await here.busy(team["busy"])
        ending = asyncio.ensure_future(here.sessions.shutdown())
        busy, idle = here.thread(team["busy"]), here.thread(team["idle"])
        await until(lambda: len(busy.started) == 2 and len(idle.started) == 2)  # both at once
        await until(lambda: busy.turn_id and idle.turn_id)
        busy.end(text="Summary.")
        idle.end(text="Summary.")
        await ending
        assert {name: here.entries(name)[0]["status"] for name in names} == dict.fromkeys(names, "closed")
        assert {name: here.store.summary(name, team[name].thread_id) for name in names} == {
            "busy": "Summary.",
            "idle": "Summary.",
            "new": None,
        }
        assert [here.store.holder(name) for name in names] == [None] * 3
        assert here.engine.is_closed
        with pytest.raises(SessionClosed):
            await here.open("late")


async def test_fr_7_2_one_deadline_for_all_summaries_and_interrupted_is_the_status(tmp_path: Path) -> None:
    """What was known before is on the disk while they are awaited."""
    async with stage(tmp_path, summaries=True) as here:
        team = [await here.open(name) for name in "abc"]
        for named in team:
            await here.turn(named)
        here.thread(team[0]).replies[SUMMARY_PROMPT] = "In time."
        ending = asyncio.ensure_future(here.sessions.shutdown())
        await until(lambda: all(here.thread(each).turn_id for each in team[1:]))
        await until(lambda: here.entries("a")[0]["status"] == "closed")
        assert [here.entries(name)[0]["turns"] for name in "bc"] == [1, 1]
        here.clock.advance(10)
        await ending
        assert [here.entries(name)[0]["status"] for name in "abc"] == ["closed", "interrupted", "interrupted"]
        assert here.engine.is_closed


@pytest.mark.parametrize("how", ["shutdown", "abort"])
async def test_fr_7_1_a_second_signal_ends_everything_at_once(tmp_path: Path, how: str) -> None:
    """No time passes on the clock; no summary is waited for."""
    async with stage(tmp_path, summaries=True, is_obedient=False) as here:
        named = await here.open("a")
        await here.busy(named)
        first = asyncio.ensure_future(here.sessions.shutdown())
        await until(lambda: here.thread(named).interrupted)
        if how == "abort":
            here.sessions.abort()
        else:
            await here.sessions.shutdown()
        await first
        assert [entry["status"] for entry in here.entries("a")] == ["interrupted"]
        assert here.engine.is_closed


async def test_a_shutdown_while_a_session_is_opened_leaves_it_neither_live_nor_bound(tmp_path: Path) -> None:
    """Whoever opens it is told, whichever comes first."""
    for turns_of_the_loop in range(0, 40, 3):
        root = tmp_path / str(turns_of_the_loop)
        async with stage(root, engine=HandEngine()) as here:
            opening = asyncio.ensure_future(here.open("a"))
            for _ in range(turns_of_the_loop):
                await asyncio.sleep(0)
            await here.sessions.shutdown()
            (result,) = await asyncio.gather(opening, return_exceptions=True)
            assert here.store.holder("a") is None
            assert here.sessions.live() == []
            assert {entry["status"] for entry in here.entries("a")} <= {"closed"}, result
