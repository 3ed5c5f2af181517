"""Mail on its way, its membership and its marks: what the whole does too seldom to be tested by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from laneway.base.errors import LanewayError
from laneway.core.background import TaskSet
from laneway.core.turn import TurnResult
from laneway.mail.delivery import Rules
from laneway.mail.entries import Message
from laneway.mail.in_flight import Deliveries
from laneway.mail.inbox import Inbox
from laneway.mail.marking import Marking
from laneway.mail.membership import Membership
from laneway.mail.pace import BACKOFF_S
from laneway.mail.places import Places
from laneway.mail.post import Post
from laneway.mail.shared import MailShared, MemberMemory, MessageMemory
from laneway.mail.teams import TeamChoice
from laneway.store.stamps import utc_now
from laneway.testing.clock import HandClock
from tests.core.named import support as named_support
from tests.core.named.support import texts
from tests.core.support import until
from tests.mail.box import found, inbox, letter, on_disk


class Log:
    """A sender that only writes down what becomes of its mail (the DeliveryOwner port)."""

    def __init__(self) -> None:
        self.recorded: list[str] = []
        self.failures: list[TurnResult | LanewayError] = []
        self.looks = 0

    def on_begun(self) -> None:
        pass

    def on_recorded(self, box: Inbox, messages: tuple[Message, ...]) -> None:
        self.recorded += [message.text for message in messages]

    def on_failed(self, why: TurnResult | LanewayError) -> None:
        self.failures.append(why)

    def look_again(self) -> None:
        self.looks += 1


def written(root: Path, *said: str) -> tuple[Inbox, tuple[Message, ...]]:
    box = inbox(found(root))
    for text in said:
        box.append(letter(text))
    return box, box.read().unread()


# ── deliveries ──────────────────────────────────────────────────────────────────


async def test_a_mail_turn_that_a_client_overtook_is_taken_back_and_does_not_count(tmp_path: Path) -> None:
    """Both were asked for before the session could begin either: the client's runs, ours was never there."""
    box, messages = written(tmp_path, "mail")
    async with named_support.stage(tmp_path / "state") as stage:
        codex, log, tasks = await stage.open(), Log(), TaskSet()
        shared = MailShared(
            stage.sessions,
            stage.clock,
            Membership(found(tmp_path / "other"), TeamChoice("crew", "said")),
            Post(found(tmp_path / "another")),
            Rules(),
            tasks=tasks,
            now=utc_now,
            is_auto=lambda agent_id: True,
            tell=lambda what: None,
        )
        deliveries = Deliveries(codex, shared, log)
        codex.session.attach(deliveries)
        deliveries.begin_turn(box, messages, "mail", None)
        stage.sessions.say(codex, "client")
        assert deliveries.pending_keys == messages[0].key
        await until(lambda: log.looks)
        assert texts(stage.thread(codex)) == ["client"]
        assert (deliveries.pending_keys, deliveries.pace.begun(stage.clock.now()), log.failures) == (
            frozenset(),
            (),
            [],
        )
        stage.thread(codex).end()
        await until(lambda: codex.state == "idle")
        assert len(stage.thread(codex).started) == 1
        deliveries.begin_turn(box, messages, "mail", None)
        await until(lambda: log.recorded == ["mail"])
        assert shared.counters.snapshot().redelivered == 1


# ── marks ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("waits", [False, True], ids=["within the pause", "after it"])
async def test_a_mark_that_failed_is_made_again_after_a_pause(tmp_path: Path, *, waits: bool) -> None:
    """Not at once: whoever holds the inbox would be asked without end. The alarm says when to look."""
    box, messages = written(tmp_path, "hello")
    clock, looks = HandClock(), []
    marking = Marking(Places.of({}, tmp_path), clock, lambda: looks.append(clock.now()))
    aside = box.path.with_name("aside")
    box.path.rename(aside)
    box.path.mkdir()
    marking.add(box, messages)
    await marking.run()
    box.path.rmdir()
    aside.rename(box.path)
    clock.advance(BACKOFF_S if waits else BACKOFF_S - 0.1)
    assert looks == ([BACKOFF_S] if waits else [])
    await marking.again(box, messages)
    assert [entry["read"] for entry in on_disk(box)] == [waits]


async def test_marks_in_a_team_that_is_gone_are_nobodys_business(tmp_path: Path) -> None:
    """No error, no alarm."""
    box, messages = written(tmp_path, "hello")
    team = box.path.parent.parent
    team.rename(team.with_name("away"))
    clock, looks = HandClock(), []
    marking = Marking(Places.of({}, tmp_path), clock, lambda: looks.append(clock.now()))
    marking.add(box, messages)
    await marking.run()
    clock.advance(1000)
    assert looks == []


async def test_an_inbox_that_has_become_somebody_elses_is_not_marked(tmp_path: Path) -> None:
    """What Codex had of it stays unread for whoever has the name now; nobody tries again."""
    box, messages = written(tmp_path, "hello")
    clock, looks = HandClock(), []
    marking = Marking(Places.of({}, tmp_path), clock, lambda: looks.append(clock.now()))
    config = box.path.parent.parent / "config.json"
    team = json.loads(config.read_text())
    team["members"].append({"agentId": "Codex@x", "name": "Codex"})
    config.write_text(json.dumps(team))
    marking.add(box, messages)
    await marking.run()
    clock.advance(1000)
    assert looks == []
    assert [entry["read"] for entry in on_disk(box)] == [False]


# ── membership ─────────────────────────────────────────────────────────────


async def test_only_who_joined_last_under_a_name_can_leave_it(tmp_path: Path) -> None:
    """A session that is closed slowly does not take the membership of the one that has its name by now."""
    places = found(tmp_path, team="crew")
    membership = Membership(places, TeamChoice("crew", "said"))
    first, second = object(), object()
    await membership.join("codex", first, model="", cwd="")
    await membership.join("codex", second, model="", cwd="")
    await membership.leave("codex", first)
    assert membership.is_member("codex", second)
    assert '"codex"' in places.config("crew").read_text()
    await membership.leave("codex", second)
    assert '"codex"' not in places.config("crew").read_text()


# ── memory ─────────────────────────────────────────────────────────────────


def test_memory_is_of_one_member_and_forgets_the_oldest(tmp_path: Path) -> None:
    """What one was brought, another was not; and it does not grow for ever."""
    _, messages = written(tmp_path, "one", "two", "three")
    memory = MessageMemory(size=sum(len(message.key) for message in messages[1:]))
    ann, bob = MemberMemory(memory, "ann"), MemberMemory(memory, "bob")
    for message in messages:
        ann.add(message)
    assert [ann.has(message) for message in messages] == [False, True, True]
    assert [bob.has(message) for message in messages] == [False, False, False]
