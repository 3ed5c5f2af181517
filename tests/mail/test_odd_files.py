"""Rosters, inboxes, locks and the spool are shared with other programs: whatever lies there, nobody waits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laneway.base.errors import StoreError
from laneway.mail.locks import Patience
from laneway.mail.names import Address
from laneway.mail.places import Places
from laneway.mail.post import Post
from laneway.mail.roster import Roster
from tests.adversary.odd_files import Maker, folder, not_regular, unreadable
from tests.mail.box import AT_ONCE, TEAM, found, inbox, letter


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return found(tmp_path, "codex", "bob")


@unreadable
def test_an_odd_inbox_is_a_sentence_to_readers_and_writers(places: Places, make: Maker) -> None:
    """And the inbox of somebody else is none the worse for it."""
    box = inbox(places)
    box.path.parent.mkdir(exist_ok=True)
    make(box.path)
    before = os.lstat(box.path)
    for look in (box.read, box.pending_count, lambda: box.append(letter("x"))):
        with pytest.raises(StoreError, match=r"Move it away"):
            look()
    assert os.path.samestat(os.lstat(box.path), before)
    inbox(places, "bob").append(letter("for bob"))
    assert [message.text for message in inbox(places, "bob").read().messages] == ["for bob"]


@unreadable
def test_an_odd_roster_is_a_sentence_or_no_team(places: Places, make: Maker) -> None:
    """Neither read nor changed."""
    config = places.config(TEAM)
    config.unlink()
    make(config)
    before = os.lstat(config)
    roster = Roster(places, TEAM)
    for look in (roster.read, lambda: roster.register("new", cwd="/w")):
        with pytest.raises(StoreError, match=r"\.$"):
            look()
    assert os.path.samestat(os.lstat(config), before)


@not_regular
def test_an_odd_lock_file_is_a_sentence(places: Places, make: Maker) -> None:
    """Not waited for."""
    box = inbox(places)
    box.append(letter("x"))
    lock = box.path.with_suffix(".lock")
    lock.unlink()
    make(lock)
    with pytest.raises(StoreError, match="another kind"):
        box.append(letter("y"))


@unreadable
def test_an_odd_thing_in_the_spool_is_put_aside_and_the_mail_behind_it_goes_on(
    places: Places, make: Maker
) -> None:
    """It is told as given up, and kept for people."""
    to = Address("codex", TEAM)
    waiting = places.spooled(TEAM, "codex")
    waiting.mkdir(parents=True)
    make(waiting / f"{0:020d}-odd.json")
    post = Post(places, patience=Patience(budget_s=5.0))
    assert post.send(letter("hello"), to).outcome == "delivered"
    assert [message.text for message in inbox(places).read().messages] == ["hello"]
    (given_up,) = post.drain().given_up
    assert given_up.why == "its file is damaged"
    assert os.path.lexists(given_up.path)


@not_regular
def test_an_odd_lock_of_the_spool_keeps_the_mail_safe(places: Places, make: Maker) -> None:
    """Nobody can be sure to be alone then: it waits, in order, and is told."""
    box = inbox(places)
    held = box.path.with_name(box.path.name + ".lock")
    held.parent.mkdir(exist_ok=True)
    held.mkdir()
    post = Post(places, patience=AT_ONCE)
    assert post.send(letter("first"), Address("codex", TEAM)).outcome == "spooled"
    held.rmdir()
    lock = places.spooled(TEAM, "codex").with_name(".codex.lock")
    lock.unlink(missing_ok=True)
    make(lock)
    with pytest.raises(StoreError, match="another kind"):
        post.send(letter("second"), Address("codex", TEAM))
    if make is folder:
        lock.rmdir()
    else:
        lock.unlink()
    post.send(letter("third"), Address("codex", TEAM))
    assert [message.text for message in box.read().messages] == ["first", "third"]
