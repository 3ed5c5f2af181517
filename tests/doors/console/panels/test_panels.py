"""The panels of the console over HTTP: what they answer, what they refuse, and what news they publish."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from laneway.base.errors import LanewayError
from laneway.core.model import Asked, Text, TurnStarted
from laneway.doors.console.panels.health import HealthPart
from laneway.doors.console.panels.jobs import LOOK_S as JOBS_S
from laneway.doors.console.panels.jobs import JobsPart
from laneway.doors.console.panels.mail import LOOK_S as MAIL_S
from laneway.doors.console.panels.mail import MailPart
from laneway.doors.console.panels.ports import Letter, LiveSessionRow
from laneway.doors.console.panels.session_watches import GATHER_S, MAX_WATCHES, UNASKED_S
from laneway.doors.console.panels.sessions import LOOK_S, SessionsPart
from laneway.doors.page_parts import PagePart
from laneway.testing.clock import HandClock
from tests.core.support import until
from tests.doors.console.panels.support import (
    HOSTILE,
    HandBoard,
    HandChecks,
    HandDesk,
    HandSessions,
    command_question,
    panel,
    settle,
)

ANN = LiveSessionRow(agent_id="a1", name="ann", door="mcp", state="busy", last_text=HOSTILE)


# ── sessions ───────────────────────────────────────────────────────────────


async def test_sessions_are_listed_with_their_last_words_made_plain() -> None:
    """Who, where, state, tokens."""
    async with panel(SessionsPart(HandSessions(ANN), HandClock())) as page:
        (row,) = (await page.get()).json()["sessions"]
        assert (row["name"], row["door"], row["state"]) == ("ann", "mcp", "busy")
        assert "\u202e" not in row["last_text"]
        assert "<img" in row["last_text"]


async def test_news_of_sessions_are_published_once_and_only_while_somebody_looks() -> None:
    """A list that stays the same is no news."""
    sessions, clock = HandSessions(ANN), HandClock()
    async with panel(SessionsPart(sessions, clock)) as page:
        await settle(clock, LOOK_S)
        assert page.page.feed.last == 0
        async with page.page.reading() as stream:
            assert await stream.news() == {}
            await settle(clock, LOOK_S)
            assert page.page.feed.last == 1
            del sessions.sessions["a1"]
            await settle(clock, LOOK_S)
            assert page.page.feed.last == 2


async def test_a_session_is_watched_by_one_watch_for_all_browsers() -> None:
    """Each asks for what is new to it; news are gathered before they are published."""
    sessions, clock = HandSessions(ANN), HandClock()
    async with panel(SessionsPart(sessions, clock)) as page:
        first = (await page.get("/a1/watch")).json()
        assert "\u202e" not in first["session"]["last_text"]
        sessions.show("a1", TurnStarted(turn_id="t"))
        sessions.show("a1", Text(turn_id="t", item_id="x", text="hello"))
        before = page.page.feed.last
        await settle(clock, GATHER_S)
        assert page.page.feed.last == before + 1
        news = (await page.get(f"/a1/watch?after={first['version']}&watch={first['watch']}")).json()
        assert [item["text"] for item in news["items"]] == ["", "hello"]
        other = (await page.get("/a1/watch")).json()
        assert ([item["text"] for item in other["items"]], sessions.watches) == (["", "hello"], 1)


async def test_versions_of_an_earlier_watch_count_for_nothing() -> None:
    """Whoever comes back with one gets everything of the new watch."""
    sessions, clock = HandSessions(ANN), HandClock()
    async with panel(SessionsPart(sessions, clock)) as page:
        first = (await page.get("/a1/watch")).json()
        await settle(clock, UNASKED_S)
        assert sessions.viewers == {}
        again = (await page.get(f"/a1/watch?after=1000&watch={first['watch']}")).json()
        assert (sessions.watches, again["watch"] != first["watch"]) == (2, True)
        sessions.show("a1", Text(turn_id="t", item_id="x", text="new"))
        later = (await page.get(f"/a1/watch?after=1000&watch={first['watch']}")).json()
        assert [item["text"] for item in later["items"]] == ["new"]


async def test_what_was_seen_stays_when_the_process_ends() -> None:
    """And it says so; nothing can be answered any more."""
    sessions, clock = HandSessions(ANN), HandClock()
    async with panel(SessionsPart(sessions, clock)) as page:
        sessions.questions["a1"] = [command_question()]
        await page.get("/a1/watch")
        sessions.ends["a1"].set_exception(LanewayError("Process 7 has ended."))
        await until(lambda: sessions.viewers == {})
        await settle(clock, GATHER_S)
        told = (await page.get("/a1/watch")).json()
        assert ([item["text"] for item in told["items"]], told["questions"]) == (["Process 7 has ended."], [])


async def test_a_question_is_answered_once() -> None:
    """The later answer is told that it was too late; one that was never open, too."""
    sessions, clock = HandSessions(ANN), HandClock()
    async with panel(SessionsPart(sessions, clock)) as page:
        sessions.questions["a1"] = [command_question()]
        (question,) = (await page.get("/a1/watch")).json()["questions"]
        body = json.dumps({"question_id": question["question_id"], "choice_id": "accept"}).encode()
        assert (await page.post("/a1/answer", body)).status == 200
        assert [(agent, asked) for agent, asked, _ in sessions.answers] == [("a1", "q1")]
        late = await page.post("/a1/answer", body)
        assert (late.status, "faster" in late.json()["error"]) == (409, True)
        body = json.dumps({"question_id": "q9", "choice_id": "accept"}).encode()
        assert (await page.post("/a1/answer", body)).status == 409


async def test_an_answer_that_does_not_fit_reaches_nobody() -> None:
    """Neither an unknown choice nor a body with something else in it."""
    sessions, clock = HandSessions(ANN), HandClock()
    async with panel(SessionsPart(sessions, clock)) as page:
        await page.get("/a1/watch")
        sessions.show("a1", Asked(question=command_question()))
        for body in (
            b'{"question_id":"q1","choice_id":"always"}',
            b'{"question_id":"q1","choice_id":"accept","content":{},"also":1}',
            b'{"question_id":"q1"}',
            b"[]",
        ):
            assert (await page.post("/a1/answer", body)).status == 400
        assert sessions.answers == []


async def test_a_session_is_stopped() -> None:
    """By its id; an unknown one is not found."""
    sessions = HandSessions(ANN)
    async with panel(SessionsPart(sessions, HandClock())) as page:
        assert (await page.post("/a1/stop")).json() == {"is_stopped": True}
        assert sessions.stopped == ["a1"]
        assert (await page.post("/a2/stop")).status == 404
        assert (await page.get("/a2/watch")).status == 404
        assert (await page.post("/a2/answer", b'{"question_id":"q","choice_id":"accept"}')).status == 404


async def test_no_more_sessions_are_watched_than_there_is_room_for() -> None:
    """The one too many is told so; those that are watched go on."""
    rows = [LiveSessionRow(agent_id=f"a{n}") for n in range(MAX_WATCHES + 1)]
    sessions = HandSessions(*rows)
    async with panel(SessionsPart(sessions, HandClock())) as page:
        for row in rows[:-1]:
            assert (await page.get(f"/{row.agent_id}/watch")).status == 200
        assert (await page.get(f"/{rows[-1].agent_id}/watch")).status == 409
        assert (await page.get("/a0/watch")).status == 200


# ── jobs ───────────────────────────────────────────────────────────────────


async def test_jobs_are_listed_and_looked_at() -> None:
    """Foreign titles and messages are made plain."""
    async with panel(JobsPart(HandBoard(), HandClock())) as page:
        told = (await page.get()).json()
        assert (told["jobs"][0]["jobId"], told["slots"]["write"]) == ("job-a", "1/2")
        result = (await page.get("/job-a")).json()
        events = (await page.get("/job-a/events")).json()
        assert "\u202e" not in json.dumps([told, result, events], ensure_ascii=False)
        assert (await page.get("/job-a/events?cursor=c1")).json()["events"] == []


async def test_a_job_is_cancelled_killed_and_run_again() -> None:
    """Each by a request of its own."""
    board = HandBoard()
    async with panel(JobsPart(board, HandClock())) as page:
        await page.post("/job-a/cancel")
        await page.post("/job-a/cancel", b'{"is_forced":true}')
        assert (await page.post("/job-a/again")).json() == {"jobId": "job-c"}
        assert board.calls == [("cancel", "job-a", False), ("cancel", "job-a", True), ("again", "job-a")]


async def test_a_run_is_rolled_back_run_again_undone_and_accepted() -> None:
    """For all of its jobs, or for some; a path is named as it was shown, and reaches the jobs as it is."""
    board = HandBoard()
    async with panel(JobsPart(board, HandClock())) as page:
        shown = (await page.get("/runs/run-1")).json()["conflicts"][0]["path"]
        assert shown == "a\\u202e.txt"
        await page.get(f"/runs/run-1?path={shown.replace(chr(92), '%5C')}")
        assert board.calls[-1] == ("run", "a\u202e.txt")
        board.calls.clear()
        await page.post("/runs/run-1/rollback", b'{"jobs":["job-a"]}')
        await page.post("/runs/run-1/rerun")
        await page.post("/runs/run-1/undo")
        await page.post("/runs/run-1/accept", json.dumps({"resolved": [shown]}).encode())
        assert [call for call in board.calls if call[0] != "run"] == [
            ("rollback", "run-1", ("job-a",), (), False),
            ("rerun", "run-1", (), (), False),
            ("undo", "run-1", (), (), False),
            ("accept", "run-1", (), ("a\u202e.txt",), False),
        ]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/job-z"),
        ("POST", "/job-z/cancel"),
        ("GET", "/runs/run-9"),
        ("GET", "/runs/run-1?path=elsewhere"),
        ("POST", "/runs/run-1/explode"),
        ("POST", "/job-a/spawn"),
        ("GET", "/a/b/c/d"),
    ],
)
async def test_what_there_is_not_is_not_found(method: str, path: str) -> None:
    """Jobs, runs, paths and verbs."""
    async with panel(JobsPart(HandBoard(), HandClock())) as page:
        answered = await (page.get(path) if method == "GET" else page.post(path))
        assert answered.status == 404
        assert answered.json()["error"]


async def test_a_job_that_changes_is_news_and_one_that_only_takes_time_is_not() -> None:
    """The page asks for running ones by itself."""
    board, clock = HandBoard(), HandClock()
    async with panel(JobsPart(board, clock)) as page, page.page.reading() as stream:
        assert await stream.news() == {}
        board.rows[0]["elapsedMs"] = 1000
        await settle(clock, JOBS_S)
        assert page.page.feed.last == 1
        board.rows[0]["status"] = "succeeded"
        await settle(clock, JOBS_S)
        assert page.page.feed.last == 2


# ── mail ───────────────────────────────────────────────────────────────────


async def test_teams_members_and_inboxes_are_shown() -> None:
    """Messages are foreign texts; a team that is none is not found."""
    async with panel(MailPart(HandDesk(), HandClock())) as page:
        assert (await page.get()).json() == {"teams": ["crew"], "team": "crew", "me": "ann"}
        assert (await page.get("/crew/members")).json()["members"][0]["name"] == "bob"
        (message,) = (await page.get("/crew/inboxes/bob")).json()["messages"]
        assert ("\u202e" in message["text"], "<img" in message["text"]) == (False, True)
        assert (await page.get("/nobody/members")).status == 404


async def test_a_message_is_sent_once_and_under_a_free_name_only() -> None:
    """The same key again sends nothing; what is wrong with it is said."""
    desk = HandDesk()
    async with panel(MailPart(desk, HandClock())) as page:
        body = b'{"sender":"ann","to":"bob","text":"hi"}'
        for _ in range(2):
            sent = await page.page.ask("POST", "/api/mail/crew/send", body, idempotency_key="same-key-1")
            assert sent.json()["text"] == "Delivered to bob."
        assert desk.sent == [("crew", Letter(sender="ann", to="bob", text="hi"))]
        taken = await page.post("/crew/send", b'{"sender":"taken","to":"bob","text":"hi"}')
        assert (taken.status, taken.json()["error"]) == (409, "taken belongs to another process.")
        assert (await page.post("/crew/send", b'{"sender":"ann"}')).status == 400
        assert (await page.post("/crew/burn")).status == 404


async def test_new_mail_is_news() -> None:
    """Whoever wrote it."""
    desk, clock = HandDesk(), HandClock()
    async with panel(MailPart(desk, clock)) as page, page.page.reading() as stream:
        assert await stream.news() == {}
        desk.mark += 1
        await settle(clock, MAIL_S)
        assert page.page.feed.last == 2


# ── health ─────────────────────────────────────────────────────────────────


async def test_the_checks_run_once_at_a_time_and_are_kept() -> None:
    """Asked for twice while they run, they run once."""
    checks = HandChecks()
    async with panel(HealthPart(checks, now=lambda: 7.0)) as page:
        assert (await page.get()).json()["ended_at"] == 0
        await page.post("/run")
        await page.post("/run")
        await until(lambda: checks.runs)
        state = (await page.get()).json()
        assert (state["is_running"], state["doing"], checks.runs) == (True, "looking", 1)
        checks.may_end.set()
        await until(lambda: page.page.feed.last >= 4)
        state = (await page.get()).json()
        assert (state["is_running"], state["ended_at"], state["problem"]) == (False, 7.0, "")
        assert [(each["name"], each["severity"]) for each in state["checks"]] == [("codex", "warning")]


async def test_checks_that_cannot_run_say_why() -> None:
    """And can be asked for again."""
    checks = HandChecks()
    checks.problem = LanewayError("no result within 300 s")
    checks.may_end.set()
    async with panel(HealthPart(checks)) as page:
        await page.post("/run")
        await until(lambda: page.page.feed.last >= 3)
        state = (await page.get()).json()
        assert (state["is_running"], state["problem"]) == (False, "no result within 300 s")
        await page.post("/run")
        await until(lambda: checks.runs == 2)


# ── all of them ────────────────────────────────────────────────────────────

PARTS: tuple[Callable[[], PagePart], ...] = (
    lambda: SessionsPart(HandSessions(), HandClock()),
    lambda: JobsPart(HandBoard(), HandClock()),
    lambda: MailPart(HandDesk(), HandClock()),
    lambda: HealthPart(HandChecks()),
)


@pytest.mark.parametrize("make", PARTS)
async def test_every_panel_brings_its_script_and_refuses_what_it_does_not_know(
    make: Callable[[], PagePart],
) -> None:
    """Without markup as text: nothing in it parses HTML."""
    part = make()
    async with panel(part) as page:
        script = await page.page.ask("GET", f"/static/{part.name}/{part.name}.js")
        assert script.status == 200
        for path in part.static.glob("*.js"):
            code = path.read_text()
            assert not any(word in code for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval("))
        assert (await page.get("/what/is/this/now")).status == 404
        assert (await page.post("/what/is/this/now")).status == 404
