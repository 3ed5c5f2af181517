"""The MCP servers that are measured side by side, and a client that talks to any of them.

Ours in both forms; the removed original, from the last Codex that had it; and a wrapper around
`codex exec` from npm. The last two are fetched by `make test-peers` into `.peers`; a missing server
is reported, and its rows are left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from bench.rig import CHILD_S, Rig

PEERS = Path(__file__).resolve().parent.parent / ".peers"
OLD_VERSION = "0.153.4"
NPM_VERSION = "1.4.10"
GREETING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "0"},
}
MODEL = "gpt-5.5"
"""Passed to the npm server, which otherwise chooses one of its own."""

OURS = ("mcp-server", "mcp")
OLD = f"codex {OLD_VERSION}"
NPM = f"npm {NPM_VERSION}"


class Server(msgspec.Struct, frozen=True):
    """How to start one server."""

    name: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    cwd: str

    def first_call(self, prompt: str) -> dict[str, Any]:
        """The arguments of the tool `codex`."""
        return {"prompt": prompt, "model": MODEL} if self.name == NPM else {"prompt": prompt}


def servers(rig: Rig) -> dict[str, Server]:
    """The installed servers by name; ours first."""
    state = rig.home.parent / "state"
    environment = {
        **rig.environment,
        "ATM_HOME": str(state),
        "XDG_STATE_HOME": str(state),
        "LANEWAY_CODEX_BIN": rig.codex,
        "PATH": os.pathsep.join((str(Path(rig.codex).parent), rig.environment["PATH"])),
    }
    laneway = (sys.executable, "-m", "laneway")
    commands = {
        "mcp-server": (*laneway, "mcp-server"),
        "mcp": (*laneway, "mcp", "--max-sessions", "1000"),
        OLD: _old(),
        NPM: _npm(),
    }
    for name, argv in commands.items():
        if argv is None:
            print(f"left out: {name} is not in .peers (make test-peers brings it)")
    return {
        name: Server(name, argv, environment, str(rig.work))
        for name, argv in commands.items()
        if argv is not None
    }


def _old() -> tuple[str, ...] | None:
    programs = (PEERS / f"codex-{OLD_VERSION}").glob("**/codex")
    program = next((path for path in programs if path.is_file() and os.access(path, os.X_OK)), None)
    return (str(program), "mcp-server") if program else None


def _npm() -> tuple[str, ...] | None:
    script = PEERS / f"codex-mcp-server-{NPM_VERSION}/node_modules/codex-mcp-server/dist/index.js"
    runtime = node()
    return (runtime, str(script)) if runtime and script.is_file() else None


def node() -> str | None:
    """The fetched Node, else the system's."""
    fetched = next(iter(sorted(PEERS.glob("node-22*/**/bin/node"))), None)
    return str(fetched) if fetched else shutil.which("node")


class Talk:
    """A blocking JSON-RPC client with its server process; reads messages in their order."""

    def __init__(self, server: Server, *more: str) -> None:
        self.server = server
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [*server.argv, *more],
            env=server.environment,
            cwd=server.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # the scheduler may give each session a share of its own
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin = self.process.stdin
        self._lines = open(self.process.stdout.fileno(), "rb", closefd=False)  # noqa: SIM115  with the process
        self._number = 0

    def send(self, method: str, params: dict[str, Any], request_id: int | None = None) -> None:
        head = {"jsonrpc": "2.0"} if request_id is None else {"jsonrpc": "2.0", "id": request_id}
        self._stdin.write(msgspec.json.encode({**head, "method": method, "params": params}) + b"\n")

    def read(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line:
            raise RuntimeError("the server has gone")
        message: dict[str, Any] = msgspec.json.decode(line)
        return message

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self.send(method, params, self._number)
        while True:
            message = self.read()
            if message.get("id") == self._number and "method" not in message:
                if "error" in message or message["result"].get("isError"):
                    raise RuntimeError(f"{method} failed: {str(message)[:500]}")
                return message["result"]

    def greet(self) -> None:
        self.ask("initialize", GREETING)
        self.send("notifications/initialized", {})

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    @property
    def seconds(self) -> float:
        """Since the process was started."""
        return time.perf_counter() - self.started

    def hang_up(self) -> None:
        self._lines.close()
        try:
            self.process.communicate(timeout=CHILD_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
