"""A right message for every method and every kind of update of stable ACP v1, after the protocol's pages."""

from __future__ import annotations

from typing import Any

from tests.doors.acp.support import FULL, ZED

Message = dict[str, Any]

SESSION = "sess_1"
TEXT: Message = {"type": "text", "text": "Hello."}
BLOCKS: list[Message] = [
    {**TEXT, "annotations": {"audience": ["user"], "priority": 0.5}},
    {"type": "image", "mimeType": "image/png", "data": "aGk=", "uri": None},
    {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
    {
        "type": "resource_link",
        "uri": "file:///work/a.py",
        "name": "a.py",
        "mimeType": "text/x-python",
        "size": 3,
    },
    {
        "type": "resource",
        "resource": {"uri": "file:///work/a.py", "text": "pass", "mimeType": "text/x-python"},
    },
    {"type": "resource", "resource": {"uri": "file:///work/a.bin", "blob": "aGk="}},
]
MODES: Message = {
    "currentModeId": "config",
    "availableModes": [
        {"id": "config", "name": "Config", "description": "Your own."},
        {"id": "ask", "name": "Ask"},
    ],
}
OPTIONS: list[Message] = [
    {
        "id": "model",
        "name": "Model",
        "category": "model",
        "type": "select",
        "currentValue": "small",
        "options": [
            {"value": "small", "name": "Small"},
            {"value": "large", "name": "Large", "description": "Big."},
        ],
    },
    {
        "id": "personality",
        "name": "Personality",
        "category": "_personality",
        "type": "select",
        "currentValue": "dry",
        "options": [{"group": "g", "name": "All", "options": [{"value": "dry", "name": "Dry"}]}],
    },
    {"id": "network", "name": "Network", "type": "boolean", "currentValue": False},
]
OPENED: Message = {"modes": MODES, "configOptions": OPTIONS}
CALL = "call_1"
PARTS: list[Message] = [
    {"type": "content", "content": TEXT},
    {"type": "diff", "path": "/work/a.py", "oldText": None, "newText": "pass\n"},
]
SERVERS: list[Message] = [
    {"name": "files", "command": "/bin/files", "args": ["--all"], "env": [{"name": "KEY", "value": "v"}]},
    {
        "type": "http",
        "name": "web",
        "url": "https://example.com/mcp",
        "headers": [{"name": "A", "value": "b"}],
    },
]
WHERE: Message = {"cwd": "/work", "mcpServers": SERVERS, "additionalDirectories": ["/more"]}

CLIENT_ASKS: dict[str, tuple[Message, Message]] = {
    "initialize": (
        {
            "protocolVersion": 1,
            "clientCapabilities": {**ZED, **FULL},
            "clientInfo": {"name": "editor", "title": "Editor", "version": "1.0"},
        },
        {
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": False},
                "sessionCapabilities": {
                    "list": {},
                    "delete": {},
                    "additionalDirectories": {},
                    "resume": {},
                    "close": {},
                },
                "auth": {"logout": {}},
            },
            "agentInfo": {"name": "agent", "title": "Agent", "version": "1.0"},
            "authMethods": [
                {"id": "key", "name": "Key", "description": "An API key."},
                {"type": "terminal", "id": "tty", "name": "Login", "args": ["login"], "env": {"A": "b"}},
            ],
        },
    ),
    "authenticate": ({"methodId": "key"}, {}),
    "session/new": (WHERE, {"sessionId": SESSION, **OPENED}),
    "session/load": ({"sessionId": SESSION, **WHERE}, OPENED),
    "session/resume": ({"sessionId": SESSION, "cwd": "/work"}, OPENED),
    "session/list": (
        {"cwd": "/work", "cursor": None},
        {
            "sessions": [
                {"sessionId": SESSION, "cwd": "/work", "title": "Hi", "updatedAt": "2026-01-01T00:00:00Z"},
                {"sessionId": "sess_2", "cwd": "/work", "additionalDirectories": ["/more"]},
            ],
            "nextCursor": "2",
        },
    ),
    "session/set_mode": ({"sessionId": SESSION, "modeId": "ask"}, {}),
    "session/set_config_option": (
        {"sessionId": SESSION, "configId": "model", "value": "small"},
        {"configOptions": OPTIONS},
    ),
    "session/prompt": ({"sessionId": SESSION, "prompt": BLOCKS}, {"stopReason": "end_turn"}),
    "session/close": ({"sessionId": SESSION}, {}),
    "session/delete": ({"sessionId": SESSION}, {}),
    "logout": ({}, {}),
}
"""Params and result, in an order in which a client may ask."""
TERMINAL: Message = {"sessionId": SESSION, "terminalId": "term_1"}
FORM: Message = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1, "format": "email", "default": "a@b.c"},
        "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red", "description": "Warm."}]},
        "size": {"type": "integer", "minimum": 1},
        "weight": {"type": "number", "maximum": 2.5},
        "sure": {"type": "boolean", "default": False},
        "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "titled": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
    },
    "required": ["name"],
}
AGENT_ASKS: dict[str, tuple[Message, Message]] = {
    "session/request_permission": (
        {
            "sessionId": SESSION,
            "toolCall": {"toolCallId": CALL, "title": "Run ls", "kind": "execute", "content": PARTS},
            "options": [
                {"optionId": "once", "name": "Allow", "kind": "allow_once"},
                {"optionId": "no", "name": "Decline", "kind": "reject_once"},
            ],
        },
        {"outcome": {"outcome": "selected", "optionId": "once"}},
    ),
    "elicitation/create": (
        {
            "mode": "form",
            "sessionId": SESSION,
            "toolCallId": CALL,
            "message": "Who?",
            "requestedSchema": FORM,
        },
        {"action": "accept", "content": {"name": "Ann", "size": 2, "sure": True, "many": ["a"]}},
    ),
    "fs/read_text_file": ({"sessionId": SESSION, "path": "/work/a", "line": 1, "limit": 2}, {"content": "a"}),
    "fs/write_text_file": ({"sessionId": SESSION, "path": "/work/a", "content": "a"}, {}),
    "terminal/create": ({"sessionId": SESSION, "command": "ls", "args": ["-l"]}, {"terminalId": "term_1"}),
    "terminal/output": (TERMINAL, {"output": "a", "truncated": False, "exitStatus": {"exitCode": 0}}),
    "terminal/wait_for_exit": (TERMINAL, {"exitCode": 0, "signal": None}),
    "terminal/kill": (TERMINAL, {}),
    "terminal/release": (TERMINAL, {}),
}
UPDATES: dict[str, Message] = {
    "user_message_chunk": {"content": TEXT, "messageId": "m0"},
    "agent_message_chunk": {"content": TEXT, "messageId": "m1"},
    "agent_thought_chunk": {"content": TEXT, "_meta": {"any": ["thing"]}},
    "tool_call": {
        "toolCallId": CALL,
        "title": "Edit a.py",
        "name": "apply_patch",
        "kind": "edit",
        "status": "in_progress",
        "content": PARTS,
        "locations": [{"path": "/work/a.py", "line": 3}],
        "rawInput": {"command": "ls"},
    },
    "tool_call_update": {
        "toolCallId": CALL,
        "status": "completed",
        "content": None,
        "rawOutput": {"exit_code": 0},
    },
    "plan": {"entries": [{"content": "Look", "priority": "medium", "status": "in_progress"}]},
    "available_commands_update": {
        "availableCommands": [{"name": "review", "description": "Review.", "input": {"hint": "what"}}]
    },
    "current_mode_update": {"currentModeId": "ask"},
    "config_option_update": {"configOptions": OPTIONS},
    "session_info_update": {"title": "Hi", "updatedAt": None},
    "usage_update": {"used": 10, "size": 100, "cost": {"amount": 0.5, "currency": "USD"}},
    "notice": {"severity": "warning", "title": "Careful.", "description": "It is late."},
    "compaction_update": {"compactionId": "c1", "status": "completed", "summary": [TEXT]},
    "compaction_summary_chunk": {"compactionId": "c1", "content": TEXT},
}


def update(kind: str, /, **changed: Any) -> Message:
    body = {"sessionUpdate": kind, **UPDATES.get(kind, {}), **changed}
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": SESSION, "update": body}}


def request(request_id: int, method: str, params: Message) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def result(request_id: int, body: Any) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "result": body}


def conversation() -> list[tuple[str, Message]]:
    """All of it, in an order that makes sense: sessions are opened, used, closed."""
    said: list[tuple[str, Message]] = []
    for number, (method, (params, answer)) in enumerate(CLIENT_ASKS.items()):
        said.append(("client", request(number, method, params)))
        if method == "session/prompt":
            said += [("agent", update(kind)) for kind in UPDATES]
            for inner, (asked, (more, reply)) in enumerate(AGENT_ASKS.items()):
                said.append(("agent", request(inner, asked, more)))
                said.append(("client", result(inner, reply)))
        said.append(("agent", result(number, answer)))
    return said
