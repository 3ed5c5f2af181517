"""What a turn leaves behind: the record, the audit log, the budget (FR-5, 9, 10, 17)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.base.errors import BudgetSpent
from laneway.core.model import Failure
from laneway.core.named.opening import Budget, Opening
from laneway.core.ports import ImagePart, TextPart, ThreadSpec, TurnSpec
from tests.core.named.support import ME, TEAM, Stage, stage
from tests.core.support import until


async def test_fr_5_5_fr_17_5_busy_and_idle_are_written_when_they_change(tmp_path: Path) -> None:
    """With the time, the branch as it is by then, and without anybody waiting for the disk."""
    async with stage(tmp_path) as here:
        named = await here.open()
        turn = await here.busy(named)
        await until(lambda: here.entries()[0]["state"] == "busy")
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/lane\n")
        here.use(named, 123)
        here.thread(named).end()
        await turn.result()
        await until(lambda: here.entries()[0]["state"] == "idle")
        (entry,) = here.entries()
        assert (entry["branch"], entry["repo_name"], entry["repo_root"]) == (
            "lane",
            tmp_path.name,
            str(tmp_path),
        )
        assert (entry["turns"], entry["tokens"], entry["status"]) == (1, 123, "active")
        assert entry["last_active"] >= entry["started_at"]


async def test_fr_9_2_a_turn_is_audited_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    """Who, what (200 characters of it), in which thread, for which request, and how it went."""
    async with stage(tmp_path) as here:
        named = await here.open()
        turn = here.sessions.say(named, "é" * 300, source="codex-reply", request_id="r1")
        await until(lambda: here.thread(named).turn_id)
        here.thread(named).end()
        await turn.result()
        await until(lambda: len(here.audit()) == 3)
        lines = here.audit()
        assert [line.pop("timestamp")[:2] for line in lines] == ["20"] * 3
        who = {"agent_id": named.agent_id, "identity": "codex", "thread_id": named.thread_id}
        assert lines == [
            {"event_type": "session_opened", **who},
            {"event_type": "codex-reply", **who, "prompt_summary": "é" * 200, "request_id": "r1"},
            {
                "event_type": "turn_done",
                **who,
                "turn_id": "thread-1/1",
                "request_id": "r1",
                "outcome": "completed",
            },
        ]


async def test_the_audit_log_tells_how_turns_went_wrong(tmp_path: Path) -> None:
    """Failed, cancelled in the queue, closed before it ran."""
    async with stage(tmp_path) as here:
        named = await here.open()
        first = await here.busy(named)
        waiting = here.sessions.say(named, "later")
        waiting.cancel()
        await waiting.result()
        here.thread(named).end("failed", failure=Failure(kind="overloaded", message="busy"))
        await first.result()
        last = await here.busy(named)
        late = here.sessions.say(named, "too late")
        await here.sessions.close(ME, identity="codex")
        await last.result()
        with pytest.raises(Exception, match="is closed"):
            await late.result()
        outcomes = [line["outcome"] for line in here.audit() if line["event_type"] == "turn_done"]
        assert sorted(outcomes) == [
            "SessionClosed",
            "failed: overloaded",
            "interrupted by cancel",
            "interrupted by close",
        ]


async def test_fr_9_3_a_line_of_a_door_stands_in_the_same_log(tmp_path: Path) -> None:
    """`note` is for what doors and mail have to tell."""
    async with stage(tmp_path) as here:
        here.sessions.note("atm_send", recipient="arch", message_summary="hello")
        await until(here.audit)
        (line,) = here.audit()
        del line["timestamp"]
        assert line == {
            "event_type": "atm_send",
            "agent_id": None,
            "identity": None,
            "recipient": "arch",
            "message_summary": "hello",
        }


async def test_a_session_that_has_had_its_turns_gets_no_more(tmp_path: Path) -> None:
    """Those that wait count, too; those that never ran do not."""
    async with stage(tmp_path, budget=Budget(max_turns=2)) as here:
        named = await here.open()
        first = await here.busy(named)
        second = here.sessions.say(named, "b")
        with pytest.raises(BudgetSpent) as spent:
            here.sessions.say(named, "c")
        assert (spent.value.what, spent.value.limit, spent.value.used) == ("turns", 2, 2)
        here.thread(named).end()
        await first.result()
        await until(lambda: here.thread(named).turn_id)
        here.thread(named).end()
        await second.result()
        assert named.turns == 2
        await here.sessions.close(ME, identity="codex")
        again = await here.sessions.resume(ME, agent_id=named.agent_id)
        with pytest.raises(BudgetSpent):
            here.sessions.say(again, "a new life is no new budget")


async def test_a_turn_taken_back_while_it_waited_costs_nothing(tmp_path: Path) -> None:
    """It never ran, so the budget has room for another one in its place."""
    async with stage(tmp_path, budget=Budget(max_turns=2)) as here:
        named = await here.open()
        first = await here.busy(named)
        taken_back = here.sessions.say(named, "b")
        taken_back.cancel()
        assert (await taken_back.result()).status == "interrupted"
        instead = here.sessions.say(named, "c")
        here.thread(named).end()
        await first.result()
        await until(lambda: here.thread(named).turn_id)
        here.thread(named).end()
        assert (await instead.result()).status == "completed"


async def test_a_turn_that_passes_the_token_budget_is_stopped_and_says_so(tmp_path: Path) -> None:
    """Also those behind it; another one is not begun."""
    async with stage(tmp_path, budget=Budget(max_tokens=100)) as here:
        named = await here.open()
        turn = await here.busy(named)
        behind = here.sessions.say(named, "behind")
        here.use(named, 99)
        assert here.thread(named).turn_id
        here.use(named, 100)
        assert ((await turn.result()).status, (await turn.result()).stopped_by) == ("interrupted", "budget")
        assert (await behind.result()).stopped_by == "budget"
        with pytest.raises(BudgetSpent) as spent:
            here.sessions.say(named, "more")
        assert (spent.value.what, spent.value.used) == ("tokens", 100)


async def test_the_effort_of_the_session_holds_for_turns_that_say_nothing(tmp_path: Path) -> None:
    """Parts, model and the rest of a turn are handed on as they are."""
    async with stage(tmp_path) as here:
        opening = Opening(spec=ThreadSpec(cwd=tmp_path), effort="high")
        named = await here.sessions.open(ME, opening)
        own = TurnSpec(parts=(TextPart("a"), ImagePart(path="/x")), effort="low", model="m")
        for spec in (own, msgspec.structs.replace(own, effort=None)):
            turn = here.sessions.say(named, spec)
            await until(lambda: here.thread(named).turn_id)
            here.thread(named).end()
            await turn.result()
        seen = [spec for _, spec in here.thread(named).started]
        assert seen == [own, msgspec.structs.replace(own, effort="high")]


async def status_of(here: Stage) -> dict[str, Any]:
    return dict(msgspec.to_builtins(here.sessions.status()))


async def test_fr_10_1_rows_name_every_session_live_or_kept(tmp_path: Path) -> None:
    """With both names where the seeds differ, the most recent first, filtered when asked."""
    async with stage(tmp_path) as here:
        closed = await here.open("a")
        await here.turn(closed)
        await here.sessions.close(ME, identity="a")
        live = await here.open("b")
        await here.busy(live)
        roll = await here.sessions.sessions(ME)
        assert roll.problems == ()
        told = {row.agent_id: msgspec.to_builtins(row) for row in roll.rows}
        for row in told.values():
            assert row.pop("last_active") == row.pop("last_active_at")
            del row["repo_root"], row["repo_name"], row["branch"]
        common = {
            "backend": "codex",
            "team": TEAM,
            "agent_name": None,
            "agent_source": None,
            "tag": None,
            "role": None,
            "cwd": str(tmp_path),
            "turns": 1,
            "tokens": 0,
            "dropped_events": 0,
        }
        assert told == {
            closed.agent_id: {
                **common,
                "agent_id": closed.agent_id,
                "identity": "a",
                "backend_id": "thread-1",
                "thread_id": "thread-1",
                "status": "closed",
                "state": "closed",
                "resumable": True,
                "is_mine": False,
            },
            live.agent_id: {
                **common,
                "agent_id": live.agent_id,
                "identity": "b",
                "backend_id": "thread-2",
                "thread_id": "thread-2",
                "status": "active",
                "state": "busy",
                "resumable": False,
                "is_mine": True,
            },
        }
        assert [row.identity for row in roll.rows] == ["b", "a"]
        only = await here.sessions.sessions(ME, include_closed=False)
        assert [row.identity for row in only.rows] == ["b"]
        assert (await here.sessions.sessions(ME, identity="a")).rows == roll.rows[1:]
        assert (await here.sessions.sessions(ME, repo_root="/elsewhere")).rows == ()


async def test_fr_10_2_health_tells_the_child_the_names_and_the_time(tmp_path: Path) -> None:
    """The child is not there before it is needed; mail is counted by whoever knows."""
    async with stage(tmp_path, limit=7) as here:
        assert not here.sessions.status().child_alive
        named = await here.open("a")
        here.clock.advance(12)
        here.sessions.pending_mail = lambda: 3
        assert await status_of(here) == {
            "child_alive": True,
            "child_ended": None,
            "child_pid": None,
            "team": TEAM,
            "uptime_s": 12.0,
            "active": 1,
            "limit": 7,
            "identities": {"a": {"agent_id": named.agent_id, "thread_id": "thread-1", "state": "idle"}},
            "pending_mail": 3,
            "engines": (),
        }


async def test_a_damaged_registry_is_told_and_the_others_are_listed(tmp_path: Path) -> None:
    """One bad file hides nothing else."""
    async with stage(tmp_path) as here:
        await here.open("a")
        (tmp_path / TEAM / "b").mkdir()
        (tmp_path / TEAM / "b" / "registry.json").write_text("{")
        roll = await here.sessions.sessions(ME)
        assert [row.identity for row in roll.rows] == ["a"]
        assert len(roll.problems) == 1
        assert "damaged" in roll.problems[0]
