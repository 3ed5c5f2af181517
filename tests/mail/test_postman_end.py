"""What ends a session or an inbox: a lead that asks for it, a client that closes, a file that is damaged."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from laneway.core.named.opening import Opening
from laneway.core.ports import ThreadSpec
from laneway.store.stamps import utc_now
from tests.core.named.support import ME
from tests.core.support import until
from tests.mail.postman_support import TEAM, postman_stage


def order(requestId: str = "shutdown-1@codex", **changes: str) -> str:
    frame = {
        "type": "shutdown_request",
        "requestId": requestId,
        "from": "team-lead",
        "timestamp": "",
        **changes,
    }
    return json.dumps(frame)


# ── damage ─────────────────────────────────────────────────────────────────


async def test_a_damaged_inbox_is_kept_aside_and_told_and_mail_goes_on(tmp_path: Path) -> None:
    """Before somebody writes over it."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        here.write("[")
        await here.turn(codex)
        await here.end(codex)
        path = here.inbox().path
        beside = path.with_name("beside")
        beside.write_text('[{"from": "bob", "te')
        beside.rename(path)
        await until(lambda: here.notices)
        await here.quiet()
        assert [notice.kind for notice in here.notices] == ["inbox"]
        (aside,) = path.parent.glob("codex.json.corrupt-*")
        assert aside.read_text() == '[{"from": "bob", "te'
        here.write("mail goes on")
        assert await here.turn(codex, 2) == ["mail goes on"]


# ── a lead that wants an end ───────────────────────────────────────────────


async def test_a_leads_request_closes_the_session_and_is_answered(tmp_path: Path) -> None:
    """As its Claude Code wants it: approved, by the member's own name, and gone from the roster."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        here.write(order())
        await until(lambda: here.members() == ["team-lead"])
        assert codex.state == "closed"
        (answer,) = here.disk("team-lead")
        assert answer["from"] == "codex"
        frame = json.loads(answer["text"])
        assert {**frame, "timestamp": ""} == {
            "type": "shutdown_approved",
            "requestId": "shutdown-1@codex",
            "from": "codex",
            "timestamp": "",
        }
        assert here.unread() == []
        assert here.turns(codex) == []
        assert here.postman.metrics.sessions_ended == 1
        await until(lambda: here.stage.audit()[-1]["event_type"] == "mail_shutdown")
        assert here.stage.audit()[-1]["outcome"] == "closed"


async def test_a_request_to_end_waits_for_the_turn_that_runs(tmp_path: Path) -> None:
    """The client gets its answer; then the session is closed, before any other mail."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        turn = await here.stage.busy(codex)
        here.write("one more thing")
        here.write(order())
        await until(lambda: here.postman.pending() == 2)
        here.stage.thread(codex).end(text="served")
        assert (await turn.result()).text == "served"
        await until(lambda: codex.state == "closed")
        await here.quiet()
        assert here.turns(codex) == []
        assert here.unread() == ["one more thing"]


async def test_a_request_to_an_earlier_session_of_the_name_ends_nobody(tmp_path: Path) -> None:
    """It is shown as what it was, and the new session lives."""
    async with postman_stage(tmp_path) as here:
        here.write(order(), when=utc_now() - timedelta(hours=1))
        codex = await here.open()
        assert await here.turn(codex) == [order()]
        assert codex.state == "busy"


async def test_nobody_but_the_lead_can_end_a_session(tmp_path: Path) -> None:
    """Also not in the lead's words."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        here.write(order(), sender="eve")
        assert await here.turn(codex) == [order()]


async def test_a_request_to_end_that_cannot_be_answered_is_obeyed_all_the_same(tmp_path: Path) -> None:
    """The team has no lead to tell: the session is closed, and nothing loops."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        config = here.places.config(TEAM)
        team = json.loads(config.read_text())
        config.write_text(json.dumps({**team, "members": team["members"][1:]}))
        here.write(order())
        await until(lambda: codex.state == "closed")
        await here.marked()
        await here.poll()
        assert not here.places.inbox(TEAM, "team-lead").exists()


async def test_idle_notices_start_no_turn_and_come_along_with_the_next(tmp_path: Path) -> None:
    """No echo between two agents that are both idle; nothing is lost either."""
    note = json.dumps(
        {"type": "idle_notification", "from": "bob", "idleReason": "available", "timestamp": ""}
    )
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        here.write(note, sender="bob")
        await until(lambda: here.mail)
        await here.poll()
        assert here.turns(codex) == []
        here.write("now work")
        assert await here.turn(codex) == ["now work", "bob is idle (available)."]
        await here.marked()


async def test_a_closing_session_takes_nothing_from_the_disk(tmp_path: Path) -> None:
    """FR-17.10: what was asked for and not begun is gone from the queue and stays in the inbox."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        here.stage.thread(codex).records = False
        here.write("one")
        await here.turn(codex)
        here.write("two")
        await until(lambda: len(here.mail) == 2)
        await here.stage.sessions.close(ME, agent_id=codex.agent_id)
        await here.quiet()
        assert here.unread() == ["one", "two"]
        again = await here.stage.sessions.open(ME, Opening(spec=ThreadSpec(cwd=tmp_path), identity="codex"))
        assert await here.turn(again) == ["one", "two"]
        await here.marked()
