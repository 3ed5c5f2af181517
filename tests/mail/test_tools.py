"""The mail tools: what they write and return, what they refuse, and that every call is noted (FR-4)."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from laneway.core.tools import Caller
from tests.mail.tools_support import TEAM, MailUser, TeamFiles, entry


@pytest.fixture
def team_files(tmp_path: Path) -> TeamFiles:
    team_files = TeamFiles(tmp_path)
    team_files.create_team(TEAM, "team-lead", "ann", "bob")
    return team_files


# ── sending ────────────────────────────────────────────────────────────────


@pytest.mark.covers("FR-4.2", "FR-4.5", "FR-9.1")
async def test_what_is_sent_stands_in_the_inbox_for_all_three_programs_under_the_callers_name(
    team_files: TeamFiles,
) -> None:
    """The sender is the caller, the summary is made, nothing is cut, and the result names the message."""
    user, text = MailUser(team_files), "Hello Bob,\n" + "é" * 9000
    sent = await user.good("ann", "atm_send", to="bob", message=text)
    (found,) = team_files.entries("bob")
    assert (found["from"], found["text"], found["read"]) == ("ann", text, False)
    assert found["summary"] == "Hello Bob,..."
    assert sent == {
        "to": "bob@crew",
        "message_id": found["message_id"],
        "outcome": "delivered",
        "is_gone": False,
    }
    (line,) = user.noted
    assert line == {
        "event_type": "atm_send",
        "identity": "ann",
        "recipient": "bob@crew",
        "message_summary": text[:200],
        "outcome": "delivered",
    }


@pytest.mark.covers("FR-4.2")
async def test_agent_at_team_reaches_another_team_which_sees_where_it_came_from(
    team_files: TeamFiles,
) -> None:
    """Also the lead, whose name nobody may send under."""
    team_files.create_team("other", "team-lead", "zoe")
    user = MailUser(team_files)
    await user.good("ann", "atm_send", to="zoe@other", message="hi", summary="greeting", priority="urgent")
    await user.good("ann", "atm_send", to="team-lead@other", message="hi")
    (found,) = team_files.entries("zoe", "other")
    assert (found["summary"], found["source_team"]) == ("greeting", TEAM)
    assert found["metadata"]["laneway"] == {"priority": "urgent"}
    assert len(team_files.entries("team-lead", "other")) == 1
    assert team_files.entries("zoe") == []


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
    team_files: TeamFiles, arguments: dict[str, Any], sentence: str
) -> None:
    """Nobody can say who he is by an argument; no folder is made for a team that is not there."""
    user = MailUser(team_files)
    before = sorted(team_files.places.teams_root.rglob("*"))
    assert sentence in await user.refused("ann", "atm_send", **arguments)
    assert sorted(team_files.places.teams_root.rglob("*")) == before
    # What never was a call is the model's to mend; every call is noted, with why it was refused.
    assert all(line["outcome"].startswith("refused: ") for line in user.noted)


async def test_whoever_is_unknown_is_told_whom_there_is(team_files: TeamFiles) -> None:
    """So that a model can correct itself."""
    assert "In it now: team-lead, ann, bob." in await MailUser(team_files).refused(
        "ann", "atm_send", to="Bob", message="x"
    )


async def test_without_an_identity_there_is_no_mail(team_files: TeamFiles) -> None:
    """A session of a door that has no names."""
    assert "no identity" in await MailUser(team_files).refused(None, "atm_send", to="bob", message="x")


async def test_a_locked_inbox_keeps_the_message_and_says_so(team_files: TeamFiles) -> None:
    """Claude Code's lock is a folder; while somebody holds it, nothing is lost and nothing is repeated."""
    user = MailUser(team_files, budget_s=0.05)
    lock = team_files.places.inboxes(TEAM) / "bob.json.lock"
    lock.mkdir()
    result = await user.call("ann", "atm_send", to="bob", message="later")
    assert result.data is not None
    assert (result.is_error, result.data["outcome"]) == (False, "spooled")
    assert "Do not send it again" in result.text
    assert [line["outcome"] for line in user.noted] == ["spooled"]
    lock.rmdir()
    await user.good("ann", "atm_send", to="bob", message="now")
    assert [found["text"] for found in team_files.entries("bob")] == ["later", "now"]


# ── to all ─────────────────────────────────────────────────────────────────


@pytest.mark.covers("FR-4.4", "FR-4.6")
async def test_a_broadcast_reaches_every_other_member_once(team_files: TeamFiles) -> None:
    """Not the sender; one id for all; a member that stands in the roster twice gets it once."""
    team_files.enrol(TEAM, "team-lead", "ann", "bob", "bob")
    user = MailUser(team_files)
    data = await user.good("ann", "atm_broadcast", message="stand-up at ten")
    assert [each["to"] for each in data["sent"]] == ["team-lead@crew", "bob@crew"]
    assert data["failed"] == []
    found = [*team_files.entries("bob"), *team_files.entries("team-lead")]
    assert [each["message_id"] for each in found] == [data["message_id"]] * 2
    assert team_files.entries("ann") == []
    assert [(line["recipient"], line["outcome"]) for line in user.noted] == [("*@crew", "sent to 2 of 2")]


@pytest.mark.covers("FR-4.4")
async def test_a_broadcast_to_another_team_reaches_all_of_it(team_files: TeamFiles) -> None:
    """Also the member there who is called as the sender is here: that is somebody else."""
    team_files.create_team("other", "ann", "zoe")
    data = await MailUser(team_files).good("ann", "atm_broadcast", message="hello", team="other")
    assert [each["to"] for each in data["sent"]] == ["ann@other", "zoe@other"]


@pytest.mark.covers("FR-4.4")
async def test_who_did_not_get_a_broadcast_is_named_with_the_reason(team_files: TeamFiles) -> None:
    """The others have it; only if nobody has is it an error."""
    team_files.enrol(TEAM, "ann", "bob", "../evil")
    result = await MailUser(team_files).call("ann", "atm_broadcast", message="hello")
    assert result.data is not None
    assert not result.is_error
    assert [each["to"] for each in result.data["sent"]] == ["bob@crew"]
    assert [each["to"] for each in result.data["failed"]] == ["../evil@crew"]
    assert "../evil@crew did not get it: " in result.notes[0]
    team_files.enrol(TEAM, "ann", "../evil")
    assert (await MailUser(team_files).call("ann", "atm_broadcast", message="hello")).is_error


async def test_a_broadcast_to_nobody_is_an_error(team_files: TeamFiles) -> None:
    """As in ATM: whoever is alone wants to know it. A team that is not there is one, too."""
    team_files.enrol(TEAM, "ann")
    assert "Nobody but ann" in await MailUser(team_files).refused("ann", "atm_broadcast", message="hello")
    assert "no team gone" in await MailUser(team_files).refused(
        "ann", "atm_broadcast", message="hello", team="gone"
    )


# ── counting ───────────────────────────────────────────────────────────────


@pytest.mark.covers("FR-4.7")
async def test_counting_changes_nothing_on_the_disk(team_files: TeamFiles) -> None:
    """Not a byte, not a time, no lock left; the count follows what others write."""
    team_files.drop(
        "ann", entry("bob", "one"), entry("bob", "two", read=True), entry("bob", "three", msg_id=None)
    )
    user = MailUser(team_files)

    def seen() -> list[tuple[str, int, str]]:
        return [
            (path.name, path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
            for path in sorted(team_files.places.teams_root.rglob("*"))
            if path.is_file()
        ]

    before = seen()
    assert (await user.good("ann", "atm_pending_count"))["unread"] == 2
    assert (await user.good("bob", "atm_pending_count"))["unread"] == 0
    assert seen() == before
    await user.good("bob", "atm_send", to="ann", message="four")
    assert (await user.good("ann", "atm_pending_count"))["unread"] == 3


async def test_a_call_that_is_given_up_is_noted_as_such(team_files: TeamFiles) -> None:
    """Nobody knows whether it was done; that it was asked for is known."""
    user = MailUser(team_files)
    calling = asyncio.ensure_future(
        user.mail.send(Caller(agent_id="a", identity="ann"), {"to": "bob", "message": "x"})
    )
    await asyncio.sleep(0)
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    assert [line["outcome"] for line in user.noted] == ["given up by the caller"]
