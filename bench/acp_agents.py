"""The ACP agents that are measured side by side, and a client for each of them.

Ours; the official adapter, set to use the same Codex; the older one, which contains a Codex of its own;
and app-server itself, without an adapter. The two others are fetched by `make test-peers` into `.peers`; a
missing agent is reported, and its rows are left out.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.mcp_servers import PEERS, Server, Talk, node
from bench.rig import Rig

OURS = "laneway acp"
OFFICIAL = "codex-acp 2.6.0"
OLDER = "zed codex-acp 0.16.0"
RAW = "raw app-server"
OTHERS = (OFFICIAL, OLDER)
GREETING: dict[str, Any] = {
    "protocolVersion": 1,
    "clientCapabilities": {},
    "clientInfo": {"name": "bench", "version": "0"},
}
READ_BYTES = 64 * 1024
"""One read of the client: what a pipe holds."""
LEAVE_S = 3.0
"""For an agent to end after its client has disconnected. The older one never does, and is killed."""
CHUNK = b'"agent_message_chunk"'
END = b'"stopReason"'


def agents(rig: Rig) -> dict[str, Server]:
    """The installed agents by name; ours first."""
    environment = {
        **rig.environment,
        "ATM_HOME": str(rig.home.parent / "state"),
        "XDG_STATE_HOME": str(rig.home.parent / "state"),
        "LANEWAY_CODEX_BIN": rig.codex,
        "CODEX_PATH": rig.codex,
    }
    commands = {
        OURS: (sys.executable, "-m", "laneway", "acp"),
        OFFICIAL: _official(),
        OLDER: _older(),
        RAW: (rig.codex, "app-server"),
    }
    for name, argv in commands.items():
        if argv is None:
            print(f"left out: {name} is not in .peers (make test-peers brings it)")
    return {
        name: Server(name, argv, environment, str(rig.work))
        for name, argv in commands.items()
        if argv is not None
    }


def _official() -> tuple[str, ...] | None:
    script = PEERS / "codex-acp-2.6.0/node_modules/@agentclientprotocol/codex-acp/dist/index.js"
    runtime = node()
    return (runtime, str(script)) if runtime and script.is_file() else None


def _older() -> tuple[str, ...] | None:
    """The executable alone, as editors run it: its npm package is a launcher in Node."""
    folder = PEERS / "zed-codex-acp-0.16.0/node_modules/@zed-industries"
    programs = folder.glob("codex-acp-*/bin/codex-acp")
    program = next((path for path in programs if os.access(path, os.X_OK)), None)
    return (str(program),) if program else None


def open_client(server: Server) -> Client:
    """Start an agent, without initializing it."""
    return Bare(server) if server.name == RAW else Editor(server)


class Client(Talk):
    """What an editor does, with an ACP agent or with app-server itself."""

    def wait_ready(self) -> None:
        """Wait until Codex is ready, too: some agents answer `initialize` before it is."""
        raise NotImplementedError

    def new(self, work: Path) -> str:
        """Open a session; returns its id."""
        raise NotImplementedError

    def prompt(self, session_id: str, text: str) -> None:
        """Start a turn; use `wait_chunk` and `wait_end` to follow it."""
        raise NotImplementedError

    def cancel(self, session_id: str) -> None:
        raise NotImplementedError

    def wait_chunk(self) -> None:
        """Wait for the first text of the answer."""
        raise NotImplementedError

    def wait_end(self) -> None:
        """Wait for the end of the turn."""
        raise NotImplementedError

    def load(self, thread_id: str, work: Path) -> int:
        """Open a session of an earlier process; returns the number of messages in its replay."""
        raise NotImplementedError

    def hang_up(self) -> None:
        self._lines.close()
        try:
            self.process.communicate(timeout=LEAVE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Editor(Client):
    """An ACP client without optional capabilities, which reads as fast as possible."""

    def greet(self) -> None:
        self.ask("initialize", GREETING)

    def wait_ready(self) -> None:
        self.ask("session/list", {})

    def new(self, work: Path) -> str:
        return str(self.ask("session/new", {"cwd": str(work), "mcpServers": []})["sessionId"])

    def prompt(self, session_id: str, text: str) -> None:
        self._number += 1
        parts = [{"type": "text", "text": text}]
        self.send("session/prompt", {"sessionId": session_id, "prompt": parts}, self._number)

    def cancel(self, session_id: str) -> None:
        self.send("session/cancel", {"sessionId": session_id})

    def wait_chunk(self) -> None:
        while True:
            message = self.read()
            if message.get("id") == self._number and "method" not in message:
                raise RuntimeError(f"ended without a word: {str(message)[:500]}")
            update = message.get("params", {}).get("update", {})
            if update.get("sessionUpdate") == "agent_message_chunk":
                return

    def wait_end(self) -> None:
        while True:
            message = self.read()
            if message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"the prompt failed: {str(message)[:500]}")
                return

    def load(self, thread_id: str, work: Path) -> int:
        name = f"sess_{thread_id}" if self.server.name == OURS else thread_id
        self._number += 1
        params = {"sessionId": name, "cwd": str(work), "mcpServers": []}
        self.send("session/load", params, self._number)
        updates = 0
        while True:
            message = self.read()
            if message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"the session was not loaded: {str(message)[:500]}")
                return updates
            updates += message.get("method") == "session/update"

    def words(self) -> tuple[int, int]:
        """Words and messages with text until the prompt's answer.

        Decodes nothing, to leave the CPU to the agent: none of these agents writes a space outside a
        string, and in a text chunk no other string contains one.
        """
        words = chunks = 0
        tail = b""
        while True:
            data = self._lines.read1(READ_BYTES)
            if not data:
                raise RuntimeError("the agent has gone")
            lines, newline, rest = data.rpartition(b"\n")
            if not newline:
                tail += data
                continue
            whole, tail = tail + lines, rest
            for line in whole.split(b"\n"):
                if CHUNK in line:
                    chunks += 1
                    words += line.count(b" ")
                elif END in line:
                    return words, chunks


class Bare(Client):
    """A client of app-server itself."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._turn_id = ""

    def greet(self) -> None:
        who = {"name": "raw", "title": "raw", "version": "0"}
        self.ask("initialize", {"clientInfo": who, "capabilities": {"experimentalApi": True}})
        self.send("initialized", {})

    def wait_ready(self) -> None:
        self.ask("thread/list", {})

    def new(self, work: Path) -> str:
        return str(self.ask("thread/start", {"cwd": str(work)})["thread"]["id"])

    def prompt(self, session_id: str, text: str) -> None:
        params = {"threadId": session_id, "input": [{"type": "text", "text": text}]}
        self._turn_id = self.ask("turn/start", params)["turn"]["id"]

    def cancel(self, session_id: str) -> None:
        self._number += 1
        self.send("turn/interrupt", {"threadId": session_id, "turnId": self._turn_id}, self._number)

    def wait_chunk(self) -> None:
        self._wait("item/agentMessage/delta")

    def wait_end(self) -> None:
        self._wait("turn/completed")

    def load(self, thread_id: str, work: Path) -> int:
        """The number of items: app-server sends all turns in one answer."""
        resumed = self.ask("thread/resume", {"threadId": thread_id, "cwd": str(work)})
        return sum(len(turn["items"]) for turn in resumed["thread"]["turns"])

    def _wait(self, method: str) -> None:
        while self.read().get("method") != method:
            pass
