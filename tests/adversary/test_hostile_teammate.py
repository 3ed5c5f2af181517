"""A teammate's name, inbox and mail cannot be had through Laneway, whatever a session is called.

The real server on the real Codex; the roster is written by another program, as Claude Code writes it.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Ran, start
from tests.core.support import until
from tests.doors.mcp.support import Client, Message, Stage, stage
from tests.doors.mcp.views import QUIET, audit, texts
from tests.mail.tools_support import TEAM, TeamFiles, entry

ENV = {**QUIET, "ATM_TEAM": TEAM, "LANEWAY_LOG_LEVEL": "warning"}
MANUAL = {**ENV, "LANEWAY_AUTO_MAIL": "false"}
SECRET = "the launch code is 0000"
CONFLICT = -32001

SAME_TO_SOMEBODY = [
    ("bob", "bob"),
    ("Bob", "bob"),
    ("bob", "BOB"),
    ("c-x", "c.x"),
    ("C-X", "c x"),
    ("bob", "ｂｏｂ"),
    ("fin", "\N{LATIN SMALL LIGATURE FI}n"),
    ("b-b", "b\N{LATIN SMALL LETTER O WITH DIAERESIS}b"),
]
"""A name that is asked for, and a member's: one file, one file on some disks, or one to a reader."""


@pytest.fixture
def team_files(tmp_path: Path) -> TeamFiles:
    team_files = TeamFiles(tmp_path)
    team_files.create_team(TEAM, "team-lead", "worker")
    return team_files


def join(team_files: TeamFiles, *names: str) -> None:
    """Somebody else registers these, beside whoever is there: in place, as Claude Code does."""
    path = team_files.places.config(TEAM)
    team = json.loads(path.read_bytes())
    team["members"] += [{"agentId": f"{name}@{TEAM}", "name": name, "agentType": "x"} for name in names]
    path.write_text(json.dumps(team))


def members(team_files: TeamFiles) -> list[str]:
    return [member["name"] for member in json.loads(team_files.places.config(TEAM).read_bytes())["members"]]


def joined(team_files: TeamFiles) -> list[str]:
    """Everybody but those who were there from the start."""
    return [name for name in members(team_files) if name not in ("team-lead", "worker")]


def unread(team_files: TeamFiles, agent: str) -> list[str]:
    return [found["text"] for found in team_files.entries(agent) if not found["read"]]


async def laneway(here: Stage, *words: str, **env: str) -> Ran:
    """A command, to its end."""
    async with asyncio.timeout(60):
        process = await start(*words, env={**here.environment, **ENV, **env}, cwd=here.work)
        out, err = await process.communicate()
        assert process.returncode is not None
        return Ran(process.returncode, out, err)


async def refused(client: Client, tool: str, /, **arguments: Any) -> Message:
    """A conflict of names, told in one sentence or two."""
    error = await client.error(tool, **arguments)
    assert (error["code"], error["data"]["error_source"]) == (CONFLICT, "proxy"), error
    assert "registered" in error["message"]
    assert "\n" not in error["message"]
    return error


# ── opening ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("asked", "member"), SAME_TO_SOMEBODY)
async def test_a_session_cannot_take_a_teammates_name_or_inbox(
    tmp_path: Path, team_files: TeamFiles, asked: str, member: str
) -> None:
    """Refused when it is opened; nothing is read, marked, sent or registered, and no thread is started."""
    join(team_files, member)
    team_files.drop(member, entry("worker", SECRET))
    async with stage(tmp_path) as here, here.server("mcp", env=ENV) as client:
        error = await refused(client, "codex", prompt="%say hi", identity=asked)
        assert error["data"]["member"] == member
        await refused(client, "atm_read", identity=asked)
        await refused(client, "atm_pending_count", identity=asked)
        await refused(client, "atm_send", identity=asked, to="worker", message="it is me")
        await refused(client, "atm_broadcast", identity=asked, message="it is me")
        read = await client.ask("resources/read", {"uri": f"mail://{TEAM}/{asked}"})
        assert read["error"]["code"] == CONFLICT
        subscribed = await client.ask("resources/subscribe", {"uri": f"mail://{TEAM}/{asked}"})
        assert subscribed["error"]["code"] == -32602
        assert (await client.content("agent_status"))["identities"] == {}
        # The name is not kept from anybody by having been asked for.
        assert (await client.content("codex", prompt="%say hi", identity="dev"))["identity"] == "dev"
    assert joined(team_files) == [member]
    assert unread(team_files, member) == [SECRET]
    assert team_files.entries("worker") == []
    assert here.requests
    assert not any(SECRET in str(request) for request in here.requests)


async def test_the_default_name_and_its_numbers_pass_over_those_that_teammates_have(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Nobody asked for one of them, so nobody is refused."""
    join(team_files, "codex", "Codex-2", "codex.3")
    async with stage(tmp_path) as here, here.server("mcp", env=ENV) as client:
        taken = [(await client.content("codex", prompt="%say hi"))["identity"] for _ in range(2)]
    assert taken == ["codex-4", "codex-5"]


@pytest.mark.parametrize(("asked", "member"), SAME_TO_SOMEBODY[:4])
async def test_a_server_for_a_teammates_name_does_not_start(
    tmp_path: Path, team_files: TeamFiles, asked: str, member: str
) -> None:
    """`--identity` fails before anybody is greeted, and says why."""
    join(team_files, member)
    async with stage(tmp_path) as here:
        done = await laneway(here, "mcp", "--identity", asked)
        assert (done.code, done.out) == (1, "")
        assert f"registered {member} in the team {TEAM}" in done.err
        assert "Traceback" not in done.err


async def test_a_session_cannot_be_had_back_under_a_name_that_is_a_teammates_by_now(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Not by its id, not by its thread, not by `--resume`; once the teammate has left, it can."""
    async with stage(tmp_path) as here:
        async with here.server("mcp", env=ENV) as client:
            session = await client.content("codex", prompt="%say hi", identity="dev")
        join(team_files, "DEV")
        agent_id, thread_id = session["agent_id"], session["threadId"]
        async with here.server("mcp", env=ENV) as client:
            await refused(client, "codex", agent_id=agent_id, prompt="%say again")
            await refused(client, "codex", agent_id=agent_id, identity="dev", prompt="%say again")
            # It was closed, not killed: a reply to its thread must not open it either.
            assert (await client.error("codex-reply", threadId=thread_id, prompt="x"))["code"] == -32003
        async with here.server("mcp", "--resume", agent_id, env=ENV) as client:
            await refused(client, "codex", prompt="%say again")
            team_files.enrol(TEAM, "team-lead", "worker")
            again = await client.content("codex", prompt="%say again")
            assert (again["agent_id"], again["identity"]) == (agent_id, "dev")


async def test_a_reply_does_not_revive_a_killed_session_under_a_teammates_name(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """`codex-reply` resumes what a dead process left; that is an opening, too."""
    async with stage(tmp_path) as here:
        async with here.server("mcp", env=ENV) as client:
            session = await client.content("codex", prompt="%say hi", identity="dev")
            client.process.kill()
            await client.process.wait()
        team_files.enrol(TEAM, "team-lead", "worker", "dev")
        async with here.server("mcp", env=ENV) as client:
            await refused(client, "codex-reply", agent_id=session["agent_id"], prompt="%say again")
            await refused(client, "codex-reply", threadId=session["threadId"], prompt="%say again")


async def test_two_sessions_of_one_server_cannot_differ_in_case_alone(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """On some disks they would have one inbox."""
    async with stage(tmp_path) as here, here.server("mcp", env=MANUAL) as client:
        session = await client.content("codex", prompt="%say hi", identity="dev")
        error = await client.error("codex", prompt="%say hi", identity="Dev")
        assert (error["code"], error["data"]["conflicting_agent_id"]) == (CONFLICT, session["agent_id"])
        assert (await client.error("atm_read", identity="DEV"))["code"] == CONFLICT


# ── from a terminal ────────────────────────────────────────────────────────


@pytest.mark.parametrize(("asked", "member"), SAME_TO_SOMEBODY[:5])
async def test_nobody_sends_or_marks_as_a_teammate_from_a_terminal(
    tmp_path: Path, team_files: TeamFiles, asked: str, member: str
) -> None:
    """Looking without a mark is free for every name, as it says."""
    join(team_files, member)
    team_files.drop(member, entry("worker", SECRET))
    async with stage(tmp_path) as here:
        for words in (("send", "worker", "it is me"), ("broadcast", "it is me"), ("read",)):
            done = await laneway(here, "mail", *words, "--as", asked)
            assert (done.code, done.out) == (1, ""), done
            assert f"registered {member} in the team {TEAM}" in done.err
        if asked == member:
            assert SECRET in (await laneway(here, "mail", "read", "--as", asked, "--no-mark")).out
    assert unread(team_files, member) == [SECRET]
    assert team_files.entries("worker") == []


# ── somebody who comes later ───────────────────────────────────────────────


@pytest.mark.parametrize(
    ("late", "ours_stays"),
    [
        (("dev",), False),
        (("dev",), True),
        (("DEV",), True),
        (("\N{FULLWIDTH LATIN SMALL LETTER D}ev",), True),
    ],
)
async def test_a_name_that_somebody_else_registers_later_is_theirs_from_then_on(
    tmp_path: Path, team_files: TeamFiles, late: tuple[str, ...], ours_stays: bool
) -> None:
    """No turn, no reading, no marking, no sending, by client or thread; told once; the session works on."""
    async with stage(tmp_path) as here, here.server("mcp", env=ENV) as client:
        session = await client.content("codex", prompt="%say hi", identity="dev")
        agent_id = session["agent_id"]
        await until(lambda: "dev" in members(team_files))
        uri = {"uri": f"mail://{TEAM}/dev"}
        assert "result" in await client.ask("resources/subscribe", uri)

        if ours_stays:
            join(team_files, *late)
        else:
            team_files.enrol(TEAM, "team-lead", "worker", *late)
        team_files.drop("dev", entry("worker", f"%say {SECRET}"))
        await until(lambda: "gets no mail" in client.stderr)

        for who in ({"identity": "dev"}, {"agent_id": agent_id}):
            await refused(client, "atm_read", **who)
            await refused(client, "atm_pending_count", **who)
            await refused(client, "atm_send", to="worker", message="it is me", **who)
        assert (await client.ask("resources/read", uri))["error"]["code"] == CONFLICT
        assert (await client.ask("resources/subscribe", uri))["error"]["code"] == -32602
        for tool, words in (
            ("atm_read", {}),
            ("atm_pending_count", {}),
            ("atm_send", {"to": "worker", "message": "it is me"}),
            ("atm_broadcast", {"message": "it is me"}),
        ):
            prompt = f"%tool {tool} {json.dumps(words)}\n%say went on"
            reply = await client.content("codex-reply", agent_id=agent_id, prompt=prompt)
            assert reply["content"] == "went on"
            assert "registered" in str(here.requests[-1]["input"][-1])
        assert (await client.content("agent_status"))["pending_mail"] == 0
        assert client.stderr.count("gets no mail") == 1
        assert not [heard for heard in client.heard if heard["method"] == "notifications/resources/updated"]
        # It is theirs alone: nobody is told to write to us under it.
        assert joined(team_files) == list(late)
    told = [line["outcome"] for line in audit(here, TEAM) if line["event_type"] == "mail_join"]
    assert ["gets no mail" in outcome for outcome in told] == [True]
    assert unread(team_files, "dev") == [f"%say {SECRET}"]
    assert team_files.entries("worker") == []
    assert not any(SECRET in text for request in here.requests for text in texts(request))


async def test_a_name_is_ours_again_when_whoever_took_it_has_left(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """A client asks as its session again at once; nothing has to be started anew for that."""
    async with stage(tmp_path) as here, here.server("mcp", env=MANUAL) as client:
        await client.content("codex", prompt="%say hi", identity="dev")
        await until(lambda: "dev" in members(team_files))
        join(team_files, "Dev")
        await refused(client, "atm_send", identity="dev", to="worker", message="hello")
        team_files.enrol(TEAM, "team-lead", "worker")
        await client.content("atm_send", identity="dev", to="worker", message="hello")
    assert [(found["from"], found["text"]) for found in team_files.entries("worker")] == [("dev", "hello")]


async def test_somebody_who_waits_for_news_hears_none_of_a_teammates(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Subscribed to while the name was free; then it became somebody's, and mail came."""
    fast = {**ENV, "LANEWAY_MAIL_POLL_INTERVAL_MS": "100"}
    async with stage(tmp_path) as here, here.server("mcp", env=fast) as client:
        for name in ("bob", "zoe"):
            assert "result" in await client.ask("resources/subscribe", {"uri": f"mail://{TEAM}/{name}"})
        join(team_files, "bob")
        team_files.drop("bob", entry("worker", SECRET))
        team_files.drop("zoe", entry("worker", "hello"))

        def is_news(message: Message) -> bool:
            return bool(message["method"] == "notifications/resources/updated")

        await client.wait_heard(is_news)
        # Both are looked at in one round, bob before zoe.
        heard = [message["params"]["uri"] for message in client.heard if is_news(message)]
        assert heard == [f"mail://{TEAM}/zoe"]


# ── without mail ───────────────────────────────────────────────────────────


async def test_a_server_without_mail_gives_a_name_that_reaches_nobodys_mail(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """The name is the session's own then and joins no team; with mail, the same session is refused."""
    join(team_files, "bob")
    team_files.drop("bob", entry("worker", SECRET))
    roster = team_files.places.config(TEAM).read_bytes()
    async with stage(tmp_path) as here:
        async with here.server("mcp", "--tools", "codex,sessions", env=ENV) as client:
            send = json.dumps({"to": "worker", "message": "it is bob"})
            prompt = f"%tool atm_send {send}\n%say hi"
            session = await client.content("codex", prompt=prompt, identity="bob")
            assert (session["identity"], session["content"]) == ("bob", "hi")
            assert "unsupported" in str(here.requests[-1]["input"][-1]).lower()
        async with here.server("mcp", env=ENV) as client:
            await refused(client, "codex", agent_id=session["agent_id"], prompt="%say again")
    assert team_files.places.config(TEAM).read_bytes() == roster
    assert unread(team_files, "bob") == [SECRET]
    assert team_files.entries("worker") == []


async def test_a_roster_that_cannot_be_read_keeps_no_session_from_work_and_gives_no_mail(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Who is in the team cannot be known, so nothing is sent or read; work does not depend on it."""
    team_files.drop("dev", entry("worker", SECRET))
    team_files.places.config(TEAM).write_text('{"members": [')
    async with stage(tmp_path) as here, here.server("mcp", env=ENV) as client:
        session = await client.content("codex", prompt="%say hi", identity="dev")
        assert session["identity"] == "dev"
        for tool, words in (("atm_read", {}), ("atm_send", {"to": "worker", "message": "x"})):
            answer = await client.call(tool, identity="dev", **words)
            assert "error" in answer or answer["result"]["isError"]
    assert unread(team_files, "dev") == [SECRET]
    assert os.listdir(team_files.places.inboxes(TEAM)) == ["dev.json"]
