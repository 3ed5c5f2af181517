"""Programs that only pretend to be Claude Code: garbage, endless lines, silence, death."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import BinaryError, EngineCannot, EngineLost, EngineSilent
from laneway.claude.process import ClaudeProcess, StreamEvent
from laneway.core.model import Answer, EngineGone, Other, Question, Text
from tests.claude.pretending import GREETS, HELLO, pretending, program, session_of
from tests.codex.support import only, play


async def test_garbage_between_messages_is_passed_over(tmp_path: Path) -> None:
    """Whatever it looks like; unknown messages are handed on."""
    script = (
        GREETS
        + """
begin()
for line in ("garbage", "{{", "[]", "3", '{{"type": 3}}', '{{"type": "stream_event"}}', "\\ud800x", "null"):
    sys.stdout.buffer.write(line.encode("utf-8", "surrogatepass") + b"\\n")
say(type="assistant", message={{"content": [{{"type": "text"}}]}})
say(type="user", message=None)
say(type="news", subtype="weather", sky="blue")
say(type="assistant", message={{"id": "m", "content": [{{"type": "text", "text": "fine"}}]}}, uuid="u")
end("fine")
asked()
"""
    )
    async with pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        events, result = await play(session, "hello")
        assert (result.status, result.text) == ("completed", "fine")
        assert "".join(event.text for event in only(events, Text)) == "fine"
        assert "news/weather" in [event.method for event in only(events, Other)]


async def test_a_line_without_end_ends_the_process_with_an_error_that_says_so(tmp_path: Path) -> None:
    """It may have been a question: whoever waited for the answer would wait for ever."""
    script = (
        GREETS
        + """
begin()
sys.stdout.write("x" * 100_000_000 + "\\n")
end("never")
asked()
"""
    )
    async with pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        _, result = await play(session, "hello")
        assert result.failure is not None
        assert "it sent a line of more than 64 MB" in result.failure.message


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (HELLO + "sys.exit(3)", EngineLost),
        (HELLO.replace("2.1.325", "1.0.3") + "sys.exit(1)", BinaryError),
        ("#!/bin/sh\necho hello\n", BinaryError),
        ("no program at all", BinaryError),
        (HELLO + "answer(asked(), account={{}}, claude_code_version='1.0.3'); asked()", BinaryError),
        (HELLO + "sys.exit('--some-option cannot be used with root/sudo privileges')", EngineCannot),
    ],
)
async def test_what_never_begins_is_an_error_with_a_reason(
    tmp_path: Path, script: str, error: type[Exception]
) -> None:
    """Too old, something else, broken, or not for root; and nothing of it is left running."""
    async with pretending(tmp_path, script) as (engine, hub):
        with pytest.raises(error):
            await session_of(hub, tmp_path)
        assert not engine.is_running


async def test_one_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    """After the time that a handshake may take."""
    async with pretending(tmp_path, HELLO + "time.sleep(600)", handshake_s=0.3) as (engine, hub):
        with pytest.raises(EngineSilent, match="Claude does not answer, and was ended"):
            await session_of(hub, tmp_path)
        assert not engine.is_running


async def test_unknown_requests_are_answered_with_an_error(tmp_path: Path) -> None:
    """Every request gets exactly one answer."""
    script = (
        GREETS
        + """
begin()
for number, request in enumerate((
    {{"subtype": "dance"}},
    {{"subtype": "can_use_tool"}},
    {{"subtype": "mcp_message", "server_name": "other", "message": {{"id": 7, "method": "tools/list"}}}},
    {{}},
    "odd",
    None,
)):
    say(type="control_request", request_id=str(number), request=request)
say(type="control_request", request_id="6")
said = sorted(asked()["response"]["request_id"] for _ in range(7))
end(str(said))
asked()
"""
    )
    async with pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        _, result = await play(session, "hello")
        assert result.text == "['0', '1', '2', '3', '4', '5', '6']"


async def test_half_an_emoji_is_read_as_a_mark_that_one_is_missing(tmp_path: Path) -> None:
    """JavaScript cuts texts there, and writes what no decoder takes: else the message would be lost."""
    script = (
        GREETS
        + r"""
begin()
delta = {{"type": "content_block_delta", "delta": {{"type": "text_delta", "text": "cut \ud83d"}}}}
print('{{"type":"stream_event","event":' + json.dumps(delta) + "}}", flush=True)
command = {{"command": "echo \ude00 \ud83d\ude00"}}
request = {{"subtype": "can_use_tool", "tool_name": "Bash", "input": command}}
say(type="control_request", request_id="a", request=request)
end(str(asked()["response"]["request_id"]))
asked()
"""
    )
    async with pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        shown: list[str | None] = []

        def no(question: Question) -> Answer:
            shown.append(question.command)
            return Answer(choice_id="decline", words="no \udcff")

        events, result = await play(session, "hello", decide=no)
        assert [event.text for event in only(events, Text)] == ["cut \ufffd"]
        assert shown == ["echo \ufffd \U0001f600"]
        assert result.text == "a"


async def test_our_tools_are_asked_for_before_the_handshake_is_answered(tmp_path: Path) -> None:
    """The real Claude Code does so now and then; unanswered, it waits for half a minute."""
    script = (
        HELLO
        + """
hello = asked()
greeting = {{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {{"protocolVersion": "x"}}}}
request = {{"subtype": "mcp_message", "server_name": "laneway", "message": greeting}}
say(type="control_request", request_id="early", request=request)
reply = asked()["response"]
answer(hello, account={{}}, claude_code_version='2.1.325')
begin()
end(reply["request_id"] + " " + reply["response"]["mcp_response"]["result"]["serverInfo"]["name"])
asked()
"""
    )
    async with pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        _, result = await play(session, "hello")
        assert result.text == "early laneway"


async def test_a_death_in_the_middle_of_a_turn_is_told_once(tmp_path: Path) -> None:
    """With its last words."""
    script = (
        GREETS
        + """
begin()
say(type="assistant", message={{"id": "m", "content": [
    {{"type": "tool_use", "id": "t", "name": "Bash", "input": {{"command": "ls"}}}}]}})
print("out of memory", file=sys.stderr, flush=True)
os._exit(9)
"""
    )
    async with pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        subscription = session.subscribe()
        _, result = await play(session, "hello")
        assert result.failure is not None
        assert result.failure.message == "Claude ended unexpectedly: exit code 9; it said: out of memory"
        await session.close()
        gone = only([event async for event in subscription], EngineGone)
        assert [(event.how, event.last_words) for event in gone] == [("exit code 9", "out of memory")]


class Silent:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def on_stream(self, event: StreamEvent, frame: bytes) -> None: ...

    def on_message(self, message: dict[str, Any], frame: bytes) -> None: ...

    def on_request(self, request_id: str, request: dict[str, Any]) -> None: ...

    def on_cancel(self, request_id: str) -> None: ...

    def on_end(self, how: str) -> None:
        self.ends.append(how)


async def test_a_request_of_ours_gets_an_error_when_the_process_dies(tmp_path: Path) -> None:
    """Also one that is sent after the death."""
    claude = program(tmp_path, GREETS + "asked()\nos._exit(4)\n")
    listener = Silent()
    process = ClaudeProcess(listener)
    await process.open([claude.path], {"PATH": "/usr/bin:/bin"}, tmp_path, {})
    for _ in range(2):
        with pytest.raises(EngineLost, match="exit code 4"):
            await process.control("interrupt")
    assert listener.ends == ["exit code 4"]
    await process.aclose()
