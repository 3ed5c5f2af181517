"""Questions in turns that mail started: asked, parked or declined, and never in a client's way.

A teammate needs one message to make Codex ask something; a session that then waits for minutes is lost
to its client for that long. The real server on the real Codex, both eras, both transports.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.core.support import LOOK_S, until
from tests.doors.mcp.http_support import Place, call, initialize, mirrors, modern, next_message
from tests.doors.mcp.support import DEADLINE_S, ERA, FORMS, Client, Message, Stage, stage
from tests.doors.mcp.views import QUIET, audit
from tests.mail.tools_support import TEAM, TeamFiles, entry

ENV = {**QUIET, "ATM_TEAM": TEAM, "LANEWAY_LOG_LEVEL": "warning"}
WANTS = "%run! echo granted > mail.txt\n%say did it"
TOKEN = "token-of-the-adversary-0123456789"
HASTE_S = 30.0
"""A tenth of the time after which a question is declined by itself: who waits longer waits for that."""


@pytest.fixture
def team_files(tmp_path: Path) -> TeamFiles:
    team_files = TeamFiles(tmp_path)
    team_files.create_team(TEAM, "team-lead", "worker")
    return team_files


def is_question(message: Message) -> bool:
    return bool(message["method"] == "elicitation/create")


def is_granted(here: Stage) -> bool:
    return (here.work / "mail.txt").exists()


def decisions(here: Stage) -> list[Message]:
    if not (here.sessions / TEAM / "audit.jsonl").exists():
        return []  # nothing was noted yet
    return [line for line in audit(here, TEAM) if line["event_type"] == "approval"]


def beginning(here: Stage) -> Message:
    """What a session is opened with."""
    return {"prompt": "%say hi", "identity": "dev", "cwd": str(here.work)}


async def opened(here: Stage, client: Client) -> str:
    """An idle session that gets mail."""
    session = await client.content("codex", **beginning(here))
    agent_id: str = session["agent_id"]
    return agent_id


async def delivered(client: Client, team_files: TeamFiles) -> None:
    """Mail that makes Codex ask has come in, and Codex asks."""
    team_files.drop("dev", entry("worker", WANTS))
    await client.wait_event("exec_approval_request")


async def idle(client: Client) -> None:
    """Every session of the server has come to rest."""
    while True:
        bound = (await client.content("agent_status"))["identities"]
        if all(row["state"] == "idle" for row in bound.values()):
            return
        await asyncio.sleep(LOOK_S)


# ── clients that shake hands ───────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reply", "granted", "outcome"),
    [
        ({"action": "accept"}, True, "accept"),
        ({"action": "decline"}, False, "decline"),
        ({"action": "cancel"}, False, "decline"),
        ({"decision": "approved"}, True, "accept"),
        ({"nonsense": 1}, False, "decline"),
    ],
)
async def test_the_client_is_asked_in_a_turn_that_mail_started(
    tmp_path: Path, team_files: TeamFiles, reply: Message, granted: bool, outcome: str
) -> None:
    """As in any other turn, with the session named; the answer counts, and the log has it."""
    async with stage(tmp_path) as here, here.server("mcp", capabilities=FORMS, env=ENV) as client:
        agent_id = await opened(here, client)
        client.on_ask = lambda message: reply
        team_files.drop("dev", entry("worker", WANTS))
        asked = await client.wait_heard(is_question)
        assert asked["params"]["agent_id"] == agent_id
        assert "mail.txt" in asked["params"]["message"]
        async with asyncio.timeout(HASTE_S):
            again = await client.content("codex-reply", agent_id=agent_id, prompt="%say here")
        assert again["content"] == "here"
        assert is_granted(here) is granted
        await client.hang_up()
        (line,) = decisions(here)
    assert (line["agent_id"], line["identity"]) == (agent_id, "dev")
    assert line["outcome"] == outcome


async def test_a_client_that_can_ask_nobody_waits_for_nobody(tmp_path: Path, team_files: TeamFiles) -> None:
    """Declined at once, in the log; the client's next call is served."""
    async with stage(tmp_path) as here, here.server("mcp", env=ENV) as client:
        agent_id = await opened(here, client)
        await delivered(client, team_files)
        async with asyncio.timeout(HASTE_S):
            again = await client.content("codex-reply", agent_id=agent_id, prompt="%say here")
        # A note stands there only if the question was still open when the call came.
        assert again["content"].startswith("here")
        assert not any(is_question(message) for message in client.heard)
        await client.hang_up()
        assert [line["outcome"] for line in decisions(here)] == ["decline"]
        assert not is_granted(here)


async def test_a_client_that_goes_away_with_the_question_leaves_nothing_behind(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """The server ends, and with a no."""
    async with stage(tmp_path) as here, here.server("mcp", capabilities=FORMS, env=ENV) as client:
        await opened(here, client)
        client.on_ask = lambda message: None
        team_files.drop("dev", entry("worker", WANTS))
        await client.wait_heard(is_question)
        async with asyncio.timeout(HASTE_S):
            assert await client.hang_up() == 0
        assert "Traceback" not in client.stderr
        assert not is_granted(here)


async def test_closing_the_session_takes_the_question_back(tmp_path: Path, team_files: TeamFiles) -> None:
    """Its client is told so, and an answer that comes all the same decides nothing."""
    async with stage(tmp_path) as here, here.server("mcp", capabilities=FORMS, env=ENV) as client:
        agent_id = await opened(here, client)
        client.on_ask = lambda message: None
        team_files.drop("dev", entry("worker", WANTS))
        asked = await client.wait_heard(is_question)
        await client.content("agent_close", agent_id=agent_id)
        gone = await client.wait_heard(lambda m: m["method"] == "notifications/cancelled")
        assert gone["params"]["requestId"] == asked["id"]
        client.strays = []
        client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})
        assert (await client.content("agent_status"))["identities"] == {}
        assert [line["outcome"] for line in decisions(here)] == ["session closed"]
        assert not is_granted(here)


async def test_questions_in_a_row_are_all_asked(tmp_path: Path, team_files: TeamFiles) -> None:
    """One turn, two commands: the first is granted, the second is not."""
    async with stage(tmp_path) as here, here.server("mcp", capabilities=FORMS, env=ENV) as client:
        await opened(here, client)
        client.on_ask = lambda message: {"action": "accept" if "one.txt" in str(message) else "decline"}
        words = "%run! echo x > one.txt\n%run! echo x > two.txt\n%say done"
        team_files.drop("dev", entry("worker", words))
        await client.wait_heard(lambda m: is_question(m) and "two.txt" in str(m))
        await idle(client)
        assert [(here.work / name).exists() for name in ("one.txt", "two.txt")] == [True, False]


# ── parked ─────────────────────────────────────────────────────────────────


async def parked(client: Client) -> Message:
    """The question that waits, as `agent_status` tells it."""
    while not (found := (await client.content("agent_status")).get("questions")):
        await asyncio.sleep(LOOK_S)
    (question,) = found
    row: Message = question
    return row


@pytest.mark.parametrize(("action", "granted"), [("accept", True), ("decline", False), ("cancel", False)])
async def test_a_parked_question_of_a_mail_turn_is_answered_by_the_tool(
    tmp_path: Path, team_files: TeamFiles, action: str, granted: bool
) -> None:
    """`agent_status` says what waits; nobody has to call the session for it."""
    async with stage(tmp_path) as here, here.server("mcp", "--unattended", "park", env=ENV) as client:
        agent_id = await opened(here, client)
        team_files.drop("dev", entry("worker", WANTS))
        waiting = await parked(client)
        assert (waiting["agent_id"], waiting["question"]["kind"]) == (agent_id, "command")
        question_id = waiting["question"]["question_id"]
        answered = await client.content("agent_answer", question_id=question_id, action=action)
        assert (answered["status"], answered["agent_id"]) == ("answered", agent_id)
        await idle(client)
        assert "questions" not in await client.content("agent_status")
        assert (await client.error("agent_answer", question_id=question_id, action=action))["code"] == -32007
        async with asyncio.timeout(HASTE_S):
            assert (await client.content("codex-reply", agent_id=agent_id, prompt="%say here"))[
                "content"
            ] == "here"
        assert is_granted(here) is granted


async def test_a_call_behind_a_parked_question_comes_back_with_it_and_goes_on_with_the_answer(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Not in silence for minutes: `agent_answer` decides and returns what the call was for."""
    async with stage(tmp_path) as here, here.server("mcp", "--unattended", "park", env=ENV) as client:
        agent_id = await opened(here, client)
        team_files.drop("dev", entry("worker", WANTS))
        waiting = await parked(client)
        async with asyncio.timeout(HASTE_S):
            held_up = await client.content("codex-reply", agent_id=agent_id, prompt="%say here")
            assert (held_up["status"], held_up["question"]) == ("input_required", waiting["question"])
            question_id = waiting["question"]["question_id"]
            done = await client.content("agent_answer", question_id=question_id, action="accept")
        assert done["content"] == "here"
        assert is_granted(here)


# ── without a handshake ────────────────────────────────────────────────────


async def modern_call(client: Client, tool: str, capabilities: Message, **beside: Any) -> Message:
    arguments = {"name": tool, **beside}
    answer = await client.stateless("tools/call", arguments, capabilities)
    assert "result" in answer, answer
    result: Message = answer["result"]
    return result


@pytest.mark.parametrize("capabilities", [{}, FORMS])
async def test_without_a_handshake_nothing_can_be_asked_and_nobody_waits(
    tmp_path: Path, team_files: TeamFiles, capabilities: Message
) -> None:
    """Outside of a call the setting decides: by default the answer is no, at once."""
    async with stage(tmp_path) as here, here.server("mcp", env=ENV, greet=False) as client:
        begun = await modern_call(client, "codex", capabilities, arguments=beginning(here))
        agent_id = begun["structuredContent"]["agent_id"]
        await delivered(client, team_files)
        async with asyncio.timeout(HASTE_S):
            words = {"agent_id": agent_id, "prompt": "%say here"}
            again = await modern_call(client, "codex-reply", capabilities, arguments=words)
        assert again["structuredContent"]["content"].startswith("here")
        assert not any(is_question(message) for message in client.heard)
        assert not is_granted(here)


async def test_without_a_handshake_a_parked_question_is_asked_by_the_next_calls_result(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """The call returns what is asked and where it stands; the next one brings the answer and goes on."""
    async with (
        stage(tmp_path) as here,
        here.server("mcp", "--unattended", "park", env=ENV, greet=False) as client,
    ):
        begun = await modern_call(client, "codex", FORMS, arguments=beginning(here))
        words = {"agent_id": begun["structuredContent"]["agent_id"], "prompt": "%say here"}
        await delivered(client, team_files)
        async with asyncio.timeout(HASTE_S):
            asked = await modern_call(client, "codex-reply", FORMS, arguments=words)
            ((key, question),) = asked["inputRequests"].items()
            assert "mail.txt" in question["params"]["message"]
            done = await modern_call(
                client,
                "codex-reply",
                FORMS,
                arguments=words,
                requestState=asked["requestState"],
                inputResponses={key: {"action": "accept"}},
            )
        assert done["structuredContent"]["content"] == "here"
        assert is_granted(here)


# ── over HTTP ──────────────────────────────────────────────────────────────


@asynccontextmanager
async def web(here: Stage, *words: str) -> AsyncIterator[Place]:
    """A server on a free port of this machine."""
    process = await here.spawn(
        "-m",
        "laneway",
        "mcp",
        "--http",
        "127.0.0.1:0",
        *words,
        env={**ENV, "LANEWAY_HTTP_TOKEN": TOKEN},
    )
    assert process.stderr is not None
    draining: asyncio.Task[bytes] | None = None
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not (found := re.search(rb"http://\S+/mcp", await process.stderr.readline())):
                pass
            draining = asyncio.ensure_future(process.stderr.read())
            async with httpx2.AsyncClient(timeout=DEADLINE_S) as browser:
                yield Here(found[0].decode(), browser)
    finally:
        process.terminate()
        await process.wait()
        if draining is not None:
            await draining


class Here(Place):
    """A place with the one token of a real server."""

    def __init__(self, url: str, browser: httpx2.AsyncClient) -> None:
        self.url = url
        self.web = browser

    def headers(self, session: str = "", token: str = TOKEN, **more: str) -> dict[str, str]:
        return super().headers(session, token, **more)

    async def tool(self, session: str, name: str, arguments: Message, request_id: int = 1) -> Message:
        """The structured content of a good result; events on the way are passed over."""
        body = call(name, arguments, request_id)
        async with self.web.stream("POST", self.url, json=body, headers=self.headers(session)) as response:
            assert response.status_code == 200, await response.aread()
            text = (await response.aread()).decode()
        lines = [
            line.removeprefix("data: ") for line in text.splitlines() if line.startswith(("data: {", "{"))
        ]
        return answer_of(lines, request_id)


def answer_of(lines: list[str], request_id: int) -> Message:
    answers = [message for line in lines if (message := decoded(line)).get("id") == request_id]
    (answer,) = [message for message in answers if "method" not in message]
    assert "result" in answer, answer
    structured: Message = answer["result"]["structuredContent"]
    return structured


def decoded(line: str) -> Message:
    message: Message = json.loads(line)
    return message


async def handshake(place: Here) -> str:
    """A session of a client that can ask its person."""
    answered = await place.post(initialize())
    session = str(answered.headers["mcp-session-id"])
    await place.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    return session


@pytest.mark.parametrize(("action", "granted"), [("accept", True), ("decline", False)])
async def test_a_web_client_is_asked_on_the_stream_that_it_keeps_open(
    tmp_path: Path, team_files: TeamFiles, action: str, granted: bool
) -> None:
    """There is no call whose response the question could go to."""
    async with stage(tmp_path) as here, web(here, "--events", "off") as place:
        assert isinstance(place, Here)
        session = await handshake(place)
        begun = await place.tool(session, "codex", beginning(here))
        async with place.streamed(None, session, method="GET") as stream:
            team_files.drop("dev", entry("worker", WANTS))
            _, asked = await next_message(stream)
            assert (asked["method"], asked["params"]["agent_id"]) == ("elicitation/create", begun["agent_id"])
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": action}}
            assert (await place.post(answer, session)).status_code == 202
            async with asyncio.timeout(HASTE_S):
                words = {"agent_id": begun["agent_id"], "prompt": "%say here"}
                assert (await place.tool(session, "codex-reply", words, 2))["content"] == "here"
        assert is_granted(here) is granted


@pytest.mark.parametrize("is_modern", [False, True])
async def test_a_web_client_that_is_not_connected_waits_for_nobody(
    tmp_path: Path, team_files: TeamFiles, is_modern: bool
) -> None:
    """No stream to be asked on, or an era that has none: declined at once."""
    async with stage(tmp_path) as here, web(here) as place:
        assert isinstance(place, Here)
        session = "" if is_modern else await handshake(place)
        first = beginning(here)
        begun = await (
            modern_tool(place, "codex", first) if is_modern else place.tool(session, "codex", first)
        )
        team_files.drop("dev", entry("worker", WANTS))
        async with asyncio.timeout(HASTE_S):
            await until(lambda: decisions(here))
            words = {"agent_id": begun["agent_id"], "prompt": "%say here"}
            again = await (
                modern_tool(place, "codex-reply", words)
                if is_modern
                else place.tool(session, "codex-reply", words, 2)
            )
        assert again["content"] == "here"
        assert [line["outcome"] for line in decisions(here)] == ["decline"]
        assert not is_granted(here)


async def modern_tool(place: Here, name: str, arguments: Message) -> Message:
    body = modern(name, arguments)
    body["params"]["_meta"][f"{ERA}clientCapabilities"] = FORMS
    headers = place.headers(**mirrors(name))
    async with place.web.stream("POST", place.url, json=body, headers=headers) as response:
        text = (await response.aread()).decode()
        assert response.status_code == 200, text
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith(("data: {", "{"))]
    return answer_of(lines, 1)


async def test_a_web_client_that_is_not_connected_can_answer_what_was_parked(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """It finds the question when it comes back."""
    async with stage(tmp_path) as here, web(here, "--unattended", "park") as place:
        assert isinstance(place, Here)
        session = await handshake(place)
        await place.tool(session, "codex", beginning(here))
        team_files.drop("dev", entry("worker", WANTS))
        async with asyncio.timeout(HASTE_S):
            status: Message = {}
            while not (found := status.get("questions")):
                status = await place.tool(session, "agent_status", {}, 3)
            (waiting,) = found
            question_id = waiting["question"]["question_id"]
            words = {"question_id": question_id, "action": "accept"}
            answered = await place.tool(session, "agent_answer", words, 4)
            assert answered["status"] == "answered"
            await until(lambda: is_granted(here))
