"""The ACP agents that are measured side by side, and a client for each of them.

Ours; the official adapter, told to use the same Codex; the older one, which has a Codex of its own inside;
and app-server itself, which is what they all stand before. The two others are fetched by `make test-peers`
into `.peers`; an agent that is not there is named aloud, and its rows are left out.
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
"""One read of the editor: what a pipe holds."""
LEAVE_S = 3.0
"""For an agent to end when its client has hung up. The older one never does, and is ended."""
CHUNK = b'"agent_message_chunk"'
END = b'"stopReason"'


def agents(rig: Rig) -> dict[str, Server]:
    """All that are here, by name; ours first."""
    environment = {
        **rig.environment,
        "ATM_HOME": str(rig.home.parent / "state"),
        "LANEWAY_CODEX_BIN": rig.codex,
        "CODEX_PATH": rig.codex,
    }
    found = {
        OURS: (sys.executable, "-m", "laneway", "acp"),
        OFFICIAL: _official(),
        OLDER: _older(),
        RAW: (rig.codex, "app-server"),
    }
    for name, argv in found.items():
        if argv is None:
            print(f"left out: {name} is not in .peers (make test-peers brings it)")
    return {
        name: Server(name, argv, environment, str(rig.work))
        for name, argv in found.items()
        if argv is not None
    }


def _official() -> tuple[str, ...] | None:
    script = PEERS / "codex-acp-2.6.0/node_modules/@agentclientprotocol/codex-acp/dist/index.js"
    runtime = node()
    return (runtime, str(script)) if runtime and script.is_file() else None


def _older() -> tuple[str, ...] | None:
    """Its npm package is a starter in Node; the program alone is what editors run."""
    folder = PEERS / "zed-codex-acp-0.16.0/node_modules/@zed-industries"
    programs = folder.glob("codex-acp-*/bin/codex-acp")
    program = next((path for path in programs if os.access(path, os.X_OK)), None)
    return (str(program),) if program else None


def open_client(server: Server) -> Client:
    """Start an agent and greet it not yet."""
    return Bare(server) if server.name == RAW else Editor(server)


class Client(Talk):
    """What an editor does, whatever stands on the other side."""

    def wait_ready(self) -> None:
        """Until Codex is there, too: some agents greet before it is."""
        raise NotImplementedError

    def new(self, work: Path) -> str:
        """The id of a new session."""
        raise NotImplementedError

    def prompt(self, session_id: str, text: str) -> None:
        """Begin; `wait_chunk` and `wait_end` tell how it goes."""
        raise NotImplementedError

    def cancel(self, session_id: str) -> None:
        raise NotImplementedError

    def wait_chunk(self) -> None:
        """Until the first text of the answer."""
        raise NotImplementedError

    def wait_end(self) -> None:
        """Until the prompt's turn is over."""
        raise NotImplementedError

    def load(self, thread_id: str, work: Path) -> int:
        """A session of an earlier process; return how many messages told of it."""
        raise NotImplementedError

    def hang_up(self) -> None:
        self._lines.close()
        try:
            self.process.communicate(timeout=LEAVE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Editor(Client):
    """An ACP client without abilities, which reads as fast as anybody can."""

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
        told = 0
        while True:
            message = self.read()
            if message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"the session was not loaded: {str(message)[:500]}")
                return told
            told += message.get("method") == "session/update"

    def words(self) -> tuple[int, int]:
        """Words and messages with text until the prompt's answer.

        Decodes nothing, so as to take no time from the agent: none of these writes a space outside a
        string, and in a chunk of text no string but the text has any.
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
    """The client that app-server itself would have."""

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
        asked = {"threadId": session_id, "input": [{"type": "text", "text": text}]}
        self._turn_id = self.ask("turn/start", asked)["turn"]["id"]

    def cancel(self, session_id: str) -> None:
        self._number += 1
        self.send("turn/interrupt", {"threadId": session_id, "turnId": self._turn_id}, self._number)

    def wait_chunk(self) -> None:
        self._wait("item/agentMessage/delta")

    def wait_end(self) -> None:
        self._wait("turn/completed")

    def load(self, thread_id: str, work: Path) -> int:
        """All turns in one answer."""
        resumed = self.ask("thread/resume", {"threadId": thread_id, "cwd": str(work)})
        return sum(len(turn["items"]) for turn in resumed["thread"]["turns"])

    def _wait(self, method: str) -> None:
        while self.read().get("method") != method:
            pass
