"""The real Claude Code against a scripted model, offline: headless and in a terminal.

Owns a temporary home, the scripted model and every process of Claude Code started in it. The binary
is the one inside the `claude-agent-sdk` wheel. Knows nothing of the MCP servers that it registers.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

import laneway
from laneway.rehearsal.claude_home import throwaway_claude
from laneway.rehearsal.messages import ClaudeModel
from laneway.testing.terminal import Terminal, terminal
from laneway.wire.child import Child, Exit

INHERITED = ("PATH", "LANG", "LANEWAY_CODEX_BIN")
"""The variables of our environment that Claude Code gets, besides PYTHONPATH."""
ANSWER_S = 60.0
"""A whole turn of the model, with a tool that starts the real Codex on a busy machine."""
OWN_END_S = 10.0
"""For Claude Code to end after its input has ended; it gives its MCP servers half a second."""
MAX_UNREAD = 10_000
"""Messages that a test may leave unread; a turn has some ten."""
WITHOUT_INPUT = ("/bin/sh", "-c", 'exec "$0" "$@" </dev/null')
"""Without this, Claude Code would wait for input from a pipe."""

Message = dict[str, Any]
Elicit = Callable[[Message], Message]


def find() -> Path | None:
    """The Claude Code of the `claude-agent-sdk` wheel, if that is installed."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    binary = Path(spec.origin).parent / "_bundled" / "claude"
    return binary if binary.exists() else None


class ClaudeRun(msgspec.Struct, frozen=True):
    end: Exit
    output: str
    errors: str


class Headless:
    """One headless conversation: `messages = await claude.ask(prompt)`.

    `elicit` answers in place of a person: it gets an MCP server's question as Claude Code sends it and
    returns `{"action": …, "content": …}`. Without it we are a host that does not support such
    questions, like `claude-agent-sdk`.
    """

    def __init__(self, elicit: Elicit | None = None) -> None:
        self._elicit = elicit
        self._child: Child | None = None
        self._unread: asyncio.Queue[Message | None] = asyncio.Queue(MAX_UNREAD)
        self._partial = b""

    async def ask(self, prompt: str, deadline_s: float = ANSWER_S) -> list[Message]:
        """Send a prompt; return all messages up to and including the result."""
        assert self._child is not None
        self._write({"type": "user", "message": {"role": "user", "content": prompt}})
        messages: list[Message] = []
        try:
            async with asyncio.timeout(deadline_s):
                while not messages or messages[-1]["type"] != "result":
                    message = await self._unread.get()
                    if message is None:
                        raise RuntimeError(f"Claude Code ended in the middle: {self._child.stderr_tail}")
                    messages.append(message)
        except TimeoutError:
            raise TimeoutError(f"no result within {deadline_s} s, only {messages}") from None
        return messages

    async def _start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> Child:
        self._child = await Child.spawn(
            argv, on_stdout=self._on_output, on_end=self._on_end, env=env, cwd=cwd
        )
        return self._child

    def _write(self, message: Message) -> None:
        assert self._child is not None
        self._child.write(json.dumps(message).encode() + b"\n")

    def _on_output(self, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message["type"] == "control_request":
                self._write({"type": "control_response", "response": self._reply(message)})
            else:
                self._unread.put_nowait(message)

    def _reply(self, message: Message) -> Message:
        request = message["request"]
        reply = {"request_id": message["request_id"]}
        if request["subtype"] == "elicitation" and self._elicit is not None:
            return {**reply, "subtype": "success", "response": self._elicit(request)}
        return {**reply, "subtype": "error", "error": "This host does not know such questions."}

    def _on_end(self, end: Exit) -> None:
        self._unread.put_nowait(None)


class ClaudeHome(msgspec.Struct, frozen=True):
    """Claude Code in an environment of its own. Everything it starts ends with the `async with`."""

    model: ClaudeModel
    work: Path
    """The folder that Claude Code works in; trusted, a repository of its own."""
    binary: Path
    environment: dict[str, str]

    async def run(self, *arguments: str, deadline_s: float = ANSWER_S) -> ClaudeRun:
        """Run a command to its end, such as `mcp add codex -- laneway mcp`."""
        output = bytearray()
        argv = [*WITHOUT_INPUT, str(self.binary), *arguments]
        child = await Child.spawn(argv, on_stdout=output.extend, env=self.environment, cwd=self.work)
        try:
            async with asyncio.timeout(deadline_s):
                end = await child.wait()
        finally:
            await child.stop()
        return ClaudeRun(end, output.decode(), child.stderr_tail)

    async def print(self, prompt: str, *options: str) -> list[Message]:
        """One turn of `claude -p PROMPT`, without anybody to answer questions."""
        flags = ("--output-format", "stream-json", "--verbose")
        ran = await self.run("-p", prompt, *flags, *options)
        if ran.end != Exit(code=0):
            raise RuntimeError(f"Claude Code failed ({ran.end}): {ran.output}{ran.errors}")
        return [json.loads(line) for line in ran.output.splitlines()]

    @asynccontextmanager
    async def headless(self, *options: str, elicit: Elicit | None = None) -> AsyncIterator[Headless]:
        """A conversation as in the SDK: `claude -p` with JSON in both directions."""
        claude = Headless(elicit)
        both = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
        child = await claude._start([str(self.binary), "-p", *both, *options], self.environment, self.work)
        try:
            yield claude
        finally:
            await child.stop(OWN_END_S)

    @asynccontextmanager
    async def interactive(self, *options: str, **screen_options: Any) -> AsyncIterator[Terminal]:
        """Claude Code in a terminal, ready for the first prompt. `screen_options` are those of `terminal`."""
        argv = [str(self.binary), *options]
        async with terminal(argv, env=self.environment, cwd=self.work, **screen_options) as screen:
            await screen.wait_for("❯")
            yield screen


async def say(screen: Terminal, prompt: str) -> None:
    """Type a prompt, wait until all of it has arrived, and send it: else Enter would paste a line break."""
    screen.type(prompt)
    await screen.wait_for(prompt)
    screen.press("enter")


@asynccontextmanager
async def claude_home(
    binary: Path, environment: Mapping[str, str] | None = None, model: ClaudeModel | None = None
) -> AsyncIterator[ClaudeHome]:
    """A home in which Claude Code does not ask for a login, for colours or for trust in the folder."""
    model = model or ClaudeModel()
    async with model.server() as server:
        with throwaway_claude(server.origin) as here:
            # Without a repository of its own, the folder would belong to the one that contains the cache.
            await asyncio.to_thread(subprocess.run, ["git", "init", "--quiet", str(here.work)], check=True)
            yield ClaudeHome(
                model,
                here.work,
                binary,
                {
                    **{name: os.environ[name] for name in INHERITED if name in os.environ},
                    **here.variables,
                    "PYTHONPATH": str(Path(laneway.__file__).parent.parent),
                    "HOME": str(here.work.parent),
                    "TERM": "xterm-256color",
                    **(environment or {}),
                },
            )
