"""What the official conformance suite wants to find on a server: its tools, resources and prompts, on ours.

Our `McpServer` and our HTTP door are what is tested; the tools are only there to be called. What the
suite asks for and Laneway does not offer (completion, …) is in `conformance_table`.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any

from laneway.base.errors import RemoteError
from laneway.doors.http.exchange import App, Receive, Scope, Send
from laneway.doors.mcp.eras import MISSING_CAPABILITY
from laneway.doors.mcp.server import Call, Handler, McpServer, Offer
from laneway.doors.mcp.tasks import TaskRequests
from laneway.wire.messages import INVALID_PARAMS
from tests.doors.mcp.http_support import TOKEN
from tests.peers import conformance_tasks
from tests.peers.conformance_prompts import PIXEL, ConformancePrompts

SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"

Result = dict[str, Any]


def with_token(app: App) -> App:
    """The suite knows no tokens: it is let in as if it had sent one."""

    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        known = (b"authorization", b"Bearer " + TOKEN.encode())
        await app({**scope, "headers": [*scope["headers"], known]}, receive, send)

    return admitted


def text(said: str) -> Result:
    return {"content": [{"type": "text", "text": said}]}


def image() -> Result:
    return {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def embedded(uri: str, kind: str, said: str) -> Result:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": said}}


# ── plain results ──────────────────────────────────────────────────────────

MIXED = [
    {"type": "text", "text": "Multiple content types test:"},
    image(),
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
]
PLAIN: dict[str, Result] = {
    "test_simple_text": text("This is a simple text response for testing."),
    "test_image_content": {"content": [image()]},
    "test_audio_content": {"content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]},
    "test_embedded_resource": {
        "content": [
            embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
        ]
    },
    "test_multiple_content_types": {"content": MIXED},
    "test_error_handling": {
        **text("This tool intentionally returns an error for testing"),
        "isError": True,
    },
    "json_schema_2020_12_tool": text("called"),
    "test_reconnection": text("This server does not end a stream before its answer."),
}


def plain(result: Result) -> Handler:
    async def handler(call: Call, arguments: dict[str, Any]) -> Result:
        return result

    return handler


# ── tools that speak while they run ────────────────────────────────────────


async def with_logging(call: Call, arguments: dict[str, Any]) -> Result:
    if not call.client.is_stateless or LOG_LEVEL_KEY in call.meta:
        for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            call.channel.notify("notifications/message", {"level": "info", "data": said})
            await asyncio.sleep(0)
    return text("Tool with logging executed successfully")


async def with_progress(call: Call, arguments: dict[str, Any]) -> Result:
    token = call.meta.get("progressToken")
    for done in (0, 50, 100):
        told = {"progressToken": token, "progress": done, "total": 100, "message": f"Completed step {done}"}
        call.channel.notify("notifications/progress", told)
        await asyncio.sleep(0)
    return text(str(token))


# ── tools that ask ─────────────────────────────────────────────────────────


def form(message: str, properties: Result, required: list[str] | None = None) -> Result:
    schema = {"type": "object", "properties": properties, "required": required or []}
    return {"mode": "form", "message": message, "requestedSchema": schema}


DEFAULTS = {
    "name": {"type": "string", "description": "User name", "default": "John Doe"},
    "age": {"type": "integer", "description": "User age", "default": 30},
    "score": {"type": "number", "description": "User score", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "description": "Verification status", "default": True},
}
_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{n}", "title": title} for n, title in ((1, "First"), (2, "Second"), (3, "Third"))]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": _OPTIONS},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}


def asking(message: str, properties: Result) -> Handler:
    async def handler(call: Call, arguments: dict[str, Any]) -> Result:
        asked = form(str(arguments.get("message", message)), properties)
        reply = await call.channel.call("elicitation/create", asked)
        content = json.dumps(reply.get("content") or {})
        return text(f"Elicitation completed: action={reply.get('action')}, content={content}")

    return handler


async def sampling(call: Call, arguments: dict[str, Any]) -> Result:
    asked = {"role": "user", "content": {"type": "text", "text": str(arguments.get("prompt"))}}
    reply = await call.channel.call("sampling/createMessage", {"messages": [asked], "maxTokens": 100})
    return text(f"LLM response: {reply['content']['text']}")


# ── tools whose result is a question ───────────────────────────────────────

NAME = {
    "method": "elicitation/create",
    "params": form("What is your name?", {"name": {"type": "string"}}, ["name"]),
}
COLOUR = {
    "method": "elicitation/create",
    "params": form("Which colour?", {"color": {"type": "string"}}, ["color"]),
}
CONFIRM = {
    "method": "elicitation/create",
    "params": form("Please confirm", {"ok": {"type": "boolean"}}, ["ok"]),
}
CAPITAL = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}],
        "maxTokens": 100,
    },
}
ROOTS = {"method": "roots/list", "params": {}}

Step = dict[str, Result]
"""What is asked at once, by key."""


class Rounds:
    """A tool that asks in one or more rounds, and knows where it is by a state that only it can write."""

    def __init__(self, *steps: Step, with_state: bool = True) -> None:
        self._steps = steps
        self._with_state = with_state
        self._states: dict[str, int] = {}

    async def __call__(self, call: Call, arguments: dict[str, Any]) -> Result:
        state = call.params.get("requestState")
        if state is not None and state not in self._states:
            raise RemoteError(INVALID_PARAMS, "This requestState is not one of ours")
        at = self._states[state] if state is not None else 0
        replies = call.params.get("inputResponses")
        if replies is not None and answers(replies, self._steps[at]):
            at += 1
        if at == len(self._steps):
            return text(f"state-ok {json.dumps(replies)}")
        return self._ask(at)

    def _ask(self, at: int) -> Result:
        asked: Result = {"resultType": "input_required", "inputRequests": self._steps[at]}
        if self._with_state:
            state = secrets.token_urlsafe(12)
            self._states[state] = at
            asked["requestState"] = state
        return asked


def answers(replies: Any, step: Step) -> bool:
    """Whether all that was asked is there, in its form."""
    return isinstance(replies, dict) and all(
        isinstance(replies.get(key), dict) and fits(replies[key], asked) for key, asked in step.items()
    )


def fits(reply: Result, asked: Result) -> bool:
    match asked["method"]:
        case "elicitation/create":
            content = reply.get("content")
            return reply.get("action") in ("decline", "cancel") or (
                isinstance(content, dict)
                and set(asked["params"]["requestedSchema"]["required"]) <= set(content)
            )
        case "sampling/createMessage":
            return "content" in reply
        case _:
            return isinstance(reply.get("roots"), list)


async def by_capability(call: Call, arguments: dict[str, Any]) -> Result:
    """Asks only what this client can be asked."""
    if call.params.get("inputResponses") is not None:
        return text("thanks")
    able = call.client.capabilities
    kinds = {
        "elicitation": ("user_name", NAME),
        "sampling": ("capital", CAPITAL),
        "roots": ("client_roots", ROOTS),
    }
    asked = dict(pair for capability, pair in kinds.items() if capability in able)
    return {"resultType": "input_required", "inputRequests": asked} if asked else text("nobody to ask")


async def missing_capability(call: Call, arguments: dict[str, Any]) -> Result:
    if "sampling" in call.client.capabilities:
        return text("sampling is there")
    data: Result = {"requiredCapabilities": {"sampling": {}}}
    raise RemoteError(MISSING_CAPABILITY, "This tool needs a client that can sample", data)


# ── all of it ──────────────────────────────────────────────────────────────

HANDLERS: dict[str, Handler] = {
    **conformance_tasks.HANDLERS,
    **{name: plain(result) for name, result in PLAIN.items()},
    "test_tool_with_logging": with_logging,
    "test_logging_tool": with_logging,
    "test_tool_with_progress": with_progress,
    "test_sampling": sampling,
    "test_elicitation": asking("Please answer", {"response": {"type": "string"}}),
    "test_elicitation_sep1034_defaults": asking("Please review", DEFAULTS),
    "test_elicitation_sep1330_enums": asking("Please choose", ENUMS),
    "test_input_required_result_elicitation": Rounds({"user_name": NAME}, with_state=False),
    "test_input_required_result_sampling": Rounds({"capital_question": CAPITAL}),
    "test_input_required_result_list_roots": Rounds({"client_roots": ROOTS}),
    "test_input_required_result_request_state": Rounds({"confirm": CONFIRM}),
    "test_input_required_result_multiple_inputs": Rounds(
        {"user_name": NAME, "greeting": CAPITAL, "client_roots": ROOTS}
    ),
    "test_input_required_result_multi_round": Rounds({"step1": NAME}, {"step2": COLOUR}),
    "test_input_required_result_tampered_state": Rounds({"confirm": CONFIRM}),
    "test_input_required_result_capabilities": by_capability,
    "test_streaming_elicitation": Rounds({"user_name": NAME}),
    "test_missing_capability": missing_capability,
}

SCHEMAS: dict[str, Result] = {
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }
}


class Shelf:
    """Resources: two that are listed, and one for each id of a template."""

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[Result], str | None]:
        found: list[Result] = [
            {"uri": "test://static-text", "name": "static-text", "mimeType": "text/plain"},
            {"uri": "test://static-binary", "name": "static-binary", "mimeType": "image/png"},
        ]
        return found, None

    def templates(self) -> list[Result]:
        return [
            {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
        ]

    async def read(self, call: Call, uri: str) -> list[Result]:
        if uri == "test://static-text":
            return [{"uri": uri, "mimeType": "text/plain", "text": "This is the static text."}]
        if uri == "test://static-binary":
            return [{"uri": uri, "mimeType": "image/png", "blob": PIXEL}]
        if uri.startswith("test://template/") and uri.endswith("/data"):
            given = uri.removeprefix("test://template/").removesuffix("/data")
            body = {"id": given, "templateTest": True, "data": f"Data for ID: {given}"}
            return [{"uri": uri, "mimeType": "application/json", "text": json.dumps(body)}]
        raise RemoteError(INVALID_PARAMS, "Resource not found", {"uri": uri})


def server() -> McpServer:
    offers = [
        Offer(
            {
                "name": name,
                "description": f"For the conformance suite: {name}",
                "inputSchema": SCHEMAS.get(name, {"type": "object", "properties": {}}),
            },
            handler,
        )
        for name, handler in HANDLERS.items()
    ]
    tasks = TaskRequests(conformance_tasks.ConformanceTasks())
    info = {"name": "laneway-conformance", "version": "1"}
    return McpServer(info, offers, resources=Shelf(), prompts=ConformancePrompts(), tasks=tasks)
