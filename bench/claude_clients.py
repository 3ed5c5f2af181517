"""Three clients of the real Claude Code, each a process: `python -m bench.claude_clients SIDE BEGAN_S WORDS`.

`raw` is the least that a client can do: it writes handshake and prompt at once, and decodes each line.
`sdk` is Anthropic's claude-agent-sdk. `ours` is engine, hub, session and a subscriber of every event.
Each prints one JSON line: seconds to the first word of the first turn, from the start of the process and
from the moment at which all is imported; then words, seconds and CPU seconds of a turn with many words.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.clients import Watch
from bench.rig import tell

FIRST = "%say hello"
LINE_BYTES = 64 * 1024 * 1024
RAW = (
    "-p",
    "--verbose",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--include-partial-messages",
    "--permission-prompt-tool=stdio",
    "--setting-sources=user",
)

Words = AsyncIterator[str]
Ask = Callable[[str], Words]
"""Runs one turn; yields its text as it comes."""


@asynccontextmanager
async def raw_client() -> AsyncIterator[Ask]:
    from laneway.claude import locate

    process = await asyncio.create_subprocess_exec(
        locate.find().path, *RAW, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=LINE_BYTES
    )
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    def write(message: dict[str, Any]) -> None:
        stdin.write(msgspec.json.encode(message) + b"\n")

    async def ask(prompt: str) -> Words:
        write({"type": "user", "message": {"role": "user", "content": prompt}})
        async for line in stdout:
            message = msgspec.json.decode(line)
            match message:
                case {"type": "stream_event", "event": {"delta": {"text": str(text)}}}:
                    yield text
                case {"type": "result"}:
                    return

    write({"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}})
    yield ask
    stdin.close()
    await process.wait()


@asynccontextmanager
async def sdk_client() -> AsyncIterator[Ask]:
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, StreamEvent

    options = ClaudeAgentOptions(include_partial_messages=True, setting_sources=["user"])
    async with ClaudeSDKClient(options) as client:

        async def ask(prompt: str) -> Words:
            await client.query(prompt)
            async for message in client.receive_response():
                match message:
                    case StreamEvent(event={"delta": {"text": str(text)}}):
                        yield text

        yield ask


@asynccontextmanager
async def our_client() -> AsyncIterator[Ask]:
    from laneway.base.clock import LoopClock
    from laneway.claude import locate
    from laneway.claude.engine import claude_engine
    from laneway.core.hub import Hub
    from laneway.core.model import Text
    from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
    from laneway.core.session import Session

    sessions: list[Session] = []
    import os

    async with Hub(claude_engine(locate.find(), os.environ), LoopClock()) as hub:

        async def ask(prompt: str) -> Words:
            if not sessions:
                sessions.append(await hub.start("bench", ThreadSpec(cwd=Path.cwd())))
            async for event in sessions[0].say(TurnSpec(parts=(TextPart(prompt),))).events:
                if type(event) is Text:
                    yield event.text

        yield ask


CLIENTS = {"raw": raw_client, "sdk": sdk_client, "ours": our_client}


async def measure(side: str, began_s: float, words: int) -> dict[str, float]:
    imports(side)
    ready_s = time.monotonic()
    async with CLIENTS[side]() as ask:
        first_s = 0.0
        async for _ in ask(FIRST):
            first_s = first_s or time.monotonic()
        watch, count = Watch(), 0
        if words:
            async for text in ask(f"%stream {words} words"):
                count += text.count(" ")
        result = watch.stop(count + 1)
    return {"whole_s": first_s - began_s, "first_s": first_s - ready_s, **result}


def imports(side: str) -> None:
    """What a program imports before it can begin."""
    match side:
        case "sdk":
            import claude_agent_sdk  # noqa: F401
        case "ours":
            import laneway.claude.engine
            import laneway.core.hub  # noqa: F401


if __name__ == "__main__":
    tell(asyncio.run(measure(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))))
