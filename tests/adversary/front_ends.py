"""Every front end as an attacker sees it: one small driver each, so that one attack is tried on all of them.

A front end to come adds a driver to `FRONT_ENDS` and has to pass the whole suite. A driver runs
the real program with the real Codex; it hides the protocol and nothing else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from tests.doors.acp import support as acp
from tests.doors.mcp import support as mcp
from tests.doors.stage import Message, scene

ASKS = "untrusted"
"""The approval policy under which Codex asks before nearly every command."""


class Stage(mcp.Stage, acp.Stage):
    """A scene on which programs of every front end come and go."""


class FrontEnd(Protocol):
    """One running program and its client."""

    shown: list[str]
    """The texts of the questions that a person was asked, as the protocol carried them."""

    async def open(self, cwd: Path) -> str:
        """A new session that works there; its id."""

    async def prompt(self, session_id: str, text: str) -> str:
        """One turn; what the model answered."""

    async def wait_answering(self) -> None:
        """Return when the program has answered a cheap request: it is not stuck."""

    async def refusal(self, session_id: str) -> str:
        """The words in which a prompt for a session that is not there is refused."""

    def send_bytes(self, data: bytes) -> None:
        """Send what no client would send."""

    async def hang_up(self) -> int:
        """Close our end; the program's exit code."""

    @property
    def stderr(self) -> str: ...


Launch: TypeAlias = Callable[..., AbstractAsyncContextManager[FrontEnd]]
"""`launch(stage, *flags, cwd=None, env=None, answer="decline")`: the program, greeted."""


class McpFrontEnd:
    """`laneway mcp` with a client that can be asked."""

    def __init__(self, client: mcp.Client, answer: str) -> None:
        self.shown: list[str] = []
        self._client = client
        self._answer = answer
        client.strays = []
        client.on_ask = self._on_ask

    async def open(self, cwd: Path) -> str:
        content = await self._client.content("codex", prompt="%say Ready.", cwd=str(cwd))
        return str(content["agent_id"])

    async def prompt(self, session_id: str, text: str) -> str:
        return str((await self._client.content("codex-reply", agent_id=session_id, prompt=text))["content"])

    async def wait_answering(self) -> None:
        assert (await self._client.ask("ping"))["result"] == {}

    async def refusal(self, session_id: str) -> str:
        error = await self._client.error("codex-reply", agent_id=session_id, prompt="%say No.")
        return str(error["message"])

    def send_bytes(self, data: bytes) -> None:
        assert self._client.process.stdin is not None
        self._client.process.stdin.write(data)

    async def hang_up(self) -> int:
        return await self._client.hang_up()

    @property
    def stderr(self) -> str:
        return self._client.stderr

    def _on_ask(self, message: Message) -> Message:
        self.shown.append(json.dumps(message["params"], ensure_ascii=False))
        return {"action": self._answer, "content": {"decision": "approved"}}


class AcpFrontEnd:
    """`laneway acp` with an editor that can be asked."""

    def __init__(self, client: acp.Client, answer: str) -> None:
        self.shown: list[str] = []
        self._client = client
        self._answer = "allow_once" if answer == "accept" else "reject_once"
        client.on_permission = self._on_permission

    async def open(self, cwd: Path) -> str:
        return await self._client.new(cwd)

    async def prompt(self, session_id: str, text: str) -> str:
        before = len(self._client.text(session_id))
        await self._client.prompt(session_id, text)
        return self._client.text(session_id)[before:]

    async def wait_answering(self) -> None:
        await self._client.ask("session/list", {})

    async def refusal(self, session_id: str) -> str:
        params = {"sessionId": session_id, "prompt": [{"type": "text", "text": "%say No."}]}
        return str((await self._client.refusal("session/prompt", params, lint=False))["message"])

    def send_bytes(self, data: bytes) -> None:
        for line in data.splitlines():
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict):
                self._client.lint.note("client", message)  # what answers it is no answer to nothing
        self._client.send_bytes(data)

    async def hang_up(self) -> int:
        return await self._client.hang_up()

    @property
    def stderr(self) -> str:
        return self._client.stderr

    def _on_permission(self, params: Message) -> Any:
        self.shown.append(json.dumps(params, ensure_ascii=False))
        return acp.select(params, self._answer)


@asynccontextmanager
async def launch_mcp(
    stage: Stage, *flags: str, answer: str = "decline", **where: Any
) -> AsyncIterator[FrontEnd]:
    async with stage.server("mcp", *flags, capabilities=mcp.FORMS, **where) as client:
        yield McpFrontEnd(client, answer)


@asynccontextmanager
async def launch_acp(
    stage: Stage, *flags: str, answer: str = "decline", **where: Any
) -> AsyncIterator[FrontEnd]:
    async with stage.agent(*flags, capabilities=acp.FULL, **where) as client:
        yield AcpFrontEnd(client, answer)


FRONT_ENDS: dict[str, Launch] = {"mcp": launch_mcp, "acp": launch_acp}


@asynccontextmanager
async def attacked(state: Path, extra_config: str = "") -> AsyncIterator[Stage]:
    """A stage for attacks, under one deadline."""
    async with asyncio.timeout(mcp.DEADLINE_S), scene(state, extra_config) as parts:
        yield Stage(*parts)
