"""One inbox, shared with programs that are not ours: nothing lost, nothing of theirs changed."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import MailBusy, StoreError, TeamGone
from laneway.mail.places import Places
from tests.mail.box import (
    AT_ONCE,
    TEAM,
    check_strictly,
    dialect,
    found,
    inbox,
    leftovers,
    letter,
    on_disk,
    put,
)

FOREIGN: list[Any] = [
    {
        "z": 1,
        "from": "lead",
        "text": "a",
        "timestamp": "2026-11-16T05:25:43Z",
        "msg_id": "m1",
        "read": False,
        "x": None,
    },
    {
        "from": "arch",
        "text": "b",
        "timestamp": "2026-02-18T10:00:00.1+00:00",
        "pendingAckAt": "t",
        "read": True,
    },
    5,
    {"kind": "from the future"},
    {"text": "c", "from": "qa", "timestamp": "now", "deep": {"list": [1.0, 1e5, {"k": []}]}},
]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return found(tmp_path, "codex", "bob")


def texts(places: Places, agent: str = "codex") -> list[str]:
    return [message.text for message in inbox(places, agent).read().unread()]


def test_a_message_arrives_and_all_three_programs_can_read_it(places: Places) -> None:
    """The inbox and its folder are made, for us alone."""
    box = inbox(places)
    made = letter("hello")
    written = box.append(made)
    assert (written.message_id, written.is_new, written.problems) == (made.message_id, True, ())
    [message] = box.read().messages
    assert (message.text, message.message_id, message.timestamp) == (
        "hello",
        made.message_id,
        written.timestamp,
    )
    check_strictly(box)
    assert box.path.stat().st_mode & 0o777 == 0o600
    assert leftovers(places) == []


def test_an_inbox_that_nobody_made_is_empty(places: Places) -> None:
    """Looking makes nothing."""
    box = inbox(places)
    assert box.read().messages == ()
    assert (box.pending_count(), box.fingerprint()) == (0, None)
    assert box.mark_read([]).count == 0
    assert box.rescue() is None
    assert not box.path.parent.exists()


def test_what_others_wrote_keeps_its_bytes(places: Places) -> None:
    """Unknown keys, their order, nulls, numbers, entries that are no messages, permissions."""
    box = inbox(places)
    put(box, *FOREIGN)
    box.path.chmod(0o644)
    before = box.path.read_bytes()
    box.append(letter("ours"))
    assert box.path.read_bytes().startswith(before.removesuffix(b"\n]") + b",\n  {")
    assert box.path.stat().st_mode & 0o777 == 0o644
    assert on_disk(box)[:-1] == FOREIGN


@pytest.mark.covers("FR-4.3")
def test_exactly_what_was_read_is_marked(places: Places) -> None:
    """A message that came meanwhile stays unread; an entry without an id can be marked, too."""
    box = inbox(places)
    put(box, *FOREIGN)
    taken = box.read().messages
    assert [message.text for message in taken] == ["a", "c"]
    box.append(letter("late"))
    assert box.mark_read(taken).count == 2
    assert box.mark_read(taken).count == 0
    assert texts(places) == ["late"]
    after = on_disk(box)
    assert after[0] == {**FOREIGN[0], "read": True}
    assert list(after[0]) == list(FOREIGN[0])
    assert after[1:4] == FOREIGN[1:4]
    assert after[4] == {**FOREIGN[4], "read": True}


def test_a_mark_finds_its_message_after_others_wrote_the_file_anew(places: Places) -> None:
    """Claude Code adds a type; ATM 1.x takes ids away and ends the file with a line break."""
    box = inbox(places)
    put(box, {"from": "x", "text": "bare", "timestamp": "2026-11-16T05:25:43Z", "read": False})
    box.append(letter("ours"))
    taken = box.read().messages
    dialect("claude", "append", box.path, "lead", "claude's")
    dialect("atm1", "append", box.path, "arch", "atm's")
    assert "message_id" not in on_disk(box)[1]
    assert box.mark_read(taken).count == 2
    assert texts(places) == ["claude's", "atm's"]


def test_appending_again_is_harmless(places: Places) -> None:
    """Whoever does not know whether it went well tries once more; also after ATM 1.x moved the id."""
    box = inbox(places)
    made = letter("once")
    assert box.append(made).is_new
    before = box.path.read_bytes()
    assert not box.append(made).is_new
    assert box.path.read_bytes() == before
    moved = [{k: v for k, v in entry.items() if k not in ("message_id", "msg_id")} for entry in on_disk(box)]
    put(box, *moved)
    assert not box.append(made).is_new
    assert on_disk(box) == moved


def test_the_same_words_in_the_same_millisecond_are_two_messages(places: Places) -> None:
    """With times of their own: Claude Code would take out both for one."""
    box = inbox(places)
    assert box.append(letter("yes")).timestamp == "2026-11-16T12:00:00.123Z"
    assert box.append(letter("yes")).timestamp == "2026-11-16T12:00:00.124Z"
    assert texts(places) == ["yes", "yes"]
    check_strictly(box)


@pytest.mark.covers("FR-4.7")
def test_counting_costs_nothing_and_changes_nothing(places: Places) -> None:
    """Not the file, not its times, not what lies beside it."""
    box = inbox(places)
    put(box, *FOREIGN)
    before = box.path.stat(), sorted(box.path.parent.iterdir())
    assert box.pending_count() == box.pending_count() == 2
    assert (box.path.stat(), sorted(box.path.parent.iterdir())) == before
    dialect("claude", "append", box.path, "lead", "new")
    assert box.pending_count() == 3
    box.path.unlink()
    assert box.pending_count() == 0


def test_a_damaged_inbox_is_kept_aside_and_mail_goes_on(places: Places) -> None:
    """Whoever reads is told; the next who writes keeps it, whole, and tells where."""
    for damage in (b'[{"from":"x","te', b'{"an": "object"}', b"\xff\xfe", b"null"):
        box = inbox(places)
        box.path.parent.mkdir(exist_ok=True)
        box.path.write_bytes(damage)
        mail = box.read()
        assert mail.messages == ()
        assert [problem.kind for problem in mail.problems] == ["damaged"]
        [problem] = box.append(letter("on")).problems
        assert "mail goes on in a new inbox" in problem.text
        assert texts(places) == ["on"]
        [aside] = list(box.path.parent.glob("codex.json.corrupt-*"))
        assert aside.name in problem.text
        assert aside.read_bytes() == damage
        aside.unlink()
        check_strictly(box)


def test_a_damaged_inbox_can_be_rescued_before_anybody_writes(places: Places) -> None:
    """Claude Code would write over it."""
    box = inbox(places)
    box.path.parent.mkdir()
    box.path.write_bytes(b"{")
    aside = box.rescue()
    assert aside is not None
    assert aside.read_bytes() == b"{"
    assert on_disk(box) == []
    assert box.rescue() is None


def test_an_inbox_that_is_locked_is_left_alone(places: Places) -> None:
    """Until the time is up; then nothing has happened."""
    box = inbox(places, patience=AT_ONCE)
    put(box, *FOREIGN)
    before = box.path.read_bytes()
    lock = box.path.with_name("codex.json.lock")
    lock.mkdir()
    with pytest.raises(MailBusy):
        box.append(letter("x"))
    with pytest.raises(MailBusy):
        box.mark_read(box.read().messages)
    lock.rmdir()
    assert box.path.read_bytes() == before
    assert leftovers(places) == []


def test_the_folder_of_a_team_that_is_gone_is_not_made_anew(places: Places) -> None:
    """Neither by writing nor by reading; a folder without its roster is gone as well."""
    box = inbox(places)
    box.append(letter("x"))
    taken = box.read().messages
    places.config(TEAM).unlink()
    for act in (lambda: box.append(letter("y")), lambda: box.mark_read(taken), box.rescue):
        with pytest.raises(TeamGone, match=rf"no team {TEAM}"):
            act()
    assert len(on_disk(box)) == 1
    shutil.rmtree(places.team(TEAM))
    for look in (box.read, box.pending_count, lambda: box.append(letter("y")), box.rescue):
        with pytest.raises(TeamGone):
            look()
    assert list(places.teams_root.iterdir()) == []


def test_something_that_is_no_inbox_is_told_in_a_sentence(places: Places) -> None:
    """A folder in its place, a pipe that nobody writes to, a file where the inboxes should be."""
    box = inbox(places)
    box.path.mkdir(parents=True)
    with pytest.raises(StoreError, match=r"another kind.*Move it away"):
        box.read()
    with pytest.raises(StoreError, match="another kind"):
        box.append(letter("x"))
    box.path.rmdir()
    os.mkfifo(box.path)
    with pytest.raises(StoreError, match="another kind"):
        box.append(letter("x"))
    shutil.rmtree(box.path.parent)
    box.path.parent.write_text("")
    with pytest.raises(StoreError, match="another kind"):
        box.append(letter("x"))


def test_what_killed_writers_left_is_removed_when_it_is_old(places: Places) -> None:
    """A young one may have a living writer, who waits for a lock."""
    box = inbox(places)
    box.append(letter("x"))
    old, young, other = (
        box.path.with_name(f".{name}.laneway-tmp") for name in ("codex.json.1", "codex.json.2", "z.3")
    )
    for path in (old, young, other):
        path.write_text("half")
    os.utime(old, (time.time() - 3600, time.time() - 3600))
    os.utime(other, (time.time() - 3600, time.time() - 3600))
    inbox(places).append(letter("y"))
    assert (old.exists(), young.exists(), other.exists()) == (False, True, True)


@pytest.mark.covers("FR-20.2")
def test_each_of_the_others_adds_to_what_we_wrote_and_we_to_theirs(places: Places) -> None:
    """In turn, by their own programs; nothing is lost and every rule is kept."""
    box = inbox(places)
    said = []
    for number, name in enumerate(("claude", "atm", "atm1", "claude")):
        box.append(letter(f"ours {number}"))
        assert (
            dialect(name, "append", box.path, "other", f"{name} {number}").stdout == f"sent {name} {number}\n"
        )
        said += [f"ours {number}", f"{name} {number}"]
    assert [message.text for message in box.read().messages] == said
    check_strictly(box)
    assert box.mark_read(box.read().messages).count == 8
    assert dialect("claude", "append", box.path, "other", "more").stdout == "sent more\n"
    assert [entry["read"] for entry in on_disk(box)] == [True] * 8 + [False]
    assert dialect("claude", "mark", box.path).stdout == "read more\n"
    assert on_disk(box) == [], "Claude Code takes out what was read"
    assert json.loads(box.path.read_text()) == []
