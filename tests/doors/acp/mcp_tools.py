"""An MCP server whose tools return every kind of content: `python mcp_tools.py`. Imports nothing of ours."""

from __future__ import annotations

import json
import sys
from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
RESULTS: dict[str, dict[str, Any]] = {
    "words": {"content": [{"type": "text", "text": "Said by the server."}]},
    "picture": {
        "content": [
            {"type": "text", "text": "One point:"},
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        ]
    },
    "papers": {
        "content": [
            {
                "type": "resource_link",
                "uri": "file:///a/paper.txt",
                "name": "paper",
                "mimeType": "text/plain",
            },
            {
                "type": "resource",
                "resource": {"uri": "note://1", "mimeType": "text/plain", "text": "A note."},
            },
        ]
    },
    "figures": {"content": [], "structuredContent": {"sum": 42}},
    "trouble": {"content": [{"type": "text", "text": "It did not work."}], "isError": True},
}
"""What each tool answers with. `patience` answers never."""
NAMES = (*RESULTS, "patience")


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            version = params["protocolVersion"]
            info = {"name": "tools", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            schema = {"type": "object", "properties": {"about": {"type": "string"}}}
            return {"tools": [{"name": name, "description": name, "inputSchema": schema} for name in NAMES]}
        case "tools/call":
            return RESULTS.get(params["name"])
        case _:
            return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        if result is not None:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
