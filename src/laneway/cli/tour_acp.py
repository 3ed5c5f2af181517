"""The tour's ACP demo: a small ACP client that talks to `laneway acp` as Zed would."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway import __version__
from laneway.base.plain import label, plain
from laneway.cli.rpc_program import RpcProgram
from laneway.wire.peer import Raw

Note = Callable[[str], None]

MODE = "code"
"""The mode that the editor chooses: a rehearsal's config.toml sets no sandbox."""
WORDS = 12
OUTPUT = "hello from the sandbox"
GRANTED = "granted-by-the-editor"
"""A file outside the workspace: the command that creates it needs an approval."""
ALLOW_ONCE = "allow_once"


class Editor:
    """An ACP client that collects text chunks and tool calls, and allows every permission request once."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self.agent = ""
        self.chunks: list[str] = []
        self.calls: dict[str, dict[str, Any]] = {}
        self.offered: list[str] = []
        """The kinds of options of the last permission request."""
        self._has_text = asyncio.Event()
        self._server = RpcProgram("agent", self._on_request, self._on_notification)
        self._peer = self._server.peer

    async def open(self, *flags: str) -> None:
        await self._server.open([sys.executable, "-m", "laneway", "acp", "--rehearse", *flags])
        about = {"name": "laneway-tour", "version": __version__}
        hello = {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": about}
        info = (await self._peer.call("initialize", hello)).get("agentInfo", {})
        self.agent = f"{info.get('title')} {info.get('version')}"

    async def new(self, folder: Path) -> dict[str, Any]:
        session: dict[str, Any] = await self._peer.call("session/new", {"cwd": str(folder), "mcpServers": []})
        return session

    async def choose(self, session_id: str, option: str, value: str) -> dict[str, str]:
        """Set an option; returns the values of all options."""
        params = {"sessionId": session_id, "configId": option, "value": value}
        return option_values(await self._peer.call("session/set_config_option", params))

    async def prompt(self, session_id: str, words: str) -> str:
        """Send a prompt; returns its stop reason. Updates are collected in `chunks` and `calls`."""
        self._note(f"session/prompt {words}")
        self.chunks.clear()
        self.calls.clear()
        text = [{"type": "text", "text": words}]
        answer = await self._peer.call("session/prompt", {"sessionId": session_id, "prompt": text})
        return str(answer.get("stopReason"))

    async def prompt_and_cancel(self, session_id: str, words: str) -> tuple[str, float]:
        """Cancel after the first text; returns the stop reason, and how long cancelling took."""
        self._has_text.clear()
        running = asyncio.ensure_future(self.prompt(session_id, words))
        has_text = asyncio.ensure_future(self._has_text.wait())
        try:
            await asyncio.wait((running, has_text), return_when=asyncio.FIRST_COMPLETED)
            began = time.perf_counter()
            self._note("session/cancel")
            self._peer.notify("session/cancel", {"sessionId": session_id})
            return await running, time.perf_counter() - began
        finally:
            running.cancel()
            has_text.cancel()

    async def aclose(self) -> None:
        await self._server.aclose()

    def _on_notification(self, method: str, params: Raw, frame: bytes) -> None:
        if method != "session/update":
            return
        update = msgspec.json.decode(params)["update"]
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            self.chunks.append(update["content"].get("text", ""))
            self._has_text.set()
        elif kind in ("tool_call", "tool_call_update"):
            call = self.calls.setdefault(update["toolCallId"], {})
            call |= update
            if kind == "tool_call":
                self._note(f"▸ {label(str(call.get('title')))}")

    async def _on_request(self, method: str, params: Raw, request_id: bytes) -> Any:
        """Allow once, and nothing for ever."""
        request = msgspec.json.decode(params)
        options = request.get("options", [])
        self.offered = [option["kind"] for option in options]
        self._note(f"? {label(str(request.get('toolCall', {}).get('title')))}")
        for option in options:
            is_pressed = option["kind"] == ALLOW_ONCE
            self._note(f"  {'[x]' if is_pressed else '[ ]'} {label(option['name'])}")
        pressed = next((each["optionId"] for each in options if each["kind"] == ALLOW_ONCE), None)
        if pressed is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": pressed}}


@asynccontextmanager
async def editor(note: Note, *flags: str) -> AsyncIterator[Editor]:
    client = Editor(note)
    try:
        await client.open(*flags)
        yield client
    finally:
        await client.aclose()


class EditorDemo(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the demo."""

    modes: list[str]
    before: dict[str, str]
    """The options of a new session."""
    after: dict[str, str]
    """The options after a mode was chosen."""
    text: str
    chunks: int
    output: str
    """The command's output, as the editor would show it."""
    statuses: list[str]
    offered: list[str]
    """The kinds of the permission options."""
    is_granted: bool
    stops: list[str]
    """The stop reasons of the prompts, in order."""
    cancel_s: float


async def run_demo(client: Editor, folder: Path, note: Note) -> EditorDemo:
    """Use each feature that an editor shows, once; the caller limits the time."""
    session = await client.new(folder)
    session_id = str(session.get("sessionId"))
    modes = [mode["id"] for mode in session.get("modes", {}).get("availableModes", [])]
    before = option_values(session)
    note(f"session/new of {client.agent}\n  {_row(before)}")
    after = await client.choose(session_id, "mode", MODE)
    note(f"session/set_config_option mode {MODE} (one of {', '.join(modes)})")
    stops = [await client.prompt(session_id, f"%stream {WORDS} words over 0.2 seconds")]
    text, chunks = "".join(client.chunks), len(client.chunks)
    note(plain(text))
    stops.append(await client.prompt(session_id, f"%run echo {OUTPUT}"))
    statuses = [str(call.get("status")) for call in client.calls.values()]
    output = "\n".join(text_of(call) for call in client.calls.values())
    note("\n".join(f"  {plain(line)}" for line in output.splitlines() if line.strip("`")))
    stops.append(await client.prompt(session_id, f"%run! touch ../{GRANTED}"))
    stop, cancel_s = await client.prompt_and_cancel(session_id, "%stream 1000 words over 60 seconds")
    return EditorDemo(
        modes=modes,
        before=before,
        after=after,
        text=text,
        chunks=chunks,
        output=output,
        statuses=statuses,
        offered=client.offered,
        is_granted=(folder.parent / GRANTED).exists(),
        stops=[*stops, stop],
        cancel_s=cancel_s,
    )


def option_values(answer: dict[str, Any]) -> dict[str, str]:
    """The current values of the options, by their id."""
    return {option["id"]: str(option["currentValue"]) for option in answer.get("configOptions", [])}


def text_of(call: dict[str, Any]) -> str:
    """The text of a tool call that every client can show."""
    blocks = [block.get("content", {}) for block in call.get("content") or () if block["type"] == "content"]
    return "\n".join(str(block.get("text", "")) for block in blocks)


def _row(options: dict[str, str]) -> str:
    return " · ".join(f"{name} {label(value)}" for name, value in options.items())
