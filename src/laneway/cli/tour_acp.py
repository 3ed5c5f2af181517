"""The tour's stop at the ACP door: a small editor of its own, talking to `laneway acp` as Zed would."""

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
from laneway.base.errors import WireBroken
from laneway.base.plain import label, plain
from laneway.wire.child import Child
from laneway.wire.peer import Peer, Raw

Note = Callable[[str], None]

MODE = "code"
"""The mode that the editor chooses: config.toml of a rehearsal says nothing about sandboxes."""
WORDS = 12
OUTPUT = "hello from the sandbox"
GRANTED = "granted-by-the-editor"
"""A file outside the workspace: the command that makes it has to ask."""
ALLOW_ONCE = "allow_once"


class Editor:
    """An ACP client with a panel: text as it comes, tool calls by their id, buttons to press."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._child: Child | None = None
        self.agent = ""
        self.chunks: list[str] = []
        self.calls: dict[str, dict[str, Any]] = {}
        self.offered: list[str] = []
        """The kinds of options of the last permission request."""
        self._heard = asyncio.Event()
        self._peer = Peer(self._write, on_request=self._on_request, on_notification=self._on_notification)

    async def open(self, *flags: str) -> None:
        self._child = await Child.spawn(
            [sys.executable, "-m", "laneway", "acp", "--rehearse", *flags],
            on_stdout=self._peer.feed,
            on_end=lambda how: self._peer.feed_eof(WireBroken(f"The agent ended: {how}")),
        )
        about = {"name": "laneway-tour", "version": __version__}
        hello = {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": about}
        info = (await self._peer.call("initialize", hello)).get("agentInfo", {})
        self.agent = f"{info.get('title')} {info.get('version')}"

    async def new(self, folder: Path) -> dict[str, Any]:
        found: dict[str, Any] = await self._peer.call("session/new", {"cwd": str(folder), "mcpServers": []})
        return found

    async def choose(self, session_id: str, option: str, value: str) -> dict[str, str]:
        """Set an option; where all of them stand then."""
        asked = {"sessionId": session_id, "configId": option, "value": value}
        return standing(await self._peer.call("session/set_config_option", asked))

    async def prompt(self, session_id: str, words: str) -> str:
        """Its stop reason; what comes meanwhile is in `chunks` and `calls`."""
        self._note(f"session/prompt {words}")
        self.chunks.clear()
        self.calls.clear()
        text = [{"type": "text", "text": words}]
        answer = await self._peer.call("session/prompt", {"sessionId": session_id, "prompt": text})
        return str(answer.get("stopReason"))

    async def prompt_and_cancel(self, session_id: str, words: str) -> tuple[str, float]:
        """Cancel as soon as something was said: the stop reason, and how long that took."""
        self._heard.clear()
        running = asyncio.ensure_future(self.prompt(session_id, words))
        heard = asyncio.ensure_future(self._heard.wait())
        try:
            await asyncio.wait((running, heard), return_when=asyncio.FIRST_COMPLETED)
            began = time.perf_counter()
            self._note("session/cancel")
            self._peer.notify("session/cancel", {"sessionId": session_id})
            return await running, time.perf_counter() - began
        finally:
            running.cancel()
            heard.cancel()

    async def aclose(self) -> None:
        await self._peer.aclose()
        if self._child is not None:
            await self._child.stop()

    def _write(self, data: bytes) -> None:
        if self._child is not None:
            self._child.write(data)

    def _on_notification(self, method: str, params: Raw, frame: bytes) -> None:
        if method != "session/update":
            return
        update = msgspec.json.decode(params)["update"]
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            self.chunks.append(update["content"].get("text", ""))
            self._heard.set()
        elif kind in ("tool_call", "tool_call_update"):
            call = self.calls.setdefault(update["toolCallId"], {})
            call |= update
            if kind == "tool_call":
                self._note(f"▸ {label(str(call.get('title')))}")

    async def _on_request(self, method: str, params: Raw, request_id: bytes) -> Any:
        """Whoever sits at this editor allows once, and nothing for ever."""
        asked = msgspec.json.decode(params)
        options = asked.get("options", [])
        self.offered = [option["kind"] for option in options]
        self._note(f"? {label(str(asked.get('toolCall', {}).get('title')))}")
        for option in options:
            is_pressed = option["kind"] == ALLOW_ONCE
            self._note(f"  {'[x]' if is_pressed else '[ ]'} {label(option['name'])}")
        pressed = next((each["optionId"] for each in options if each["kind"] == ALLOW_ONCE), None)
        if pressed is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": pressed}}


@asynccontextmanager
async def editor(note: Note, *flags: str) -> AsyncIterator[Editor]:
    guest = Editor(note)
    try:
        await guest.open(*flags)
        yield guest
    finally:
        await guest.aclose()


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    modes: list[str]
    before: dict[str, str]
    """Where the options of a new session stand."""
    after: dict[str, str]
    """And once a mode is chosen."""
    text: str
    chunks: int
    output: str
    """What the panel shows of the command."""
    statuses: list[str]
    offered: list[str]
    """The kinds of the buttons."""
    is_granted: bool
    stops: list[str]
    """The stop reasons of the prompts, in order."""
    cancel_s: float


async def visit(client: Editor, folder: Path, note: Note) -> Visit:
    """Everything that an editor shows of a session, once; the caller limits the time."""
    session = await client.new(folder)
    session_id = str(session.get("sessionId"))
    modes = [mode["id"] for mode in session.get("modes", {}).get("availableModes", [])]
    before = standing(session)
    note(f"session/new of {client.agent}\n  {_row(before)}")
    after = await client.choose(session_id, "mode", MODE)
    note(f"session/set_config_option mode {MODE} (one of {', '.join(modes)})")
    stops = [await client.prompt(session_id, f"%stream {WORDS} words over 0.2 seconds")]
    text, chunks = "".join(client.chunks), len(client.chunks)
    note(plain(text))
    stops.append(await client.prompt(session_id, f"%run echo {OUTPUT}"))
    statuses = [str(call.get("status")) for call in client.calls.values()]
    output = "\n".join(shown(call) for call in client.calls.values())
    note("\n".join(f"  {plain(line)}" for line in output.splitlines() if line.strip("`")))
    stops.append(await client.prompt(session_id, f"%run! touch ../{GRANTED}"))
    stop, cancel_s = await client.prompt_and_cancel(session_id, "%stream 1000 words over 60 seconds")
    return Visit(
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


def standing(answer: dict[str, Any]) -> dict[str, str]:
    """The options by their id, as an editor would show them."""
    return {option["id"]: str(option["currentValue"]) for option in answer.get("configOptions", [])}


def shown(call: dict[str, Any]) -> str:
    """The text of a tool call that every client can show."""
    blocks = [block.get("content", {}) for block in call.get("content") or () if block["type"] == "content"]
    return "\n".join(str(block.get("text", "")) for block in blocks)


def _row(options: dict[str, str]) -> str:
    return " · ".join(f"{name} {label(value)}" for name, value in options.items())
