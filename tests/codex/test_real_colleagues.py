"""Named sessions on the real Codex: their context, what a resume restores, the death of Codex."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.base.clock import LoopClock
from laneway.base.errors import EngineLost
from laneway.codex.engine import CodexEngine
from laneway.core.hub import Hub
from laneway.core.model import Activity, Text
from laneway.core.named.briefing import HEAD, briefer
from laneway.core.named.opening import Budget, Opening
from laneway.core.named.session import NamedSession
from laneway.core.named.sessions import NamedSessions
from laneway.store.records import StoreRecords
from laneway.store.store import Store
from laneway.testing.processes import wait_gone
from tests.codex.support import ME, Stage, first, real
from tests.core.support import until

TEAM = "crew"


@asynccontextmanager
async def sessions_on(engine: CodexEngine, root: Path, **options: Any) -> AsyncIterator[NamedSessions]:
    """A process's worth of sessions: hub, engine and names are gone at the end."""
    hub = Hub(engine, LoopClock(), compose=briefer(TEAM))
    async with NamedSessions(hub, StoreRecords(Store(root, TEAM)), LoopClock(), **options) as sessions:
        yield sessions


async def ask(sessions: NamedSessions, session: NamedSession, *lines: str) -> str:
    return (await sessions.say(session, "\n".join(lines)).result()).text


def model_texts(here: Stage) -> list[str]:
    """All texts of the newest request to the model, in their order."""
    items = here.requests[-1]["input"]
    return [part["text"] for item in items if item["type"] == "message" for part in item["content"]]


def index_of(texts: list[str], part: str) -> int:
    (index,) = [number for number, text in enumerate(texts) if part in text]
    return index


@pytest.mark.needs("turn_context")
async def test_fr_2_1_fr_2_2_fr_2_3_fr_2_6_the_model_sees_its_context_on_every_turn(tmp_path: Path) -> None:
    """Behind the caller's own instructions, with the branch as it is by then."""
    async with real() as here, sessions_on(here.rehearsal.engine, tmp_path, summaries=False) as sessions:
        work = here.rehearsal.work
        (work / ".git").mkdir()
        (work / ".git" / "HEAD").write_text("ref: refs/heads/first\n")
        spec = here.spec(developer_instructions="Mind the gate.", base_instructions="You are a gardener.")
        session = await sessions.open(ME, Opening(spec=spec, identity="arch"))
        await ask(sessions, session, "%say one")
        texts = model_texts(here)
        context = texts[index_of(texts, HEAD)]
        for fact in ('identity: "arch"', 'team: "crew"', 'branch: "first"', f'cwd: "{work}"'):
            assert fact in context
        assert index_of(texts, "Mind the gate.") < index_of(texts, HEAD) < index_of(texts, "%say one")
        assert base_of(here.requests[-1]) == "You are a gardener."
        (work / ".git" / "HEAD").write_text("ref: refs/heads/second\n")
        await ask(sessions, session, "%say two")
        texts = model_texts(here)
        assert index_of(texts, "Mind the gate.") < index_of(texts, 'branch: "first"')
        assert index_of(texts, "%say one") < index_of(texts, 'branch: "second"') < index_of(texts, "%say two")


def base_of(request: dict[str, Any]) -> str:
    """The base instructions stand beside the conversation, or at its head."""
    return str(request.get("instructions") or request["input"][0]["content"][0]["text"])


async def test_fr_6_fr_7_a_session_comes_back_in_another_process_with_its_memory_and_its_summary(
    tmp_path: Path,
) -> None:
    """Shut down in order, resumed by a second Codex: transcript, instructions, folder, report are there."""
    async with real() as here:
        spec = here.spec(cwd=here.rehearsal.work / "deep", developer_instructions="Mind the gate.")
        spec.cwd.mkdir()
        async with sessions_on(here.rehearsal.engine, tmp_path) as sessions:
            old = await sessions.open(ME, Opening(spec=spec))
            await ask(sessions, old, "%say remember the milk")
        summary = Store(tmp_path, TEAM).summary("codex", old.thread_id)
        assert summary is not None
        async with sessions_on(here.rehearsal.another_engine(), tmp_path, summaries=False) as sessions:
            (row,) = (await sessions.sessions(ME)).rows
            assert (row.status, row.resumable) == ("closed", True)
            new = await sessions.resume(ME, agent_id=old.agent_id)
            assert (new.agent_id, new.thread_id) == (old.agent_id, old.thread_id)
            assert await ask(sessions, new, "%say here again") == "here again"
            texts = model_texts(here)
            assert index_of(texts, "%say remember the milk") < index_of(texts, "%say here again") - 1
            assert summary in texts[index_of(texts, "%say here again") - 1]
            places = [text for text in texts if "<environment_context>" in text]
            assert f"<cwd>{spec.cwd}</cwd>" in places[-1]
            assert any("Mind the gate." in text for text in texts)
            tokens = new.tokens
            await ask(sessions, new, "%say and once more")
            assert new.tokens > tokens > 0
            assert new.turns == 3


async def test_fr_6_a_resumed_session_moves_only_when_it_is_told_to(tmp_path: Path) -> None:
    """A folder among the changes is where it works from then on."""
    async with real() as here:
        async with sessions_on(here.rehearsal.engine, tmp_path, summaries=False) as sessions:
            old = await sessions.open(ME, Opening(spec=here.spec()))
            await ask(sessions, old, "%say hello")
        elsewhere = here.rehearsal.work / "elsewhere"
        elsewhere.mkdir()
        async with sessions_on(here.rehearsal.another_engine(), tmp_path, summaries=False) as sessions:
            new = await sessions.resume(ME, agent_id=old.agent_id, changes={"cwd": elsewhere})
            await ask(sessions, new, "%run pwd", "%say done")
            assert str(elsewhere) in here.model_input()
            assert new.record.cwd == str(elsewhere)


async def test_fr_17_4_a_busy_session_is_interrupted_and_sums_up(tmp_path: Path) -> None:
    """Within the limit, by the real Codex; then its thread and its name are free."""
    async with real() as here, sessions_on(here.rehearsal.engine, tmp_path) as sessions:
        session = await sessions.open(ME, Opening(spec=here.spec(), identity="arch"))
        turn = sessions.say(session, "%stream 1000 words over 60 seconds")
        await first(turn, Text)
        ended = await sessions.close(ME, identity="arch")
        assert (ended.was, ended.status) == ("busy", "closed")
        assert ended.summary == Store(tmp_path, TEAM).summary("arch", session.thread_id)
        assert (await turn.result()).stopped_by == "close"
        again = await sessions.resume(ME, agent_id=session.agent_id)
        assert await ask(sessions, again, "%say back") == "back"


async def test_a_token_budget_stops_the_real_codex_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    """As soon as it tells what it has used."""
    budget = Budget(max_tokens=50)
    async with (
        real() as here,
        sessions_on(here.rehearsal.engine, tmp_path, budget=budget) as sessions,
    ):
        session = await sessions.open(ME, Opening(spec=here.spec()))
        result = await sessions.say(session, "%run true\n%run sleep 60\n%say never").result()
        assert (result.status, result.stopped_by) == ("interrupted", "budget")


async def test_fr_11_the_death_of_codex_is_told_with_its_signal_and_it_is_not_started_again(
    tmp_path: Path,
) -> None:
    """To the running turn, to the waiting one, and to everybody after."""
    async with real() as here, sessions_on(here.rehearsal.engine, tmp_path, restart="never") as sessions:
        session = await sessions.open(ME, Opening(spec=here.spec()))
        pid = sessions.status().child_pid
        assert pid is not None
        turn = sessions.say(session, "%run sleep 60")
        await first(turn, Activity)
        waiting = sessions.say(session, "%say later")
        os.kill(pid, signal.SIGKILL)
        failure = (await turn.result()).failure
        assert failure is not None
        assert "SIGKILL" in failure.message
        with pytest.raises(EngineLost, match="SIGKILL"):
            await waiting.result()
        for _ in range(2):
            with pytest.raises(EngineLost, match="SIGKILL"):
                await sessions.open(ME, Opening(spec=here.spec()))
        health = sessions.status()
        assert (health.child_alive, health.child_ended, health.child_pid) == (
            False,
            "killed by SIGKILL",
            None,
        )
        await wait_gone(pid)


async def test_reported_once_a_dead_codex_is_replaced_and_the_sessions_go_on(tmp_path: Path) -> None:
    """Also when it died while nothing ran."""
    async with (
        real() as here,
        sessions_on(here.rehearsal.engine, tmp_path, restart="reported", summaries=False) as sessions,
    ):
        session = await sessions.open(ME, Opening(spec=here.spec()))
        await ask(sessions, session, "%say remember the milk")
        pid = sessions.status().child_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(20):
            await until(lambda: sessions.status().child_ended)
        with pytest.raises(EngineLost, match="SIGKILL"):
            sessions.say(session, "%say hello?")
        assert await ask(sessions, session, "%say back") == "back"
        assert "remember the milk" in here.model_input()
        assert sessions.status().child_pid not in (None, pid)
