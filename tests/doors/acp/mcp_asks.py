"""An MCP server whose tools ask the person something: `python mcp_asks.py`. Imports nothing of ours.

`form` wants a colour, `page` has a page opened. Each returns what it was answered, as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

PAGE = "https://example.invalid/consent"
COLOUR = {"type": "string", "title": "Colour", "enum": ["red", "green"]}
ASKED: dict[str, dict[str, Any]] = {
    "form": {
        "mode": "form",
        "message": "Which colour?",
        "requestedSchema": {"type": "object", "properties": {"colour": COLOUR}, "required": ["colour"]},
    },
    "page": {"mode": "url", "message": "Please agree.", "url": PAGE, "elicitationId": "page-1"},
}
"""What each tool asks."""


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "asks", "version": "1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            schema = {"type": "object", "properties": {}}
            return {"tools": [{"name": name, "description": name, "inputSchema": schema} for name in ASKED]}
        case _:
            return {}


def main() -> None:
    calls: dict[Any, Any] = {}
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            told = message.get("result", message.get("error"))
            content = [{"type": "text", "text": json.dumps(told, sort_keys=True)}]
            write({"id": calls.pop(message["id"]), "result": {"content": content}})
        elif method == "tools/call":
            asking = f"ask-{message['id']}"
            calls[asking] = message["id"]
            write({"id": asking, "method": "elicitation/create", "params": ASKED[params["name"]]})
        elif "id" in message:
            write({"id": message["id"], "result": answer(method, params)})


if __name__ == "__main__":
    main()
