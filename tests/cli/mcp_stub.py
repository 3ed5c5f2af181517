"""A tiny MCP server that behaves, or misbehaves, as its flags say: `python mcp_stub.py FLAG… [TOOL…]`.

Stands in for Laneway and for anybody's server; with the word `acp` it is an ACP agent. Imports
nothing of ours: its client may have emptied the environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return dict(json.loads(line))


def tools_of(flags: set[str], params: dict[str, Any]) -> dict[str, Any]:
    if "--no-list" in flags:
        return {"tools": "none"}
    names = [word for word in sys.argv[1:] if not word.startswith("--")]
    if "--pages" not in flags:
        return {"tools": [{"name": name} for name in names]}
    at = int(params.get("cursor", "0"))
    more = {"nextCursor": str(at + 1)} if at + 1 < len(names) else {}
    return {"tools": [{"name": names[at]}], **more}


def main() -> None:
    flags = {word for word in sys.argv[1:] if word.startswith("--")}
    if "--grandchild" in flags:
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        with open(os.environ["STUB_PIDS"], "a") as pids:
            pids.write(f"{os.getpid()} {child.pid}\n")
    if "--exit" in flags:
        sys.stderr.write("Error: stdin is not a terminal\nAPI_KEY=hunter2 \x1b[2J\n")
        sys.exit(7)
    if "--noise" in flags:
        sys.stdout.write("starting…\n\n7\n{half\n")
    while True:
        message = hear()
        method, at = message.get("method"), message.get("id")
        if method == "initialize":
            if "--hang" in flags:
                continue
            if "--error" in flags:
                send({"id": at, "error": {"code": -32000, "message": "go\x1b away"}})
                continue
            if "--asks" in flags:
                send({"id": "q1", "method": "ping"})
                send({"id": "q2", "method": "roots/list"})
                answers = {str(answer["id"]): answer for answer in (hear(), hear())}
                assert answers["q1"]["result"] == {}
                assert answers["q2"]["error"]["code"] == -32601
            if "--other-ids" in flags:
                send({"id": 4711, "result": {"tools": []}})
                send({"id": str(at), "result": "another"})
                send({"method": "notifications/message", "params": {"data": "hi"}})
            name = {"name": "stub", "version": "1.2"}
            abilities: dict[str, Any] = {} if "--no-tools" in flags else {"tools": {}}
            result: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": abilities}
            result["serverInfo"] = name
            if "acp" in sys.argv and "--server" not in flags:
                result = {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": name}
            send({"id": at, "result": [] if "--odd" in flags else result})
        elif method == "tools/list":
            if "--dies-later" in flags:
                os.kill(os.getpid(), 9)
            send({"id": at, "result": tools_of(flags, message.get("params") or {})})


main()
