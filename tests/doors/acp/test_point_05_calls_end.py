"""Point 5: every tool call ends. Cancelled, declined, killed, closed, left behind: none stays in progress."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, ZED, Client, Message, Refused, select, stage, text
from tests.doors.acp.telling import Gates, last_call, story
from tests.wire.support import linux_only

WAITS = "read x < GATE; echo begun; read x < GATE"
PROMPT = f"%run {WAITS}\n%say Ran."
DETACHED = f'%tool exec_command {{"cmd": "{WAITS}", "yield_time_ms": 250}}\n%say It goes on.'
CLIENTS = pytest.mark.parametrize(("name", "capabilities"), [("bare", {}), ("zed", ZED)], ids=["bare", "zed"])


async def begun(client: Client, gates: Gates, prompt: str = PROMPT) -> tuple[str, asyncio.Future[Message]]:
    """A session whose command runs and has printed a line; its prompt."""
    session, gate = await client.new(), gates.new()
    going = client.start_prompt(session, prompt.replace("GATE", gate.name))
    await client.wait_kind("tool_call", session)
    gate.go()
    await client.wait_update(
        lambda each: (
            each.session_id == session and each.kind == "tool_call_update" and r"begun\n" in str(each.body)
        )
    )
    return session, going


def engine_of(client: Client) -> int:
    """The process of the app-server below this agent: there is a guardian between them."""
    below = [client.process.pid]
    for pid in below:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if words[-2:-1] == [b"app-server"] and b"--" not in words:
            return pid
        below += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    raise AssertionError("this agent has no Codex")


def end_of(client: Client, session: str) -> tuple[str, str]:
    """How the session's last call ended, and its last words."""
    call = last_call(client, session)
    return call["status"], text(call["content"][-1])


@linux_only
@CLIENTS
async def test_a_running_command_ends_with_whatever_ends_it(
    tmp_path: Path, name: str, capabilities: Message
) -> None:
    """Its turn is cancelled, its session closed, its Codex killed; the next prompt goes on."""
    async with stage(tmp_path) as here, here.agent(capabilities=capabilities) as client:
        with closing(Gates(here.work)) as gates:
            session, going = await begun(client, gates)
            client.cancel(session)
            assert await going == {"stopReason": "cancelled"}
            assert end_of(client, session) == ("failed", "Interrupted.")

            session, going = await begun(client, gates)
            assert await client.ask("session/close", {"sessionId": session}) == {}
            assert await going == {"stopReason": "cancelled"}
            assert end_of(client, session) == ("failed", "Interrupted.")

            session, going = await begun(client, gates)
            os.kill(engine_of(client), signal.SIGKILL)
            with pytest.raises(Refused) as refused:
                await going
            assert (refused.value.code, refused.value.data["kind"]) == (-32603, "engine_lost")
            assert end_of(client, session) == ("failed", "Interrupted.")
            assert await client.prompt(session, "%say Here again.") == {"stopReason": "end_turn"}
        assert client.open_tool_calls() == {}
    golden(f"point-05-calls-end-{name}", story(client))


@CLIENTS
async def test_a_command_that_was_not_allowed_ends_and_so_does_one_left_in_the_background(
    shared: Shared, name: str, capabilities: Message
) -> None:
    """Declined: the turn goes on or ends as chosen. In the background: its call is over, its end is told."""
    async with shared.stage() as here, here.agent(capabilities=capabilities) as client:
        session = await client.new()
        for choice, end in (("decline", "end_turn"), ("cancel", "cancelled")):
            client.on_permission = lambda params, choice=choice: select(params, choice)  # type: ignore[misc]
            assert await client.prompt(session, "%run! echo x\n%say Then not.") == {"stopReason": end}
            assert end_of(client, session) == ("failed", "Declined.")
        with closing(Gates(here.work)) as gates:
            session, going = await begun(client, gates, DETACHED)
            assert await going == {"stopReason": "end_turn"}
            assert end_of(client, session) == ("completed", "Still running in the background.")
        await client.wait_update(lambda each: "Exit code 1." in str(each.body))  # its gate has gone
        assert end_of(client, session) == ("failed", "Exit code 1.")
        assert client.open_tool_calls() == {}
    golden(f"point-05-calls-declined-{name}", story(client))


async def test_a_command_that_waits_for_an_answer_ends_when_nobody_will_give_it(shared: Shared) -> None:
    """The question is taken back, the call ends, whether the turn is cancelled or the session closed."""
    async with shared.stage() as here, here.agent() as client:
        client.on_permission = lambda params: None
        for close in (False, True):
            session = await client.new()
            going = client.start_prompt(session, "%run! echo x")
            asked = await client.wait_heard(
                lambda each, session=session: (
                    each["method"] == "session/request_permission"  # type: ignore[misc]
                    and each["params"]["sessionId"] == session
                )
            )
            if close:
                await client.ask("session/close", {"sessionId": session})
            else:
                client.cancel(session)
            assert await going == {"stopReason": "cancelled"}
            await client.wait_heard(
                lambda each, asked=asked: (
                    each["method"] == "$/cancel_request"  # type: ignore[misc]
                    and each["params"]["requestId"] == asked["id"]
                )
            )
            client.answer(asked, Refused({"code": -32800, "message": "Request cancelled"}))
            assert last_call(client, session)["status"] == "failed"
        assert client.open_tool_calls() == {}


async def test_a_client_that_leaves_in_the_middle_leaves_nothing_running(tmp_path: Path) -> None:
    """Its input ends while a command runs: so do the command, Codex and the agent, as the stage checks."""
    async with stage(tmp_path) as here, here.agent(capabilities=FULL) as client:
        with closing(Gates(here.work)) as gates:
            await begun(client, gates)
            await begun(client, gates, DETACHED)
            assert await client.hang_up() == 0
