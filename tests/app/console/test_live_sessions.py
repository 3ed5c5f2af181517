"""Sessions of another process on the console: watched, answered and stopped by its socket."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.app.console.support import DEADLINE_S, WORK, Desk, LiveConsole, address_in, desk
from tests.doors.acp.support import Stage as AcpStage
from tests.doors.mcp.support import Client


def is_ask(message: dict[str, Any]) -> bool:
    return bool(message["method"] == "elicitation/create")


def is_taken_back(message: dict[str, Any]) -> bool:
    return bool(message["method"] == "notifications/cancelled")


def texts(watched: Any) -> list[str]:
    return [item["text"] or item["title"] for item in watched["items"]]


async def row(console: LiveConsole, name: str, **facts: Any) -> Any:
    """Of the list, once it says this of the session."""

    def fitting(listed: Any) -> list[Any]:
        return [
            each
            for each in listed["sessions"]
            if each["name"] == name and all(each[fact] == value for fact, value in facts.items())
        ]

    return fitting(await console.until("sessions", fitting))[0]


async def asked(at: Desk, client: Client) -> tuple[asyncio.Future[dict[str, Any]], Path]:
    """A call of Ann's that waits for a person's word."""
    marker = at.work / "marker"
    call = client.start("codex", identity="ann", prompt=f"%run! touch {marker}\n%say on", **WORK)
    await client.wait_heard(is_ask)
    return call, marker


async def test_a_question_of_another_process_is_answered_and_its_client_is_told(
    tmp_path: Path, run: Path
) -> None:
    """Who, where, state, tokens and last words are listed; the session goes on where it is."""
    async with desk(tmp_path, run) as at, at.server() as client, at.console() as console:
        call, marker = await asked(at, client)
        waiting = await row(console, "ann", open_questions=1)
        assert (waiting["door"], waiting["state"], waiting["engine"]) == ("mcp", "busy", "Codex")
        assert (waiting["cwd"], waiting["pid"]) == (str(at.work), client.process.pid)
        agent_id = waiting["agent_id"]
        watched = await console.data(f"sessions/{agent_id}/watch")
        (question,) = watched["questions"]
        assert (question["code"], watched["is_busy"]) == (f"touch {marker}", True)

        answer = {"question_id": question["question_id"], "choice_id": question["choices"][0]["choice_id"]}
        assert (await console.post(f"sessions/{agent_id}/answer", **answer)).status == 200
        assert (await call)["result"]["content"][0]["text"] == "on"
        assert marker.exists()
        await client.wait_heard(is_taken_back)
        late = await console.post(f"sessions/{agent_id}/answer", **answer)
        assert (late.status, late.data["error"]) == (409, "The question is settled, or was withdrawn")

        watched = await console.until(f"sessions/{agent_id}/watch", lambda told: not told["is_busy"])
        assert (watched["questions"], texts(watched)[-2:]) == ([], ["on", "The turn is completed"])
        after = await row(console, "ann", state="idle", last_text="on")
        assert (after["pid"], after["turns"], after["tokens"] > 0) == (client.process.pid, 1, True)
        again = await client.content("codex", agent_id=agent_id, prompt="%say still yours")
        assert again["content"] == "still yours"


async def test_a_turn_is_stopped_and_a_process_that_ends_says_so(tmp_path: Path, run: Path) -> None:
    """What was seen stays on the page; nothing can be done with the session any more."""
    async with desk(tmp_path, run) as at, at.console() as console:
        async with at.server() as client:
            call = client.start("codex", identity="ann", prompt="%say begun\n%run sleep 600", **WORK)
            agent_id = (await row(console, "ann", state="busy"))["agent_id"]
            watch = f"sessions/{agent_id}/watch"
            await console.data(watch)
            stopped = await console.post(f"sessions/{agent_id}/stop")
            assert (stopped.status, stopped.data) == (200, {"is_stopped": True})
            assert (await call)["result"]["isError"]
            await console.until(watch, lambda told: not told["is_busy"])
            client.process.kill()
            pid = client.process.pid
            told = await console.until(watch, lambda told: told["is_closed"])
            assert texts(told)[-1] == f"Process {pid}, which ran the session, has ended."
        await console.until("sessions", lambda listed: not listed["sessions"])
        for verb, body in (("stop", {}), ("answer", {"question_id": "q", "choice_id": "accept"})):
            refused = await console.post(f"sessions/{agent_id}/{verb}", **body)
            assert refused.status in (404, 409), refused.data
        assert (await console.get("sessions/agent-0000000000000000/watch")).status == 404


async def test_a_console_that_no_person_has_started_answers_nothing(tmp_path: Path, run: Path) -> None:
    """An agent could start one as well. The question stays open where the session was started."""
    async with desk(tmp_path, run) as at, at.server() as client, at.console(is_foreground=False) as console:
        call, marker = await asked(at, client)
        agent_id = (await row(console, "ann", open_questions=1))["agent_id"]
        (question,) = (await console.data(f"sessions/{agent_id}/watch"))["questions"]
        answer = {"question_id": question["question_id"], "choice_id": question["choices"][0]["choice_id"]}
        refused = await console.post(f"sessions/{agent_id}/answer", **answer)
        assert (refused.status, "that a person has started at a terminal" in refused.data["error"]) == (
            409,
            True,
        )
        assert not marker.exists()
        client.send(
            {"jsonrpc": "2.0", "id": (await client.wait_heard(is_ask))["id"], "result": {"action": "decline"}}
        )
        assert (await call)["result"]["content"][0]["text"] == "on"


@asynccontextmanager
async def running(at: Desk, *words: str, typed: str = "", **env: str) -> AsyncIterator[Process]:
    """A command of a person's; killed at the end. Without words, its input ends at once."""
    process = await at.here.spawn("-m", "laneway", *words, env=env)
    assert process.stdin is not None
    process.stdin.write(typed.encode())
    if not typed:
        process.stdin.close()
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_sessions_of_every_front_end_are_listed_and_stopped(tmp_path: Path, run: Path) -> None:
    """An editor, a chat, `laneway ask`, and the server that replaces Codex's own."""
    async with desk(tmp_path, run) as at, AsyncExitStack() as stack:
        console = await stack.enter_async_context(at.console())
        asking = await stack.enter_async_context(running(at, "ask", "-s", "workspace-write", "%hang"))
        await stack.enter_async_context(
            running(at, "chat", typed="%say from the chat\n", LANEWAY_CHAT_DEFAULT_LANE="codex")
        )
        server = await stack.enter_async_context(at.here.server("mcp-server"))
        await server.result("codex", prompt="%say from the server", **WORK)
        editors = AcpStage(at.here.requests, at.here.home, at.here.state)
        editors.environment = at.here.environment
        editor = await stack.enter_async_context(editors.agent())
        session_id = await editor.new()
        await editor.prompt(session_id, "%say from the editor")

        doors = {"ask", "chat", "mcp-server", "acp"}
        listed = await console.until(
            "sessions", lambda told: doors == {row["door"] for row in told["sessions"] if row["turns"]}
        )
        rows = {row["door"]: row for row in listed["sessions"]}
        said = await console.until(
            "sessions", lambda told: len([row for row in told["sessions"] if row["last_text"]]) == 3
        )
        assert {row["last_text"] for row in said["sessions"]} == {
            "",
            "from the chat",
            "from the server",
            "from the editor",
        }
        assert (rows["ask"]["state"], rows["ask"]["pid"]) == ("busy", asking.pid)
        stopped = await console.post(f"sessions/{rows['ask']['agent_id']}/stop")
        assert stopped.data == {"is_stopped": True}
        async with asyncio.timeout(DEADLINE_S):
            assert await asking.wait() != 0


PARTS = ["chat", "sessions", "jobs", "mail", "health"]


async def test_the_console_and_the_chat_are_one_page(tmp_path: Path, run: Path) -> None:
    """Its own conversations are listed, too; their questions are answered in the conversation."""
    codex = {"LANEWAY_CHAT_DEFAULT_LANE": "codex", "LANEWAY_SANDBOX": "read-only"}
    async with desk(tmp_path, run) as at:
        async with running(at, "chat", "--platform", "web", **codex) as chat:
            assert chat.stderr is not None
            async with asyncio.timeout(DEADLINE_S):
                printed = (await chat.stderr.readline()).decode()
            page = LiveConsole(address_in(printed))
            assert [part["name"] for part in (await page.data("page"))["parts"]] == PARTS
        async with at.console(env=codex | {"LANEWAY_APPROVAL_POLICY": "on-request"}) as console:
            assert [part["name"] for part in (await console.data("page"))["parts"]] == PARTS
            made = (await console.post("chat/conversations")).data
            marker = at.work / "marker"
            text = f"%run! touch {marker}\n%say on"
            sent = await console.post(f"chat/conversations/{made['id']}/messages", text=text)
            assert sent.status == 200, sent.data
            listed = await console.until(
                "sessions", lambda told: [row for row in told["sessions"] if row["open_questions"]]
            )
            (row,) = listed["sessions"]
            (question,) = (await console.data(f"sessions/{row['agent_id']}/watch"))["questions"]
            refused = await console.post(
                f"sessions/{row['agent_id']}/answer",
                question_id=question["question_id"],
                choice_id=question["choices"][0]["choice_id"],
            )
            assert (refused.status, "answer there" in refused.data["error"]) == (409, True)
            assert not marker.exists()
