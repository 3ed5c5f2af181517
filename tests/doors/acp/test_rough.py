"""Rough clients on standard input and output: nonsense, floods, a client that does not read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, ZED, Client, Message, stage
from tests.wire.support import linux_only

FLOOD = 2000
WORDS = 20_000
TURNS = 6
PIPE_BYTES = 60_000
"""What a pipe holds on Linux, nearly: it is full, and whoever writes to it waits."""
MAX_GROWTH_KB = 150_000
"""Of memory while a client does not read some megabytes. Not a measure: what is lost would be gigabytes."""
NONSENSE = (
    b"\n",
    b" \t \n",
    b"nonsense\n",
    b"{\n",
    b'{"jsonrpc":"2.0","id":"half","method":"session/li\n',
    b'{"jsonrpc":"2.0"}\n',
    b'{"jsonrpc":"2.0","method":7}\n',
    b'{"jsonrpc":"2.0","id":987654321,"result":{}}\n',
    b'{"jsonrpc":"2.0","id":null,"method":"session/list"}\n',
    b'{"jsonrpc":"2.0","method":"no/such","params":{"x":"\\ud83d"}}\n',
    b'{"jsonrpc":"2.0","method":"session/cancel"}\n',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":null}\n',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":[1]}\n',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":{"a":1}}}\n',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":"\xff"}\n',
    b'{"jsonrpc":"2.0","method":"$/cancel_request"}\n',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{}}\n',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":[]}\n',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[[]]}}\n',
    b'{"jsonrpc":"2.0","method":"' + b"x" * 100_000 + b'"}\n',
    b"\xff\xfe\x00\n",
    b"[]\n",
    b"[" * 100_000 + b"\n",
    b'{"jsonrpc":"2.0","id":"deep","method":"session/new","params":' + b"[" * 5000 + b"]" * 5000 + b"}\n",
    b'{"jsonrpc":"2.0","id":"edge","method":"session/list","params":'
    + b'{"a":' * 985
    + b"1"
    + b"}" * 985
    + b"}\n",
)


async def test_nonsense_is_answered_in_words_and_costs_no_prompt(tmp_path: Path) -> None:
    """Half a message, no JSON, no UTF-8, endless nesting, wrong params of notifications."""
    async with stage(tmp_path) as here, here.agent(greet=False) as client:
        client.send_bytes(b"".join(NONSENSE))  # some of it is told to say initialize first
        await client.initialize()
        session = await client.new()
        for start in range(0, len(NONSENSE), 4):
            lines = NONSENSE[start : start + 4]
            client.send_bytes(b"".join(lines))
            assert await client.prompt(session, "%say fine") == {"stopReason": "end_turn"}, lines
        assert not [stray for stray in client.strays if "error" in stray and not stray["error"]["message"]]
        unlint(client)


async def test_ids_of_any_kind_come_back_as_they_were(tmp_path: Path) -> None:
    """Long, odd, twice at once: each request has one answer, under its own id."""
    ids: list[Any] = ["", "x" * 1_000_000, -1, 2**63, 1.5, "é🐢", "\u0000", 0]
    async with stage(tmp_path) as here, here.agent() as client:
        session = await client.new()
        for one in ids:
            client.send({"jsonrpc": "2.0", "id": one, "method": "session/list", "params": {}}, lint=False)
        hang: Message = {"sessionId": session, "prompt": [{"type": "text", "text": "%hang"}]}
        for _ in range(2):
            client.send(
                {"jsonrpc": "2.0", "id": "twice", "method": "session/prompt", "params": hang}, lint=False
            )
        while not any(stray["id"] == "twice" for stray in client.strays):
            await client.ask("session/list", {})
        (second,) = (stray for stray in client.strays if stray["id"] == "twice")
        assert second["error"]["message"] == "This request id is in use"
        client.cancel(session)
        assert await client.prompt(session, "%say fine") == {"stopReason": "end_turn"}
        answered = [stray["id"] for stray in client.strays]
        assert answered.count("twice") == 2
        assert all(answered.count(one) == 1 for one in ids)
        unlint(client)


async def test_a_batch_is_answered_as_one_and_in_it_every_request(tmp_path: Path) -> None:
    """The protocol has none; whoever sends one anyway is not left waiting."""
    async with stage(tmp_path) as here, here.agent() as client:
        session = await client.new()
        asked: list[Message] = [
            {"jsonrpc": "2.0", "id": "list", "method": "session/list", "params": {}},
            {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}},
            {"jsonrpc": "2.0", "id": "no", "method": "no/such"},
        ]
        answers = await raw(client, [json.dumps(asked).encode()], 1, lambda heard: isinstance(heard, list))
        assert {answer["id"]: set(answer) for answer in answers[0]} == {
            "list": {"jsonrpc", "id", "result"},
            "no": {"jsonrpc", "id", "error"},
        }


async def test_a_flood_is_answered_to_its_last_request_and_nobody_is_told_to_log_in(tmp_path: Path) -> None:
    """More at once than is served side by side: refused in words, and not by the code of a login."""
    async with stage(tmp_path) as here, here.agent() as client:
        session = await client.new()
        where = {"sessionId": session}
        hello = [{"type": "text", "text": "%say hello"}]
        requests: list[tuple[str, Message]] = [
            ("session/prompt", {**where, "prompt": [{"type": "text", "text": "%stream 2000 words"}]}),
            *[("no/such", {})] * FLOOD,
            *[("session/set_mode", {**where, "modeId": mode}) for mode in ("code", "ask") * (FLOOD // 2)],
            *[("session/prompt", {**where, "prompt": hello})] * FLOOD,
        ]
        lines = [request(number, *one) for number, one in enumerate(requests)]
        lines += [request(None, "session/cancel", where)] * FLOOD
        answers = await raw(client, lines, len(requests), lambda heard: "method" not in heard)
        assert sorted(answer["id"] for answer in answers) == list(range(len(requests)))
        codes = {answer["error"]["code"] for answer in answers if "error" in answer}
        assert {-32601, -32603} <= codes <= {-32601, -32600, -32603}
        (last,) = await raw(
            client,
            [request("last", "session/prompt", {**where, "prompt": hello})],
            1,
            lambda heard: heard.get("id") == "last",
        )
        assert last["result"] == {"stopReason": "end_turn"}


async def test_of_many_choices_at_once_the_last_one_is_kept(shared: Shared) -> None:
    """Written one after the other; else an old and wider one could be what the next start finds."""
    modes = ["full", "code", "ask"] * 30 + ["read-only"]
    async with shared.stage() as here:
        async with here.agent() as client:
            session = await client.new()
            await client.prompt(session, "%say hello")
            changes = [
                client.request("session/set_mode", {"sessionId": session, "modeId": mode}) for mode in modes
            ]
            await changes[-1]
        async with here.agent() as client:
            assert (await client.load(session))["modes"]["currentModeId"] == "read-only"


# ── a client that does not read ────────────────────────────────────────────


@linux_only
@pytest.mark.parametrize("capabilities", [FULL, ZED], ids=["plain", "terminals"])
async def test_a_client_that_does_not_read_for_a_while_gets_everything_afterwards(
    tmp_path: Path, capabilities: Message
) -> None:
    """Text and what a command prints: nothing is lost, memory stays small, the prompt is answered."""
    async with stage(tmp_path) as here, here.agent(capabilities=capabilities) as client:
        session = await client.new()
        before = peak_kb(client.process.pid)
        client.pause()
        script = f"%run seq 200000\n%stream {WORDS} words\n%say  end"
        turn = client.start_prompt(session, script)
        behind = client.start_prompt(session, "%say  behind it")
        while len(here.requests) < 3:  # two for the turn; the next one is asked when it is over
            await asyncio.sleep(0)
        assert not turn.done()
        client.go_on()
        assert await turn == {"stopReason": "end_turn"}
        assert await behind == {"stopReason": "end_turn"}
        assert len(" ".join(client.messages(session)).split()) == WORDS + len(["end", "behind", "it"])
        assert client.open_tool_calls() == {}
        assert peak_kb(client.process.pid) - before < MAX_GROWTH_KB


@linux_only
async def test_a_client_that_does_not_read_while_it_loads_gets_everything_afterwards(tmp_path: Path) -> None:
    """The history waits for its reader: only a few turns of it are in memory."""
    async with stage(tmp_path) as here:
        async with here.agent() as client:
            session = await client.new()
            for number in range(TURNS):
                await client.prompt(session, f"%run seq 100000\n%say turn {number}")
        async with here.agent() as client:
            await client.ask("session/list", {})
            before = peak_kb(client.process.pid)
            client.pause()
            loading = asyncio.ensure_future(client.load(session))
            await asyncio.sleep(0)  # it is on its way
            waiting = client.start_prompt(session, "%say behind it")
            while client.unread_bytes < PIPE_BYTES:
                await asyncio.sleep(0)
            client.go_on()
            await loading
            assert await waiting == {"stopReason": "end_turn"}
            said = client.messages(session)
            assert said == [*(f"turn {number}" for number in range(TURNS)), "behind it"]
            assert peak_kb(client.process.pid) - before < MAX_GROWTH_KB


# ── support ────────────────────────────────────────────────────────────────


def unlint(client: Client) -> None:
    """Answers under ids that the linter could not know are looked at by the test instead."""
    assert all("asked" in str(violation) for violation in client.lint.violations), client.lint.violations
    client.lint.violations.clear()


def request(request_id: Any, method: str, params: Message) -> bytes:
    named = {} if request_id is None else {"id": request_id}
    return json.dumps({"jsonrpc": "2.0", **named, "method": method, "params": params}).encode()


async def raw(client: Client, lines: list[bytes], count: int, is_it: Callable[[Any], bool]) -> list[Any]:
    """Past the linter, which would take longer than the agent: so many of what comes, as it is."""
    client.stop_reading()
    await asyncio.sleep(0)
    client.send_bytes(b"\n".join(lines) + b"\n")
    found: list[Any] = []
    assert client.process.stdout is not None
    while len(found) < count:
        heard = json.loads(await client.process.stdout.readline())
        found += [heard] if is_it(heard) else []
    return found


def peak_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])
