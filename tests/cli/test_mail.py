"""`laneway mail`: what people and scripts send and read, who they may be, and what they are told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from laneway.cli import mail_show
from laneway.mail.draft import draft
from laneway.mail.locks import Patience
from laneway.mail.names import Address
from laneway.mail.post import Post
from laneway.store.layout import sessions_root
from laneway.store.store import Store
from tests.cli.support import Ran, laneway
from tests.mail.tools_support import TEAM, TeamFiles, entry


class Desk:
    """A home with a team, and `laneway mail` in it."""

    def __init__(self, root: Path) -> None:
        self.team_files = TeamFiles(root)
        self.env = {"ATM_HOME": str(root), "ATM_TEAM": TEAM}
        self.sessions = sessions_root(environment={"ATM_HOME": str(root)})

    async def mail(self, *words: str, stdin: str | None = None, **env: str) -> Ran:
        return await laneway("mail", *words, env={**self.env, **env}, stdin=stdin)

    async def data(self, *words: str, **env: str) -> dict[str, Any]:
        ran = await self.mail(*words, "--json", **env)
        assert (ran.code, ran.err) == (0, "")
        found: dict[str, Any] = json.loads(ran.out)
        return found

    async def refused(self, *words: str, code: int = 1, stdin: str | None = None, **env: str) -> str:
        ran = await self.mail(*words, stdin=stdin, **env)
        assert (ran.code, ran.out) == (code, ""), ran.err
        return ran.err

    def audit(self, team: str = TEAM) -> list[dict[str, Any]]:
        return list(Store(self.sessions, team).audit.read().lines)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.team_files.create_team(TEAM, "team-lead", "worker")
    return desk


# ── send and read ──────────────────────────────────────────────────────────


@pytest.mark.covers("FR-20.2", "FR-4.6")
async def test_what_one_sends_another_reads_once(desk: Desk) -> None:
    """In processes of their own, on the same files; every step is in the audit log."""
    desk.team_files.enrol(TEAM, "team-lead", "worker", "ann", ann={"laneway": {"pid": 2**22 + 1}})
    sent = await desk.mail("send", "ann", "the tests\nare green", "--as", "bob", "--priority", "urgent")
    assert sent.code == 0
    (found,) = desk.team_files.entries("ann")
    assert sent.out == f"Delivered to ann@crew ({found['message_id']}).\n"
    assert (await desk.mail("pending", "--as", "ann")).out == "1\n"
    read = await desk.mail("read", "--as", "ann")
    assert read.out == (
        f"bob@crew  {found['timestamp']}  urgent\n  {found['message_id']}\n  the tests\n  are green\n"
    )
    assert (await desk.mail("read", "--as", "ann")).out == "No mail for ann in team crew.\n"
    assert [(line["event_type"], line["identity"], line["outcome"]) for line in desk.audit()] == [
        ("atm_send", "bob", "delivered"),
        ("atm_pending_count", "ann", "1 unread"),
        ("atm_read", "ann", "1 read, 0 left"),
        ("atm_read", "ann", "0 read, 0 left"),
    ]


async def test_the_text_can_come_from_standard_input(desk: Desk) -> None:
    """By `-`, or where there is a pipe; the newline at its end is the shell's."""
    for words in (("-",), ()):
        assert (await desk.mail("send", "worker", *words, "--as", "ann", stdin="one\ntwo\n")).code == 0
    assert [found["text"] for found in desk.team_files.entries("worker")] == ["one\ntwo"] * 2


async def test_programs_get_data_from_every_action(desk: Desk) -> None:
    """One object each, with what was done."""
    who = ("--as", "ann")
    sent = await desk.data("send", "worker", "hi", "--summary", "s", *who)
    assert (sent["action"], sent["to"], sent["outcome"]) == ("send", "worker@crew", "delivered")
    spread = await desk.data("broadcast", "to all", *who)
    assert [each["to"] for each in spread["sent"]] == ["team-lead@crew", "worker@crew"]
    desk.team_files.drop(
        "ann", entry("worker", "a"), entry("zoe", "b"), entry("worker", "c", "2027-01-01T00:00:00Z")
    )
    assert await desk.data("pending", *who) == {
        "action": "pending",
        "unread": 3,
        "identity": "ann",
        "team": TEAM,
    }
    some = await desk.data("read", *who, "--from", "worker", "--since", "2026-12-31T00:00:00Z", "--no-mark")
    assert [row["text"] for row in some["messages"]] == ["c"]
    one = await desk.data("read", *who, "--limit", "1")
    assert ([row["message"] for row in one["messages"]], one["remaining"]) == (["a"], 2)
    again = await desk.data("read", *who, "--id", one["messages"][0]["message_id"])
    assert again["messages"][0]["read"] is True
    assert len((await desk.data("read", *who, "--all"))["messages"]) == 3
    roll = await desk.data("members")
    assert [(row["name"], row["type"], row["is_lead"]) for row in roll["members"]] == [
        ("team-lead", "x", True),
        ("worker", "x", False),
    ]


async def test_a_long_message_is_shown_whole_and_says_nothing_to_the_terminal(desk: Desk) -> None:
    """No cut for people; no escape sequence gets through, and no line of a body passes for a head."""
    forged = "x" * 5000 + "\n\x1b[2Jworker  2026-11-16T05:00:00.000Z\n  trust me"
    desk.team_files.drop("ann", entry("mallory", forged))
    read = await desk.mail("read", "--as", "ann")
    assert "x" * 5000 in read.out
    assert "\x1b" not in read.out
    heads = [line for line in read.out.splitlines() if not line.startswith("  ")]
    assert heads == ["mallory  2026-11-16T05:00:00.000Z"]


# ── who one is ─────────────────────────────────────────────────────────────


async def test_who_one_is_comes_from_the_flag_the_variable_or_the_config(desk: Desk, tmp_path: Path) -> None:
    """In this order; without any of them nobody is guessed."""
    assert "Say who you are" in await desk.refused("send", "worker", "x", code=2)
    config = tmp_path / ".config" / "atm" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[laneway]\nidentity = "from-config"\n')
    assert (await desk.mail("send", "worker", "1")).code == 0
    assert (await desk.mail("send", "worker", "2", ATM_IDENTITY="from-variable")).code == 0
    assert (await desk.mail("send", "worker", "3", "--as", "from-flag", ATM_IDENTITY="x")).code == 0
    assert [found["from"] for found in desk.team_files.entries("worker")] == [
        "from-config",
        "from-variable",
        "from-flag",
    ]


@pytest.mark.covers("FR-4.5")
async def test_a_name_that_a_living_process_has_cannot_send_or_mark_but_anybody_may_look(desk: Desk) -> None:
    """The way out is said; the refusal is in the audit log."""
    desk.team_files.drop("ann", entry("worker", "for ann alone"))
    claim = Store(desk.sessions, TEAM).claim("ann")
    try:
        assert "in use by process" in await desk.refused("send", "worker", "I am ann", "--as", "ann")
        assert "With --no-mark you can look all the same." in await desk.refused("read", "--as", "ann")
        looked = await desk.data("read", "--as", "ann", "--no-mark")
        assert [row["text"] for row in looked["messages"]] == ["for ann alone"]
        assert (await desk.data("pending", "--as", "ann"))["unread"] == 1
    finally:
        claim.release()
    assert desk.team_files.entries("worker") == []
    assert [found["read"] for found in desk.team_files.entries("ann")] == [False]
    assert [line["outcome"].partition(":")[0] for line in desk.audit()][:2] == ["refused", "refused"]


@pytest.mark.covers("FR-4.5")
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("worker", "registered worker in the team crew"),
        ("team-lead", "reserved"),
        ("../ann", "cannot be the name"),
    ],
)
async def test_names_of_others_and_no_names_are_refused(desk: Desk, name: str, sentence: str) -> None:
    """Also for reading, where it would mark."""
    assert sentence in await desk.refused("send", "worker", "x", "--as", name)
    assert sentence in await desk.refused("read", "--as", name)
    assert desk.team_files.entries("worker") == []


async def test_the_leads_inbox_can_be_looked_into(desk: Desk) -> None:
    """Only looked: what is there is Claude Code's to read."""
    desk.team_files.drop("team-lead", entry("worker", "done"))
    looked = await desk.data("read", "--as", "team-lead", "--no-mark")
    assert [row["text"] for row in looked["messages"]] == ["done"]


async def test_the_team_of_a_claude_session_keeps_no_state_of_ours(desk: Desk) -> None:
    """It is an address, new each time. What we keep goes under the default."""
    desk.team_files.create_team("session-0a1b2c3d", "team-lead")
    ran = await desk.mail("send", "team-lead", "hi", "--team", "session-0a1b2c3d", "--as", "ann", ATM_TEAM="")
    assert ran.code == 0
    assert len(desk.team_files.entries("team-lead", "session-0a1b2c3d")) == 1
    assert {path.name for path in desk.sessions.iterdir()} == {"default"}
    assert [line["event_type"] for line in desk.audit("default")] == ["atm_send"]


# ── what cannot be done ────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "stdin", "code", "sentence"),
    [
        (("send", "nobody", "x"), None, 1, "Nobody called nobody is in the team crew"),
        (("send", "bob@nowhere", "x"), None, 1, "There is no team nowhere"),
        (("send", "worker", "  "), None, 1, "The message is empty"),
        (("send", "worker", "-"), "a\0b", 1, "NUL"),
        (("send", "worker", "-"), "x" * (1024 * 1024 + 2), 1, "more than 1048576 bytes"),
        (("broadcast", "x", "--team", "nowhere"), None, 1, "There is no team nowhere"),
        (("read", "--since", "yesterday"), None, 2, "not a time such as"),
        (("read", "--limit", "0"), None, 2, "not a number of messages"),
        (("read", "--id", "gone"), None, 1, "There is no message gone"),
        (("send",), None, 2, "required: TO"),
        ((), None, 2, "required: ACTION"),
    ],
)
async def test_what_cannot_be_done_is_said_in_a_sentence(
    desk: Desk, words: tuple[str, ...], stdin: str | None, code: int, sentence: str
) -> None:
    """On standard error, with an exit code that scripts can tell apart."""
    who = ("--as", "ann") if words else ()
    assert sentence in await desk.refused(*words, *who, code=code, stdin=stdin)
    assert desk.team_files.entries("worker") == []


async def test_a_team_that_nobody_is_in_yet_says_how_sessions_join(desk: Desk) -> None:
    """Whether it was never made or is empty; it is no error, and nothing is made by looking."""
    desk.team_files.create_team("empty")
    for team in ("nowhere", "empty"):
        ran = await desk.mail("members", "--team", team)
        assert (ran.code, ran.err, ran.out.count("\n")) == (0, "", 1)
        assert f"Nobody is in team {team} yet. A session joins when it starts" in ran.out
        assert (await desk.data("members", "--team", team))["members"] == []
    assert not desk.team_files.places.team("nowhere").exists()


async def test_mail_to_nobody_says_what_to_do(desk: Desk) -> None:
    """Who is there; in a team that nobody has made yet, how a session joins it."""
    named = await desk.refused("send", "reviewer", "hi", "--as", "ann")
    assert "Nobody called reviewer is in the team crew. In it now: team-lead, worker.\n" in named
    fresh = await desk.refused("send", "reviewer", "hi", "--as", "ann", "--team", "default")
    assert "Nobody called reviewer is in the team default. Nobody is in it now." in fresh
    assert "ask Claude Code, or any client of `laneway mcp`, for a Codex session" in fresh
    assert "the identity reviewer" in fresh


async def test_mail_that_found_a_locked_inbox_goes_out_with_the_next_command(desk: Desk) -> None:
    """Whatever that is; and whoever sent it was told so."""
    lock = desk.team_files.places.inboxes(TEAM) / "worker.json.lock"
    lock.mkdir()
    post = Post(desk.team_files.places, patience=Patience(budget_s=0.05))
    message = draft("ann", "kept", team=TEAM)
    receipt = await asyncio.to_thread(post.send, message, Address("worker", TEAM))
    told = {"to": str(receipt.to), "message_id": receipt.message_id, "outcome": receipt.outcome}
    assert "The message is kept" in mail_show.sent(told)
    lock.rmdir()
    assert (await desk.mail("members")).code == 0
    assert [found["text"] for found in desk.team_files.entries("worker")] == ["kept"]
