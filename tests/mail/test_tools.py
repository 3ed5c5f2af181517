"""The mail tools: what they write and return, what they refuse, and that every call is noted (FR-4)."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from laneway.core.tools import Caller
from tests.mail.tools_support import TEAM, Desk, Town, entry


@pytest.fixture
def town(tmp_path: Path) -> Town:
    town = Town(tmp_path)
    town.found(TEAM, "team-lead", "ann", "bob")
    return town


# ── sending ────────────────────────────────────────────────────────────────


@pytest.mark.covers("FR-4.2", "FR-4.5", "FR-9.1")
async def test_what_is_sent_stands_in_the_inbox_for_all_three_programs_under_the_callers_name(
    town: Town,
) -> None:
    """The sender is the caller, the summary is made, nothing is cut, and the result names the message."""
    desk, text = Desk(town), "Hello Bob,\n" + "é" * 9000
    sent = await desk.good("ann", "atm_send", to="bob", message=text)
    (found,) = town.entries("bob")
    assert (found["from"], found["text"], found["read"]) == ("ann", text, False)
    assert found["summary"] == "Hello Bob,..."
    assert sent == {
        "to": "bob@crew",
        "message_id": found["message_id"],
        "outcome": "delivered",
        "is_gone": False,
    }
    (line,) = desk.noted
    assert line == {
        "event_type": "atm_send",
        "identity": "ann",
        "recipient": "bob@crew",
        "message_summary": text[:200],
        "outcome": "delivered",
    }


@pytest.mark.covers("FR-4.2")
async def test_agent_at_team_reaches_another_team_which_sees_where_it_came_from(town: Town) -> None:
    """Also the lead, whose name nobody may send under."""
    town.found("other", "team-lead", "zoe")
    desk = Desk(town)
    await desk.good("ann", "atm_send", to="zoe@other", message="hi", summary="greeting", priority="urgent")
    await desk.good("ann", "atm_send", to="team-lead@other", message="hi")
    (found,) = town.entries("zoe", "other")
    assert (found["summary"], found["source_team"]) == ("greeting", TEAM)
    assert found["metadata"]["laneway"] == {"priority": "urgent"}
    assert len(town.entries("team-lead", "other")) == 1
    assert town.entries("zoe") == []


@pytest.mark.covers("FR-4.2", "FR-4.6")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"to": "nobody", "message": "x"}, "Nobody called nobody is in the team crew"),
        ({"to": "ann@nowhere", "message": "x"}, "There is no team nowhere"),
        ({"to": "a@b@c", "message": "x"}, "more than one @"),
        ({"to": "@crew", "message": "x"}, "lacks a name"),
        ({"to": "bob@", "message": "x"}, "lacks a name"),
        ({"to": "../../etc/passwd", "message": "x"}, "cannot be the name"),
        ({"to": "bob@../crew", "message": "x"}, "cannot be the name of a team"),
        ({"to": "bob", "message": " \n"}, "is empty"),
        ({"to": "bob", "message": "a\0b"}, "NUL"),
        ({"to": "bob", "message": "x" * (1024 * 1024 + 1)}, "1048577 bytes"),
        ({"to": "bob", "message": "\ud83d"}, "no text"),
        ({"to": "bob"}, "atm_send needs message."),
        ({"to": 7, "message": "x"}, "to must be a string."),
        ({"to": "bob", "message": "x", "priority": "asap"}, "priority must be one of urgent, normal, low."),
        ({"to": "bob", "message": "x", "from": "team-lead"}, "atm_send has no argument from."),
        ({"to": "bob", "message": "x", "identity": "team-lead"}, "atm_send has no argument identity."),
    ],
)
async def test_what_cannot_be_sent_is_refused_in_a_sentence_and_nothing_is_written(
    town: Town, arguments: dict[str, Any], sentence: str
) -> None:
    """Nobody can say who he is by an argument; no folder is made for a team that is not there."""
    desk = Desk(town)
    before = sorted(town.places.teams_root.rglob("*"))
    assert sentence in await desk.refused("ann", "atm_send", **arguments)
    assert sorted(town.places.teams_root.rglob("*")) == before
    # What never was a call is the model's to mend; every call is noted, with why it was refused.
    assert all(line["outcome"].startswith("refused: ") for line in desk.noted)


async def test_whoever_is_unknown_is_told_whom_there_is(town: Town) -> None:
    """So that a model can correct itself."""
    assert "In it now: team-lead, ann, bob." in await Desk(town).refused(
        "ann", "atm_send", to="Bob", message="x"
    )


async def test_without_an_identity_there_is_no_mail(town: Town) -> None:
    """A session of a door that has no names."""
    assert "no identity" in await Desk(town).refused(None, "atm_send", to="bob", message="x")


async def test_a_locked_inbox_keeps_the_message_and_says_so(town: Town) -> None:
    """Claude Code's lock is a folder; while somebody holds it, nothing is lost and nothing is repeated."""
    desk = Desk(town, budget_s=0.05)
    lock = town.places.inboxes(TEAM) / "bob.json.lock"
    lock.mkdir()
    result = await desk.call("ann", "atm_send", to="bob", message="later")
    assert result.data is not None
    assert (result.is_error, result.data["outcome"]) == (False, "spooled")
    assert "Do not send it again" in result.text
    assert [line["outcome"] for line in desk.noted] == ["spooled"]
    lock.rmdir()
    await desk.good("ann", "atm_send", to="bob", message="now")
    assert [found["text"] for found in town.entries("bob")] == ["later", "now"]


# ── to all ─────────────────────────────────────────────────────────────────


@pytest.mark.covers("FR-4.4", "FR-4.6")
async def test_a_broadcast_reaches_every_other_member_once(town: Town) -> None:
    """Not the sender; one id for all; a member that stands in the roster twice gets it once."""
    town.enrol(TEAM, "team-lead", "ann", "bob", "bob")
    desk = Desk(town)
    data = await desk.good("ann", "atm_broadcast", message="stand-up at ten")
    assert [each["to"] for each in data["sent"]] == ["team-lead@crew", "bob@crew"]
    assert data["failed"] == []
    found = [*town.entries("bob"), *town.entries("team-lead")]
    assert [each["message_id"] for each in found] == [data["message_id"]] * 2
    assert town.entries("ann") == []
    assert [(line["recipient"], line["outcome"]) for line in desk.noted] == [("*@crew", "sent to 2 of 2")]


@pytest.mark.covers("FR-4.4")
async def test_a_broadcast_to_another_team_reaches_all_of_it(town: Town) -> None:
    """Also the member there who is called as the sender is here: that is somebody else."""
    town.found("other", "ann", "zoe")
    data = await Desk(town).good("ann", "atm_broadcast", message="hello", team="other")
    assert [each["to"] for each in data["sent"]] == ["ann@other", "zoe@other"]


@pytest.mark.covers("FR-4.4")
async def test_who_did_not_get_a_broadcast_is_named_with_the_reason(town: Town) -> None:
    """The others have it; only if nobody has is it an error."""
    town.enrol(TEAM, "ann", "bob", "../evil")
    result = await Desk(town).call("ann", "atm_broadcast", message="hello")
    assert result.data is not None
    assert not result.is_error
    assert [each["to"] for each in result.data["sent"]] == ["bob@crew"]
    assert [each["to"] for each in result.data["failed"]] == ["../evil@crew"]
    assert "../evil@crew did not get it: " in result.notes[0]
    town.enrol(TEAM, "ann", "../evil")
    assert (await Desk(town).call("ann", "atm_broadcast", message="hello")).is_error


async def test_a_broadcast_to_nobody_is_an_error(town: Town) -> None:
    """As in ATM: whoever is alone wants to know it. A team that is not there is one, too."""
    town.enrol(TEAM, "ann")
    assert "Nobody but ann" in await Desk(town).refused("ann", "atm_broadcast", message="hello")
    assert "no team gone" in await Desk(town).refused("ann", "atm_broadcast", message="hello", team="gone")


# ── counting ───────────────────────────────────────────────────────────────


@pytest.mark.covers("FR-4.7")
async def test_counting_changes_nothing_on_the_disk(town: Town) -> None:
    """Not a byte, not a time, no lock left; the count follows what others write."""
    town.drop("ann", entry("bob", "one"), entry("bob", "two", read=True), entry("bob", "three", msg_id=None))
    desk = Desk(town)

    def seen() -> list[tuple[str, int, str]]:
        return [
            (path.name, path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
            for path in sorted(town.places.teams_root.rglob("*"))
            if path.is_file()
        ]

    before = seen()
    assert (await desk.good("ann", "atm_pending_count"))["unread"] == 2
    assert (await desk.good("bob", "atm_pending_count"))["unread"] == 0
    assert seen() == before
    await desk.good("bob", "atm_send", to="ann", message="four")
    assert (await desk.good("ann", "atm_pending_count"))["unread"] == 3


async def test_a_call_that_is_given_up_is_noted_as_such(town: Town) -> None:
    """Nobody knows whether it was done; that it was asked for is known."""
    desk = Desk(town)
    calling = asyncio.ensure_future(
        desk.mail.send(Caller(agent_id="a", identity="ann"), {"to": "bob", "message": "x"})
    )
    await asyncio.sleep(0)
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    assert [line["outcome"] for line in desk.noted] == ["given up by the caller"]
