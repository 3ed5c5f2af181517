"""Slash commands with the real Codex: what they do, not only what they ask for."""

from __future__ import annotations

import pytest

from laneway.commands.slash import COMMANDS
from tests.doors.acp.golden import golden
from tests.doors.acp.repos import Repo
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import Client, Stage


async def ready(here: Stage, client: Client) -> str:
    """A session that may write in its own repository."""
    repo = Repo(here.work)
    repo.write("a.txt", "old\nkept\n")
    repo.commit("one")
    session = await client.new()
    await client.ask("session/set_mode", {"sessionId": session, "modeId": "code"})
    return session


async def say(client: Client, session: str, text: str) -> str:
    """The last message that the prompt was answered with."""
    assert await client.prompt(session, text) == {"stopReason": "end_turn"}
    return client.messages(session)[-1]


async def test_undo_takes_the_turn_out_of_the_conversation_and_its_edits_out_of_the_files(
    shared: Shared,
) -> None:
    """Two turns, one after the other; what a shell command wrote stays, as is said."""
    async with shared.stage() as here, here.agent() as client:
        session = await ready(here, client)
        await say(client, session, "%say The first is kept.")
        await say(client, session, "%patch deep/new.txt hello\n%run echo shell > shell.txt")
        await say(client, session, "%edit a.txt old => new")
        assert (here.work / "a.txt").read_text() == "new\nkept\n"

        assert "out of the files again: `a.txt`" in await say(client, session, "/undo")
        assert (here.work / "a.txt").read_text() == "old\nkept\n"
        assert "`deep/new.txt`" in await say(client, session, "/undo")
        assert not (here.work / "deep/new.txt").exists()
        assert (here.work / "shell.txt").read_text() == "shell\n"

        await say(client, session, "And now?")
        seen = str(here.requests[-1]["input"])
        assert "The first is kept." in seen
        assert "And now?" in seen
        assert "deep/new.txt" not in seen
        assert "a.txt old" not in seen


async def test_undo_leaves_a_file_that_a_person_has_changed_since(shared: Shared) -> None:
    """All of the turn's edits stay, and the file is named."""
    async with shared.stage() as here, here.agent() as client:
        session = await ready(here, client)
        await say(client, session, "%edit a.txt old => new\n%patch b.txt hello")
        (here.work / "a.txt").write_text("mine\n")
        assert "because a.txt changed after the turn" in await say(client, session, "/undo")
        assert (here.work / "a.txt").read_text() == "mine\n"
        assert (here.work / "b.txt").read_text() == "hello\n"


async def test_review_and_compact_are_turns_of_their_own(shared: Shared) -> None:
    """Each ends with a stop reason, and no tool call stays open."""
    async with shared.stage() as here, here.agent() as client:
        session = await ready(here, client)
        assert "no uncommitted changes" in await say(client, session, "/review")
        assert not here.requests
        (here.work / "a.txt").write_text("changed\n")
        assert "+changed" in await say(client, session, "/diff")
        assert await client.prompt(session, "/review") == {"stopReason": "end_turn"}
        assert "Review the current code changes" in str(here.requests[-1]["input"])
        before = len(here.requests)
        assert await client.prompt(session, "/compact") == {"stopReason": "end_turn"}
        assert len(here.requests) > before
        assert client.open_tool_calls() == {}


@pytest.mark.needs("user_questions")
async def test_plan_mode_reaches_the_model_and_ends(shared: Shared) -> None:
    """With the words of the prompt, and until it is switched off."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        await say(client, session, "/plan the locks")
        assert "the locks" in str(here.requests[-1]["input"])
        assert "# Plan Mode" in str(here.requests[-1]["input"])
        assert "plan mode" in await say(client, session, "/status")
        assert await say(client, session, "/plan off") == "Plan mode is off."
        assert "plan mode" not in await say(client, session, "/status")


async def test_a_fork_goes_on_by_itself(shared: Shared) -> None:
    """The copy has what was said, and can be opened."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        await say(client, session, "%say Hello there.")
        said = await say(client, session, "/fork")
        copy = said.split("`")[1]
        assert copy != session
        await client.load(copy)
        assert "Hello there." in client.text(copy)


async def test_undo_after_a_review_takes_all_of_it_back(shared: Shared) -> None:
    """Codex keeps a review as two turns; the model remembers neither."""
    async with shared.stage() as here, here.agent() as client:
        session = await ready(here, client)
        await say(client, session, "%say The first is kept.")
        await say(client, session, "/review %say Nothing to remark.")
        await say(client, session, "/undo")
        await say(client, session, "And now?")
        seen = str(here.requests[-1]["input"])
        assert "The first is kept." in seen
        assert "Nothing to remark." not in seen


async def test_a_client_is_told_every_command_and_a_slip_reaches_no_model(shared: Shared) -> None:
    """All that /help tells; what is none of them is said to be unknown, with the nearest that there is."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        told = (await client.wait_kind("available_commands_update", session)).body["availableCommands"]
        names = [command["name"] for command in told]
        assert names == list(COMMANDS)
        golden("commands", told)
        helped = await say(client, session, "/help")
        assert [line.split("/")[1].split("`")[0].split()[0] for line in helped.splitlines()] == names
        assert (await say(client, session, "/reveiw all")).startswith(
            "There is no command /reveiw. Did you mean /review?"
        )
        assert here.requests == []
