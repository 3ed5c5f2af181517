"""For the tests of tool calls: activities from Codex's own items, and a judge of what is made of them."""

from __future__ import annotations

from typing import Any

from laneway.codex.items import activity
from laneway.core.model import Activity
from laneway.doors.acp.client import EditorClient
from tests.doors.acp.lint import Lint
from tests.doors.acp.support import ZED

THREAD, TURN = "t-1", "u-1"
CALL = f"codex:{THREAD}:{TURN}:i-1"
CWD = "/work"
BARE = EditorClient()
TERMINAL = EditorClient(takes_terminal_output=True)


def done(kind: str, *, ended: bool = True, **fields: Any) -> Activity:
    """What the translator makes of an item of Codex."""
    return activity(TURN, {"type": kind, "id": "i-1", **fields}, ended=ended)


def running(kind: str, **fields: Any) -> Activity:
    return done(kind, ended=False, **(fields | {"status": "inProgress"}))


def command(words: str = "make", *, ended: bool = True, **fields: Any) -> Activity:
    status = "completed" if ended else "inProgress"
    item = {"command": words, "cwd": CWD, "commandActions": [], "status": status, **fields}
    return done("commandExecution", ended=ended, **item)


def problems(
    client: EditorClient, *updates: dict[str, Any], permission: dict[str, Any] | None = None
) -> list[str]:
    """What the official schema, and the rules beyond it, have against these updates of a session."""
    lint = Lint()
    capabilities = ZED if client.takes_terminal_output else {}
    hello = {"protocolVersion": 1, "clientCapabilities": capabilities}
    lint.check("client", _request(1, "initialize", hello))
    lint.check("agent", {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}})
    lint.check("client", _request(2, "session/new", {"cwd": CWD, "mcpServers": []}))
    lint.check("agent", {"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}})
    for update in updates:
        params = {"sessionId": "s", "update": update}
        lint.check("agent", {"jsonrpc": "2.0", "method": "session/update", "params": params})
    if permission is not None:
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
        asked = {"sessionId": "s", "toolCall": permission, "options": options}
        lint.check("agent", _request(3, "session/request_permission", asked))
    return [str(violation) for violation in lint.violations]


def _request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def texts(update: dict[str, Any]) -> list[str]:
    """The text blocks of an update's content."""
    found = [part["content"] for part in update.get("content", ()) if part["type"] == "content"]
    return [block["text"] for block in found if block["type"] == "text"]
