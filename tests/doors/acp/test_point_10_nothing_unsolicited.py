"""Point 10: nothing that nobody asked for: no turn, no notification, no trust, nothing late."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, ZED, Client, Message, Stage, select, stage
from tests.doors.acp.witness import untouched

DAY = (
    ("%think Hm.\n%say Hello.", 1),
    ("%run seq 3\n%say Ran.", 2),
    ("%plan Look; Leap\n%say Planned.", 2),
    ("%run! touch ../outside\n%say Allowed.", 2),
    ("/no-such-command", 0),
)
"""Prompts, and how often each asks the model."""
CLIENTS = pytest.mark.parametrize(
    ("name", "capabilities"), [("bare", {}), ("full", FULL), ("zed", ZED)], ids=["bare", "full", "zed"]
)


async def spend(here: Stage, client: Client, prompts: tuple[tuple[str, int], ...] = DAY) -> str:
    """The day; after each prompt the model has been asked just as often as that prompt takes."""
    client.on_permission = lambda params: select(params, "allow_once")
    session = await client.new()
    asked = 0
    for prompt, times in prompts:
        assert await client.prompt(session, prompt) == {"stopReason": "end_turn"}
        asked += times
        assert (prompt, len(here.requests)) == (prompt, asked)
    return session


def late(trace: list[Message]) -> list[Message]:
    """What was told between the answer to a prompt and the client's next word."""
    found: list[Message] = []
    is_answered = False
    for message in trace:
        if message["from"] == "client":
            is_answered = False
        elif "stopReason" in (message.get("result") or {}):
            is_answered = True
        elif is_answered:
            found.append(message)
    return found


def threads(here: Stage) -> set[Path]:
    """What Codex has written down, also of other tests."""
    return set(here.home.glob("sessions/**/rollout-*.jsonl"))


@CLIENTS
async def test_a_day_asks_the_model_nothing_but_what_was_asked(
    shared: Shared, name: str, capabilities: Message
) -> None:
    """Not for a title, not for a summary at the end; and config.toml is not touched for it."""
    async with shared.stage() as here:
        before = threads(here)
        with untouched(here):
            async with here.agent(capabilities=capabilities) as client:
                assert client.heard == []
                session = await spend(here, client)
                # Whatever were on its way by now would come before this answer.
                await client.ask("session/close", {"sessionId": session})
                assert late(client.trace()) == []
            assert len(here.requests) == sum(times for _, times in DAY)
        assert len(threads(here) - before) == 1
    told = {each["method"] for each in client.heard}
    assert told == {"session/update", "session/request_permission"}
    assert {update.session_id for update in client.updates} == {session}
    golden(f"point-10-nothing-unsolicited-{name}", client.trace())


@CLIENTS
async def test_everything_of_a_turn_is_told_before_its_prompt_is_answered(
    shared: Shared, name: str, capabilities: Message
) -> None:
    """However much it is, and however the turn ends."""
    prompts = ("%stream 5000 words", "%run seq 5000\n%say Ran.", "%fail 400 No.")
    async with shared.stage() as here, here.agent(capabilities=capabilities) as client:
        session = await client.new()
        for prompt in prompts:
            await asyncio.wait([client.start_prompt(session, prompt)])
            if prompt == prompts[0]:
                assert len(client.text(session).split()) == 5000
            count = len(client.updates)
            await client.ask("session/list", {})
            assert [update.kind for update in client.updates[count:]] == []
        assert client.open_tool_calls() == {}


async def test_a_client_is_told_nothing_before_it_has_a_session_and_nothing_of_others(tmp_path: Path) -> None:
    """A second client's sessions are its own."""
    async with stage(tmp_path) as here, here.agent(capabilities=FULL) as one, here.agent() as two:
        await one.ask("session/list", {})
        assert (one.heard, two.heard) == ([], [])
        session = await one.new()
        await one.prompt(session, "%say Mine.")
        await two.ask("session/list", {})
        assert two.heard == []
        assert one.kinds()[0] == "available_commands_update"
        assert {each["method"] for each in one.heard} == {"session/update"}
