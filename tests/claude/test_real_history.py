"""What was said before: by the page, from every session of a home, also of other programs."""

from __future__ import annotations

import pytest

from laneway.base.errors import BadCursor, ThreadUnknown
from laneway.core.model import Activity, Answer, Event, Plan, Text, TurnDone, TurnStarted, UserSaid
from laneway.core.offers import Compaction
from laneway.core.ports import TextPart, TurnSpec
from tests.claude.support import ME, real, tool
from tests.codex.support import first, only, play, say

YES = Answer(choice_id="accept")


def said(events: tuple[Event, ...]) -> list[str]:
    return [event.text for event in only(list(events), UserSaid)]


async def test_a_history_has_the_same_events_as_its_turns() -> None:
    """Prompts without our context, texts, activities with their ends; one start and one end each."""
    async with real(compose=lambda session: "context of ours") as here:
        session = await here.session()
        script = ("%think hm", "%run echo hi; exit 3", "%patch a.txt x", "%say all done")
        live, _ = await play(session, *script, decide=lambda question: YES)
        await play(session, "%fail 500 busy")
        turn = say(session, "%stream 1000 words over 60 seconds")
        await first(turn, Text)
        turn.cancel()
        await turn.result()
        page = await session.history()
        events = list(page.events)
        assert page.older is None
        assert said(page.events) == [
            "\n".join(script),
            "%fail 500 busy",
            "%stream 1000 words over 60 seconds",
        ]
        assert [event.status for event in only(events, TurnDone)] == ["completed", "failed", "interrupted"]
        assert len(only(events, TurnStarted)) == 3
        ended = [each for each in only(live, Activity) if each.status != "running"]
        replayed = [each for each in only(events, Activity) if each.status != "running"]
        assert [(each.title, each.status, each.exit_code, each.changes) for each in replayed] == [
            (each.title, each.status, each.exit_code, each.changes) for each in ended
        ]
        assert only(events, TurnDone)[0].text == "all done"


async def test_a_damaged_transcript_shows_what_can_be_read() -> None:
    """Half an emoji, a line cut by a crash in the middle of a letter, and nested without end."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say one", "cut here")
        await play(session, "%say two")
        path = here.rehearsal.engine._setup.transcripts.find(session.thread_id)
        assert path is not None
        lines = path.read_bytes().replace(b"cut here", b"cut \\ud83d").splitlines(keepends=True)
        odd = [b'{"parentUuid": "\xc3\n', b'{"parentUuid": ' + b"[" * 100_000 + b"\n", b'"parentUuid"\n']
        path.write_bytes(b"".join([*odd, *lines, *odd]))
        assert said((await session.history()).events) == ["%say one\ncut \ufffd", "%say two"]
        (listed,) = (await here.rehearsal.engine.list_threads()).threads
        assert listed.thread_id == session.thread_id


async def test_a_history_comes_by_the_page_from_either_end() -> None:
    """A compaction does not cut it off; what was said in the middle of a turn is part of that turn."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say one")
        turn = say(session, "%stream 20 words over 1 seconds", "%run ls", "%say old")
        await first(turn, Text)
        await session.steer((TextPart("%say two"),))
        await turn.result()
        await session.say(TurnSpec(parts=(), special_turn=Compaction())).result()
        await play(session, "%say three")
        newest = await session.history(limit=1)
        assert said(newest.events) == ["%say three"]
        middle = await session.history(newest.older, limit=1)
        assert said(middle.events)[-1] == "%say two"
        oldest = await session.history(middle.older, limit=1)
        assert (said(oldest.events), oldest.older) == (["%say one"], None)
        head = await session.history(limit=2, oldest_first=True)
        assert said(head.events)[0] == "%say one"
        rest = await session.history(head.older, limit=2, oldest_first=True)
        assert (said(rest.events), rest.older) == (["%say three"], None)
        with pytest.raises(BadCursor):
            await session.history("no cursor")


async def test_all_sessions_of_a_home_are_listed_newest_first() -> None:
    """With folder and title; by the page; of one folder only, if that is asked."""
    async with real() as here:
        engine = here.rehearsal.engine
        other = here.work / "other"
        other.mkdir()
        ids = []
        for folder in (here.work, other, here.work):
            session = await here.session(cwd=folder)
            await play(session, f"%say in {folder.name}")
            ids.append(session.thread_id)
        await here.session()  # nothing is said in it, so there is nothing to resume
        listed = await engine.list_threads()
        assert [each.thread_id for each in listed.threads] == ids[::-1]
        assert listed.cursor is None
        assert [(each.cwd, each.title) for each in listed.threads][1] == (str(other), "%say in other")
        page = await engine.list_threads(limit=2)
        rest = await engine.list_threads(limit=2, cursor=page.cursor)
        assert [each.thread_id for each in (*page.threads, *rest.threads)] == ids[::-1]
        assert [each.thread_id for each in (await engine.list_threads(cwd=other)).threads] == [ids[1]]
        assert (await engine.read(ids[0])).cwd == str(here.work)
        with pytest.raises(BadCursor):
            await engine.list_threads(cursor="x")
        with pytest.raises(ThreadUnknown):
            await engine.read("a609a162-2226-4f7c-be80-85b3d058e61c")


async def test_the_models_are_listed_before_any_session() -> None:
    """With what they can do."""
    async with real() as here:
        listed = await here.rehearsal.engine.models()
        assert "opus" in [model.model for model in listed]
        assert all(model.name for model in listed)
        assert any(effort.effort == "high" for model in listed for effort in model.efforts)
        assert here.model.requests == []


async def test_a_resumed_session_counts_what_it_has_used_before() -> None:
    """So that a budget holds over restarts: Claude Code itself goes on with its sums."""
    async with real() as here:
        session = await here.session()
        await play(session, "%usage 5000", "%say much")
        thread_id = session.thread_id
        await session.close()
        again = await here.hub.resume(ME, thread_id, here.spec())
        await play(again, "%usage 100", "%say little")
        assert again.usage is not None
        assert again.usage.total.input == 5100
        assert again.usage.last.input == 100


@pytest.mark.parametrize("name", ["TaskCreate", "TodoWrite"])
async def test_a_tool_that_is_not_there_makes_no_plan(name: str) -> None:
    """Which form of checklist a model has depends on the model; this one has none."""
    async with real() as here:
        session = await here.session()
        events, result = await play(session, tool(name, subject="look"))
        assert only(events, Plan) == []
        assert f"There is no tool {name} here" in result.text
