"""An MCP server without tools: writes its name into a log when it is started. `mcp_stub.py LOG NAME …`."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    with Path(sys.argv[1]).open("a") as log:
        log.write(f"{sys.argv[2]}\n")
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "initialize":
            version = message["params"]["protocolVersion"]
            server = {"name": "stub", "version": "1"}
            reply(message, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server})
        elif "id" in message:
            reply(message, {"tools": []})


def reply(message: dict[str, object], result: dict[str, object]) -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
