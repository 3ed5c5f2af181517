"""Threads of the real Codex: history, lists, forks, context, compaction, and many at once."""

from __future__ import annotations

import asyncio
import os

import pytest

from laneway.codex import locate
from laneway.core.model import Compacted, Event, FromSubagent, Text, TurnDone, TurnStarted, UserSaid
from laneway.core.session import Session
from laneway.core.subscription import Subscription
from tests.codex.support import ME, first, only, play, real, say


@pytest.mark.needs("history_pages")
async def test_history_is_the_same_events_newest_page_first() -> None:
    """Replay is rendering: pages lead back to the first turn."""
    async with real() as here:
        session = await here.session()
        for number in range(3):
            await play(session, f"%say answer {number}")
        page = await session.history(limit=2)
        assert [event.text for event in only(list(page.events), Text)] == ["answer 1", "answer 2"]
        assert page.older is not None
        older = await session.history(page.older, limit=2)
        kinds = [type(event) for event in older.events]
        assert kinds == [TurnStarted, UserSaid, Text, TurnDone]
        assert only(list(older.events), Text)[0].text == "answer 0"


@pytest.mark.needs("history_pages")
async def test_history_can_be_read_from_the_first_turn_on() -> None:
    """For whoever tells it in order: each page leads to the one behind it."""
    async with real() as here:
        session = await here.session()
        assert (await session.history(oldest_first=True)).events == ()
        for number in range(3):
            await play(session, f"%say answer {number}")
        page = await session.history(limit=2, oldest_first=True)
        assert [event.text for event in only(list(page.events), Text)] == ["answer 0", "answer 1"]
        engine = here.rehearsal.engine
        rest = await engine.history(session.thread_id, page.older, 2, oldest_first=True)
        assert [event.text for event in only(list(rest.events), Text)] == ["answer 2"]
        assert rest.older is None


async def test_threads_are_listed_by_folder_and_read_by_id() -> None:
    """Also the ones that others started."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say hello")
        engine = here.rehearsal.engine
        listed = await engine.list_threads(cwd=here.rehearsal.work)
        assert [info.thread_id for info in listed.threads] == [session.thread_id]
        assert (await engine.list_threads(cwd=here.rehearsal.home)).threads == ()
        info = await engine.read(session.thread_id)
        assert (info.cwd, info.title) == (str(here.rehearsal.work), "%say hello")


async def test_threads_of_other_programs_are_listed_too() -> None:
    """`codex exec` has its own kind of thread, which Codex leaves out unless asked."""
    async with real() as here:
        program = await asyncio.create_subprocess_exec(
            locate.find().path,
            *("exec", "--skip-git-repo-check", "%say from elsewhere"),
            cwd=here.rehearsal.work,
            env={**os.environ, "CODEX_HOME": str(here.rehearsal.home)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert await program.wait() == 0
        listed = await here.rehearsal.engine.list_threads(cwd=here.rehearsal.work)
        assert [info.title for info in listed.threads] == ["%say from elsewhere"]


async def test_models_tell_what_they_can_do() -> None:
    """What config options and image checks are made from."""
    async with real() as here:
        models = await here.rehearsal.engine.models()
        assert any(not model.is_hidden and model.takes_images for model in models)
        assert all(model.efforts and model.default_effort for model in models)


@pytest.mark.needs("inject")
async def test_context_reaches_the_model_on_every_turn_and_again_after_a_compaction() -> None:
    """Compaction wipes it, and an unchanged value would stay suppressed: the epoch moves."""
    branch = "main"

    def compose(session: Session) -> str:
        return f"You are codex-1 on branch {branch}."

    async with real(compose=compose) as here:
        session = await here.session(developer_instructions="Always whisper.")
        await play(session, "%say one")
        assert "on branch main." in here.model_input()
        branch = "feature"
        await play(session, "%say two")
        assert "on branch feature." in here.model_input()
        watching = session.subscribe()
        link = await here.rehearsal.engine.link()
        await link.call("thread/compact/start", {"threadId": session.thread_id})
        compacted = await until_done(watching)
        assert any(isinstance(event, Compacted) for event in compacted)
        await play(session, "%say three")
        assert "on branch feature." in here.model_input()
        assert "Always whisper." in here.model_input()


async def until_done(watching: Subscription) -> list[Event]:
    events: list[Event] = []
    async for event in watching:
        events.append(event)
        if isinstance(event, TurnDone):
            break
    return events


async def test_fifty_threads_stream_at_once_each_its_own_words() -> None:
    """One app-server, no mixing, none left behind."""
    async with real() as here:
        sessions = await asyncio.gather(*(here.session() for _ in range(50)))
        played = await asyncio.gather(
            *(play(s, f"%say thread {n} speaking" + f" word{n}" * 40) for n, s in enumerate(sessions))
        )
        for number, (events, result) in enumerate(played):
            spoken = "".join(event.text for event in only(events, Text))
            assert spoken == result.text == f"thread {number} speaking" + f" word{number}" * 40
        assert len(here.hub.sessions(ME)) == 50


@pytest.mark.covers("FR-20.4")
@pytest.mark.needs("subagents")
async def test_what_a_subagent_does_arrives_wrapped_and_is_never_our_own_turn() -> None:
    """Frames of a child thread carry their parent."""
    async with real(model="no-such-model") as here:  # Codex offers subagents to models it does not know
        session = await here.session()
        turn = say(
            session,
            '%tool spawn_agent {"message": "%say from below", "agent_type": "default"}',
            "%say spawned",
        )
        watching = session.subscribe()
        wrapped: list[FromSubagent] = []
        async for event in watching:
            if isinstance(event, FromSubagent):
                wrapped.append(event)
                if isinstance(event.inner, TurnDone):
                    break
        assert (await turn.result()).text == "spawned"
        assert {event.parent_id for event in wrapped} == {session.thread_id}
        assert "from below" in "".join(e.inner.text for e in wrapped if isinstance(e.inner, Text))
        ours = [event async for event in turn.events]
        assert only(ours, TurnDone) == ours[-1:]


async def test_an_interrupted_thread_of_many_leaves_the_others_alone() -> None:
    """Cancel is per turn."""
    async with real() as here:
        stopped, other = await here.session(), await here.session()
        turn = say(stopped, "%stream 1000 words over 60 seconds")
        await first(turn, Text)
        going_on = asyncio.ensure_future(play(other, "%stream 40 words over 1 seconds"))
        turn.cancel()
        assert (await turn.result()).status == "interrupted"
        _, result = await going_on
        assert (result.status, len(result.text.split())) == ("completed", 40)
