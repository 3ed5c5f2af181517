"""What the settings of mail do, and what is told: switches, senders, limits, budgets, steering, numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.base.settings import load
from laneway.core.named.opening import Budget
from laneway.core.ports import TextPart
from laneway.mail.delivery import Rules
from laneway.mail.postman import Orders
from laneway.mail.shared import NewMail
from tests.core.support import until
from tests.mail.postman_support import TEAM, PostmanStage, postman_stage

URGENT: dict[str, Any] = {"metadata": {"laneway": {"priority": "urgent"}}}


# ── switched off ───────────────────────────────────────────────────────────


@pytest.mark.covers("FR-8.8")
async def test_switched_off_mail_stays_unread_and_clients_are_served(tmp_path: Path) -> None:
    """FR-8.8: it starts no turn, and keeps nobody else from one."""
    async with postman_stage(tmp_path, orders=Orders(auto=False)) as here:
        codex = await here.open()
        here.write("hello")
        await until(lambda: here.postman.pending() == 1)
        turn = await here.stage.busy(codex)
        here.stage.thread(codex).end(text="served")
        assert (await turn.result()).text == "served"
        await here.poll()
        assert here.turns(codex) == []
        assert here.unread() == ["hello"]


@pytest.mark.covers("FR-8.8")
async def test_a_session_can_be_switched_on_and_off_while_it_runs(tmp_path: Path) -> None:
    """What waited is brought at once; after that nothing is."""
    async with postman_stage(tmp_path, orders=Orders(auto=False)) as here:
        codex = await here.open()
        here.write("one")
        await until(lambda: here.postman.pending() == 1)
        here.postman.set_auto(codex.agent_id, is_on=True)
        assert await here.turn(codex) == ["one"]
        here.postman.set_auto(codex.agent_id, is_on=False)
        await here.end(codex)
        here.write("two")
        await until(lambda: here.postman.pending() == 1)
        await here.poll()
        assert len(here.turns(codex)) == 1


@pytest.mark.covers("FR-8.8")
async def test_a_setting_for_one_session_goes_before_the_one_for_all(tmp_path: Path) -> None:
    """And what was switched while it runs goes before both, until it is closed."""
    async with postman_stage(tmp_path, orders=Orders(auto=False, per_session={"agent-1": True})) as here:
        assert here.postman.is_auto("agent-1")
        assert not here.postman.is_auto("agent-2")
        codex = await here.open()
        here.postman.set_auto(codex.agent_id, is_on=True)
        assert here.postman.is_auto(codex.agent_id)
        await here.stage.sessions.close(codex.principal, agent_id=codex.agent_id)
        assert not here.postman.is_auto(codex.agent_id)


def test_every_setting_of_mail_is_an_order(tmp_path: Path) -> None:
    """What a config file says arrives where it counts."""
    config = tmp_path / ".config" / "atm" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        "[laneway]\n"
        "auto_mail = false\n"
        "mail_poll_interval_ms = 250\n"
        "max_mail_messages = 3\n"
        "max_mail_message_length = 100\n"
        'mail_allow = ["bob"]\n'
        'mail_deny = ["eve"]\n'
        "mail_turns_per_hour = 7\n"
        "mail_steer = true\n"
        "[laneway.per_thread_auto_mail]\n"
        "agent-1 = true\n"
    )
    settings = load({}, {}, tmp_path, tmp_path)
    assert Orders.of(settings) == Orders(
        rules=Rules(
            max_messages=3,
            max_chars=100,
            turns_per_hour=7,
            may_steer=True,
            allow=frozenset({"bob"}),
            deny=frozenset({"eve"}),
        ),
        auto=False,
        per_session={"agent-1": True},
        poll_s=0.25,
    )


# ── senders ────────────────────────────────────────────────────────────────


async def test_mail_of_a_denied_sender_starts_no_turn_and_stays_to_be_read(tmp_path: Path) -> None:
    """Counted once, however often the inbox is looked at."""
    async with postman_stage(tmp_path, deny=frozenset({"eve"})) as here:
        codex = await here.open()
        here.write("psst", sender="eve")
        here.write("hello", sender="bob")
        assert await here.turn(codex) == ["hello"]
        await here.end(codex)
        await here.poll()
        assert here.unread() == ["psst"]
        assert here.postman.metrics.refused == 1


async def test_with_a_list_of_senders_nobody_else_starts_turns(tmp_path: Path) -> None:
    """An empty list lets nobody in."""
    async with postman_stage(tmp_path, allow=frozenset()) as here:
        codex = await here.open()
        here.write("hello")
        await until(lambda: here.postman.metrics.refused == 1)
        assert here.turns(codex) == []


# ── limits ─────────────────────────────────────────────────────────────────


async def test_the_limit_of_an_hour_is_kept_told_once_and_lifted(tmp_path: Path) -> None:
    """Two agents that only ever answer each other stop here."""
    async with postman_stage(tmp_path, turns_per_hour=2) as here:
        codex = await here.open()
        for number in (1, 2):
            here.write(f"ping {number}")
            await here.turn(codex, number)
            await here.end(codex)
        here.write("ping 3")
        await until(lambda: here.notices)
        here.write("ping 4")
        await here.poll()
        assert [notice.kind for notice in here.notices] == ["limit"]
        assert "mail_turns_per_hour" in here.notices[0].text
        assert len(here.turns(codex)) == 2
        await here.later(3600)
        assert await here.turn(codex, 3) == ["ping 3", "ping 4"]
        await here.stage.sessions.close(codex.principal, agent_id=codex.agent_id)
        assert "mail_limit" in [line["event_type"] for line in here.stage.audit()]


async def test_a_spent_budget_is_told_once_and_the_mail_waits(tmp_path: Path) -> None:
    """The session may ask for no further turn; what is unread stays so, without a hot loop."""
    async with postman_stage(tmp_path, stage={"budget": Budget(max_turns=1)}) as here:
        codex = await here.open()
        here.write("one")
        await here.turn(codex)
        await here.end(codex)
        here.write("two")
        await until(lambda: here.notices)
        for _ in range(3):
            await here.poll()
        assert [notice.kind for notice in here.notices] == ["budget"]
        assert here.unread() == ["two"]
        assert here.postman.metrics.failed == 1


# ── a Codex that is not well ───────────────────────────────────────────────


async def test_a_dead_codex_is_not_asked_by_mail_and_keeps_nothing(tmp_path: Path) -> None:
    """FR-11: the death is for a client to hear. The mail is there when somebody is back."""
    async with postman_stage(tmp_path, stage={"restart": "reported"}) as here:
        codex = await here.open()
        here.stage.engine.die()
        here.write("anybody there?")
        await until(lambda: here.postman.pending() == 1)
        for _ in range(3):
            await here.poll()
        assert here.turns(codex) == []
        assert here.stage.engine.ended is not None
        assert here.unread() == ["anybody there?"]
        here.stage.engine.renew()
        await here.poll()
        assert await here.turn(codex) == ["anybody there?"]


@pytest.mark.covers("FR-8.13")
async def test_killed_before_it_recorded_anything_codex_is_brought_the_mail_again(tmp_path: Path) -> None:
    """FR-8.13: in the next process, on the same thread."""
    async with postman_stage(tmp_path, stage={"restart": "always"}) as here:
        codex = await here.open()
        here.stage.thread(codex).records = False
        here.write("keep me")
        await here.turn(codex)
        here.stage.engine.die()
        await here.quiet()
        assert here.unread() == ["keep me"]
        await here.later(2.1)
        assert await here.turn(codex) == ["keep me"]  # of the thread as it was resumed
        assert [thread_id for thread_id, _ in here.stage.engine.resumed] == [codex.thread_id]
        await here.marked()
        assert here.postman.metrics.redelivered == 1


# ── steering ───────────────────────────────────────────────────────────────


def steered(here: PostmanStage, codex: Any) -> list[str]:
    return [
        part.text
        for parts in here.stage.thread(codex).steered
        for part in parts
        if isinstance(part, TextPart)
    ]


async def test_urgent_mail_reaches_a_running_turn_if_that_is_wanted(tmp_path: Path) -> None:
    """And is marked when Codex has recorded it, as any other; what is not urgent waits."""
    async with postman_stage(tmp_path, may_steer=True) as here:
        codex = await here.open()
        turn = await here.stage.busy(codex)
        here.stage.thread(codex).records = False
        here.write("no hurry")
        here.write("stop!", **URGENT)
        await until(lambda: steered(here, codex))
        (words,) = steered(here, codex)
        assert words.startswith("Urgent team mail came while you work: 1 message.")
        assert "stop!" in words
        assert here.unread() == ["no hurry", "stop!"]
        here.stage.thread(codex).accept(here.stage.thread(codex).steer_tickets[0])
        await until(lambda: here.unread() == ["no hurry"])
        await here.end(codex)
        here.stage.thread(codex).records = True
        assert await here.turn(codex) == ["no hurry"]
        assert (await turn.result()).text == "done"
        assert (here.postman.metrics.steers, here.postman.metrics.turns) == (1, 1)


async def test_urgent_mail_that_the_turn_did_not_take_gets_a_turn_of_its_own(tmp_path: Path) -> None:
    """It was handed over and never recorded: nothing is lost."""
    async with postman_stage(tmp_path, may_steer=True) as here:
        codex = await here.open()
        await here.stage.busy(codex)
        here.stage.thread(codex).records = False
        here.write("stop!", **URGENT)
        await until(lambda: steered(here, codex))
        here.stage.thread(codex).records = True
        await here.end(codex)
        assert await here.turn(codex) == ["stop!"]
        await here.marked()


async def test_urgent_mail_that_came_before_the_turn_ran_reaches_it_when_it_does(tmp_path: Path) -> None:
    """Asked for is not begun: it goes in as soon as there is something to go into."""
    async with postman_stage(tmp_path, may_steer=True, max_messages=1) as here:
        codex = await here.open()
        here.write("stop!", "stop at once!", **URGENT)
        assert await here.turn(codex) == ["stop!"]
        await until(lambda: steered(here, codex))
        assert "stop at once!" in steered(here, codex)[0]
        await here.marked()


@pytest.mark.parametrize("urgency", ["urgent", "normal"])
async def test_without_the_setting_nothing_reaches_a_running_turn(tmp_path: Path, urgency: str) -> None:
    """The default: a turn is left alone."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        await here.stage.busy(codex)
        here.write("stop!", metadata={"laneway": {"priority": urgency}})
        await until(lambda: here.mail)
        await here.poll()
        assert steered(here, codex) == []


# ── telling ────────────────────────────────────────────────────────────────


async def test_new_mail_is_told_once_with_what_waits(tmp_path: Path) -> None:
    """Whoever subscribed hears of what is new, also where it starts no turn."""
    async with postman_stage(tmp_path, orders=Orders(auto=False)) as here:
        codex = await here.open()
        here.write("one", "two")
        await until(lambda: here.mail)
        here.write("three")
        await until(lambda: len(here.mail) == 2)
        await here.poll()
        who = (codex.agent_id, "codex", TEAM)
        assert here.mail == [NewMail(*who, 2, 2), NewMail(*who, 1, 3)]


async def test_the_status_counts_what_is_unread(tmp_path: Path) -> None:
    """FR-10.2's number, without a look at the disk; a session that is gone takes its part along."""
    async with postman_stage(tmp_path, orders=Orders(auto=False)) as here:
        codex, bob = await here.open(), await here.open("bob")
        here.write("one", "two")
        here.write("three", to="bob")
        await until(lambda: here.stage.sessions.status().pending_mail == 3)
        assert here.postman.pending(bob.agent_id) == 1
        await here.stage.sessions.close(codex.principal, agent_id=codex.agent_id)
        assert here.stage.sessions.status().pending_mail == 1


async def test_the_time_from_the_write_to_the_turn_is_measured(tmp_path: Path) -> None:
    """Only where the session was free: how long a client works is not ours to answer for."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        assert not here.postman.metrics.latency_last_s
        here.write("one")
        await here.turn(codex)
        first = here.postman.metrics
        assert first.latency_last_s is not None
        assert first.latency_last_s == first.latency_max_s == first.latency_mean_s
        here.write("two")
        await until(lambda: len(here.mail) == 2)
        await here.end(codex)
        await here.turn(codex, 2)
        assert here.postman.metrics.turns == 2
        assert here.postman.metrics.latency_last_s == first.latency_last_s


async def test_each_delivery_is_in_the_audit_log(tmp_path: Path) -> None:
    """FR-9: the turn that was asked for, and whose mail Codex recorded in it."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        here.write("hello", sender="bob")
        await here.turn(codex)
        await here.marked()
        await here.stage.sessions.close(codex.principal, agent_id=codex.agent_id)
        lines = {line["event_type"]: line for line in here.stage.audit()}
        assert lines["mail"]["prompt_summary"].startswith("You have team mail: 1 message.")
        delivered = lines["mail_delivered"]
        assert delivered["message_summary"] == f"bob: {here.disk()[0]['msg_id']}"
        assert (delivered["identity"], delivered["agent_id"]) == ("codex", codex.agent_id)
