"""An MCP server with one tool, `greet_<name>`, on standard streams (`python greeter.py NAME`) or over HTTP.

Imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "let-me-in"
"""What the server over HTTP wants to find in the header `X-Key`."""


def answer(name: str, message: dict[str, Any]) -> bytes | None:
    """To one message; none to what asks for nothing."""
    if "id" not in message or "method" not in message:
        return None
    match message["method"]:
        case "initialize":
            result: dict[str, Any] = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": name, "version": "1"},
            }
        case "tools/list":
            tool = {"name": f"greet_{name}", "inputSchema": {"type": "object"}}
            result = {"tools": [tool | {"annotations": {"readOnlyHint": True}}]}
        case "tools/call":
            result = {"content": [{"type": "text", "text": f"Hello from {name}."}]}
        case _:
            result = {}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


@contextmanager
def over_http(name: str) -> Iterator[str]:
    """Serve it on loopback; the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            is_known = self.headers.get("X-Key") == KEY
            said = answer(name, json.loads(body)) if is_known else None
            self.send_response(401 if not is_known else 202 if said is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said or b"")))
            self.end_headers()
            self.wfile.write(said or b"")

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            serving.join()


if __name__ == "__main__":
    for line in sys.stdin:
        said = answer(sys.argv[1], json.loads(line))
        if said is not None:
            sys.stdout.write(said.decode() + "\n")
            sys.stdout.flush()
