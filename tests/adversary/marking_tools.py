"""An MCP server with one tool that writes: `python marking_tools.py FILE`. Imports nothing of ours.

FILE says that the server was started, FILE.called that its tool was called.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def answer(method: str, params: dict[str, Any], mark: Path) -> dict[str, Any]:
    match method:
        case "initialize":
            version = params["protocolVersion"]
            info = {"name": "marking", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            tool = {"name": "leave_a_mark", "description": "Writes.", "inputSchema": {"type": "object"}}
            return {"tools": [tool]}
        case "tools/call":
            mark.with_name(f"{mark.name}.called").touch()
            return {"content": [{"type": "text", "text": "written"}]}
        case _:
            return {}


def main() -> None:
    mark = Path(sys.argv[1])
    mark.touch()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params") or {}, mark)
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
