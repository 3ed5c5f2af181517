"""The way out: to one, to all, through the spool; in order, once, and never lost in silence."""

from __future__ import annotations

import fcntl
import json
import shutil
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import BadName, MemberUnknown, StoreError, TeamGone
from laneway.mail.locks import Patience
from laneway.mail.names import Address
from laneway.mail.places import Places
from laneway.mail.post import Post, Receipt, SendRefused
from laneway.mail.spool import Spool
from laneway.store.stamps import utc_now
from tests.mail.box import AT_ONCE, NOON, TEAM, check_strictly, found, inbox, leftovers, letter, on_disk
from tests.store.support import WallClock

CODEX = Address("codex", TEAM)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return found(tmp_path, "codex", "bob", "code reviewer.v2")


def post(places: Places, **options: Any) -> Post:
    return Post(places, **{"patience": AT_ONCE, **options})


def texts(places: Places, agent: str = "codex") -> list[str]:
    return [message.text for message in inbox(places, agent).read().messages]


class Locked:
    """Claude Code at work in an inbox."""

    def __init__(self, places: Places, agent: str = "codex") -> None:
        box = inbox(places, agent)
        self.folder = box.path.with_name(box.path.name + ".lock")

    def __enter__(self) -> None:
        self.folder.parent.mkdir(exist_ok=True)
        self.folder.mkdir()

    def __exit__(self, *_: object) -> None:
        self.folder.rmdir()


def spooled(places: Places) -> list[Path]:
    return sorted(places.spool.glob("*/*/*.json"))


@pytest.mark.covers("FR-4.2")
def test_a_message_goes_to_a_member(places: Places) -> None:
    """Also to one whose name only Claude Code would give."""
    made = letter("hello")
    assert post(places).send(made, CODEX) == Receipt(CODEX, made.message_id, "delivered")
    post(places).send(letter("please"), Address("code reviewer.v2", TEAM))
    post(places).send(letter("boss"), Address("team-lead", TEAM))
    assert texts(places) == ["hello"]
    assert inbox(places, "code reviewer.v2").path.name == "code-reviewer-v2.json"
    assert texts(places, "team-lead") == ["boss"]
    assert not post(places).has_waiting()


@pytest.mark.covers("FR-4.2")
def test_who_writes_to_the_team_can_be_answered_without_being_in_it(places: Places) -> None:
    """A person at a terminal is in no roster; her inbox is made when she first writes."""
    with pytest.raises(MemberUnknown):
        post(places).send(letter("too early"), Address("ann", TEAM))
    post(places).send(letter("hello", "ann"), CODEX)
    post(places).send(letter("welcome"), Address("ann", TEAM))
    assert texts(places, "ann") == ["welcome"]


@pytest.mark.covers("FR-4.2")
def test_nobody_and_nowhere_are_told_in_a_sentence(places: Places) -> None:
    """Nothing is made, nothing is spooled."""
    with pytest.raises(MemberUnknown, match=rf"Nobody called ann is in the team {TEAM}\.$"):
        post(places).send(letter("x"), Address("ann", TEAM))
    with pytest.raises(TeamGone, match="no team crew"):
        post(places).send(letter("x"), Address("ann", "crew"))
    with pytest.raises(BadName):
        post(places).send(letter("x"), Address("../ann", ".."))
    assert not places.inboxes(TEAM).exists()
    assert not places.spool_root.exists()
    assert [path.name for path in places.teams_root.iterdir()] == [TEAM]


def test_mail_for_a_locked_inbox_waits_and_is_handed_over_in_order(places: Places) -> None:
    """What is sent behind it waits behind it, even if the inbox is free by then; kept for us alone."""
    mine = post(places)
    with Locked(places):
        receipts = [mine.send(letter(str(number)), CODEX) for number in range(3)]
        assert {receipt.outcome for receipt in receipts} == {"spooled"}
        assert mine.has_waiting()
        drained = mine.drain()
        assert (drained.delivered, drained.waiting, drained.given_up) == ((), 3, ())
    assert [path.stat().st_mode & 0o777 for path in spooled(places)] == [0o600] * 3
    assert mine.send(letter("3"), CODEX).outcome == "delivered"
    assert texts(places) == ["0", "1", "2", "3"]
    assert spooled(places) == []
    assert not mine.has_waiting()
    check_strictly(inbox(places))


def test_spooled_mail_is_handed_over_by_whoever_comes_next(places: Places) -> None:
    """Another process, after a crash of ours; with the ids and the time that it was sent with."""
    made = letter("kept")
    with Locked(places), Locked(places, "bob"):
        post(places).send(made, CODEX)
        post(places).send(letter("other", "ann"), Address("bob", TEAM))
    drained = post(places).drain()
    assert {(str(receipt.to), receipt.outcome) for receipt in drained.delivered} == {
        (f"codex@{TEAM}", "delivered"),
        (f"bob@{TEAM}", "delivered"),
    }
    [entry] = on_disk(inbox(places))
    assert (entry["message_id"], entry["timestamp"]) == (made.message_id, "2026-11-16T12:00:00.123Z")
    assert post(places).drain().delivered == ()


def test_an_urgent_message_stays_urgent_in_the_spool(places: Places) -> None:
    """All of it is kept."""
    with Locked(places):
        post(places).send(letter("now", urgency="urgent"), CODEX)
    post(places).drain()
    assert [message.urgency for message in inbox(places).read().messages] == ["urgent"]


def test_a_crash_between_delivery_and_forgetting_does_not_deliver_twice(places: Places) -> None:
    """The file is still in the spool, the message in its inbox already."""
    with Locked(places):
        post(places).send(letter("once"), CODEX)
    [path] = spooled(places)
    copy = path.read_bytes()
    post(places).drain()
    path.parent.mkdir()
    path.write_bytes(copy)
    assert len(post(places).drain().delivered) == 1
    assert texts(places) == ["once"]
    assert spooled(places) == []


def test_many_who_hand_over_at_once_deliver_once_and_in_order(places: Places) -> None:
    """Threads here; processes in the chaos test."""
    count = 30
    with Locked(places):
        for number in range(count):
            Spool(places).add(CODEX, letter(str(number)))
    patient = post(places, patience=Patience())

    def drain() -> None:
        while patient.has_waiting():
            patient.drain()

    threads = [threading.Thread(target=drain) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts(places) == [str(number) for number in range(count)]
    check_strictly(inbox(places))


def test_somebody_else_handing_over_is_not_waited_for(places: Places) -> None:
    """New mail goes behind what waits, so that it cannot overtake."""
    with Locked(places):
        post(places).send(letter("first"), CODEX)
    folder = places.spooled(TEAM, "codex")
    with folder.with_name(".codex.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert post(places).drain().waiting == 1
        assert post(places).send(letter("second"), CODEX).outcome == "spooled"
    assert len(post(places).drain().delivered) == 2
    assert texts(places) == ["first", "second"]


def test_the_order_holds_when_the_clock_goes_back(places: Places) -> None:
    """A spooled message is always behind those that wait."""
    for number, hour in enumerate((2, 1, 3, 0)):
        clock = WallClock()
        clock.time = NOON.replace(hour=hour)
        Spool(places, now=clock).add(CODEX, letter(str(number)))
    post(places).drain()
    assert texts(places) == ["0", "1", "2", "3"]


def test_mail_for_a_team_that_is_gone_is_given_up_and_told(places: Places) -> None:
    """Kept for people, with the reason; never a folder made anew, and no error loop."""
    made = letter("late")
    with Locked(places):
        post(places).send(made, CODEX)
    shutil.rmtree(places.team(TEAM))
    mine = post(places)
    [lost] = mine.drain().given_up
    assert (lost.to, lost.message_id, lost.why) == (CODEX, made.message_id, f"the team {TEAM} is gone")
    assert json.loads(lost.path.read_bytes())["draft"]["text"] == "late"
    assert lost.path.stat().st_mode & 0o777 == 0o600
    assert not mine.has_waiting()
    assert mine.drain().given_up == ()
    assert list(places.teams_root.iterdir()) == []


def test_what_is_given_up_while_sending_is_told_at_the_next_occasion(places: Places) -> None:
    """A damaged file in the spool holds up nothing and is not lost in silence."""
    with Locked(places):
        post(places).send(letter("fine"), CODEX)
    folder = places.spooled(TEAM, "codex")
    (folder / f"{1:020d}-ab.json").write_text("{damage")
    mine = post(places)
    assert mine.send(letter("next"), CODEX).outcome == "delivered"
    assert texts(places) == ["fine", "next"]
    [lost] = mine.drain().given_up
    assert lost.why == "its file is damaged"
    assert lost.path.read_text() == "{damage"
    assert mine.drain().given_up == ()


def test_an_inbox_that_stays_locked_for_a_day_is_given_up(places: Places) -> None:
    """No lock is held that long by anything that works."""
    with Locked(places):
        post(places).send(letter("x"), CODEX)
        assert post(places, now=lambda: utc_now() + timedelta(hours=23)).drain().waiting == 1
        [lost] = post(places, now=lambda: utc_now() + timedelta(hours=25)).drain().given_up
    assert "locked since" in lost.why


def test_a_spool_that_overflows_says_so(places: Places) -> None:
    """And the message was not sent."""
    small = Spool(places, max_waiting=2)
    for number in range(2):
        small.add(CODEX, letter(str(number)))
    with pytest.raises(StoreError, match=rf"2 messages wait for codex@{TEAM}"):
        small.add(CODEX, letter("2"))
    post(places).drain()
    assert texts(places) == ["0", "1"]


@pytest.mark.covers("FR-4.4")
def test_a_broadcast_goes_to_everybody_but_the_sender_under_one_id(places: Places) -> None:
    """Who could not be reached is told one by one; a member that is listed twice gets it once."""
    twice = json.loads(places.config(TEAM).read_text())
    twice["members"] += [{"agentId": "codex@x", "name": "codex"}, {"agentId": "evil@x", "name": "../../evil"}]
    places.config(TEAM).write_text(json.dumps(twice))
    with Locked(places, "team-lead"):
        sent = post(places).broadcast("bob", "all hands", team=TEAM, urgency="urgent")
    outcomes = {each.to.agent: each for each in sent.results}
    assert list(outcomes) == ["team-lead", "codex", "code reviewer.v2", "../../evil"]
    assert outcomes["codex"] == Receipt(CODEX, sent.message_id, "delivered")
    assert outcomes["team-lead"] == Receipt(Address("team-lead", TEAM), sent.message_id, "spooled")
    evil = outcomes["../../evil"]
    assert isinstance(evil, SendRefused)
    assert "cannot be the name" in str(evil.error)
    [entry] = on_disk(inbox(places))
    assert (entry["from"], entry["message_id"]) == ("bob", sent.message_id)
    assert not inbox(places, "bob").path.exists()
    assert leftovers(places) == []


def test_a_broadcast_to_another_team_reaches_a_namesake(places: Places, tmp_path: Path) -> None:
    """Who is called the same there is somebody else; the entry tells where it comes from."""
    found(tmp_path, "bob", team="crew")
    sent = post(places).broadcast("bob", "hello", team="crew", source_team=TEAM)
    assert [each.to.agent for each in sent.results] == ["team-lead", "bob"]
    entry = json.loads(places.inbox("crew", "bob").read_text())[0]
    assert entry["source_team"] == TEAM


def test_a_broadcast_to_no_team_is_an_error(places: Places) -> None:
    """Nothing was sent to anybody."""
    with pytest.raises(TeamGone):
        post(places).broadcast("bob", "x", team="crew")
