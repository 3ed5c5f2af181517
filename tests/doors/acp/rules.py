"""What the messages of an ACP connection say about each other, which no schema can.

Sessions and tool calls exist before they are updated; what a client did not declare is not
used on it; what is chosen was offered. Only well-formed messages arrive here: `lint` has
judged them by the schema. It keeps the state that the client of a connection would keep.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

Message = dict[str, Any]

ENDED = ("completed", "failed")
NEEDS: dict[str, tuple[str, ...]] = {
    "fs/read_text_file": ("fs", "readTextFile"),
    "fs/write_text_file": ("fs", "writeTextFile"),
    "terminal/create": ("terminal",),
    "notice": ("session", "notices"),
    "compaction_update": ("session", "compaction"),
    "compaction_summary_chunk": ("session", "compaction"),
    "plan_update": ("plan",),
    "plan_removed": ("plan",),
    "subagent_update": ("subagents",),
    "form": ("elicitation", "form"),
    "url": ("elicitation", "url"),
    "boolean": ("session", "configOptions", "boolean"),
    "terminal auth": ("auth", "terminal"),
}
"""What a client must have declared, by method, kind of update, mode, or type."""


class Rules:
    """The client's knowledge of one connection."""

    def __init__(self) -> None:
        self._capabilities: Message = {}
        self._asked: dict[tuple[str, str], Message] = {}
        """Params of unanswered requests, by who asked and the id."""
        self._calls: dict[str, dict[str, str]] = {}
        """The status of announced tool calls, by session."""
        self._terminals: set[str] = set()
        self._links: set[str] = set()
        """Elicitations by URL."""

    # ── requests and notifications ─────────────────────────────────────────

    def said(self, side: str, message: Message) -> Iterator[str]:
        method, params = message["method"], message.get("params") or {}
        if side == "client":
            self._client_said(method, params)
        else:
            yield from self._agent_said(method, params)
        if "id" in message:
            self._asked[side, repr(message["id"])] = params

    def _client_said(self, method: str, params: Message) -> None:
        if method == "initialize":
            self._capabilities = params.get("clientCapabilities") or {}
        if method == "session/load":
            self._calls[params["sessionId"]] = {}  # its history is told from the start
        if "sessionId" in params:
            self._calls.setdefault(params["sessionId"], {})

    def _agent_said(self, method: str, params: Message) -> Iterator[str]:
        yield from self._undeclared(method)
        if "sessionId" in params and params["sessionId"] not in self._calls:
            yield f"the client knows no session {params['sessionId']}"
            return
        match method:
            case "session/update":
                yield from self._undeclared(params["update"]["sessionUpdate"])
                yield from self._update(params["sessionId"], params["update"])
            case "session/request_permission":
                yield from _unique(params["options"], "optionId")
                yield from self._call_parts(params["toolCall"])
                if not params["options"]:
                    yield "a permission request without options"
            case "elicitation/create":
                yield from self._elicitation(params)
            case "elicitation/complete" if params["elicitationId"] not in self._links:
                yield f"there is no elicitation {params['elicitationId']}"
            case "$/cancel_request" if ("agent", repr(params["requestId"])) not in self._asked:
                yield f"the agent has no open request {params['requestId']!r}"

    def _elicitation(self, params: Message) -> Iterator[str]:
        yield from self._undeclared(params["mode"])
        if "requestId" in params and ("client", repr(params["requestId"])) not in self._asked:
            yield f"the client has no open request {params['requestId']!r}"
        if params["mode"] == "url":
            self._links.add(params["elicitationId"])
            if "://" not in params["url"]:
                yield f"{params['url']} is no URL"
        else:
            schema = params["requestedSchema"]
            for name in schema.get("required") or ():
                if name not in schema.get("properties", {}):
                    yield f"the form requires {name} and has no such field"

    # ── updates ────────────────────────────────────────────────────────────

    def _update(self, session: str, update: Message) -> Iterator[str]:
        match update["sessionUpdate"]:
            case "tool_call":
                if update["toolCallId"] in self._calls[session]:
                    yield f"the tool call {update['toolCallId']} is announced twice"
                self._calls[session][update["toolCallId"]] = update.get("status", "pending")
                self._note_display(update)
                yield from self._call_parts(update)
            case "tool_call_update":
                yield from self._call_update(self._calls[session], update)
                yield from self._call_parts(update)
            case "config_option_update":
                yield from self._options(update["configOptions"])
            case "available_commands_update":
                yield from _unique(update["availableCommands"], "name")

    def _call_update(self, calls: dict[str, str], update: Message) -> Iterator[str]:
        call, status = update["toolCallId"], update.get("status")
        if call not in calls:
            yield f"the tool call {call} was never announced"
        elif calls[call] in ENDED and status not in (None, *ENDED):
            # Another end is none of this: a command may outlive its turn and end otherwise than it looked.
            yield f"the tool call {call} was {calls[call]} and is {status} again"
        if status is not None:
            calls[call] = status

    def _note_display(self, call: Message) -> None:
        """Zed's extension: a client that declares it makes a terminal of its own for what `_meta` tells."""
        info = (call.get("_meta") or {}).get("terminal_info")
        if info is not None and (self._capabilities.get("_meta") or {}).get("terminal_output") is True:
            self._terminals.add(info["terminal_id"])

    def _call_parts(self, call: Message) -> Iterator[str]:
        for part in call.get("content") or ():
            if part["type"] == "diff":
                yield from _absolute(part["path"])
            if part["type"] == "terminal" and part["terminalId"] not in self._terminals:
                yield f"the client has no terminal {part['terminalId']}"
        for location in call.get("locations") or ():
            yield from _absolute(location["path"])
            if location.get("line") == 0:
                yield "lines are counted from one"

    def _options(self, options: list[Message]) -> Iterator[str]:
        yield from _unique(options, "id")
        for option in options:
            if option["type"] == "boolean":
                yield from self._undeclared("boolean")
                continue
            flat = [each for entry in option["options"] for each in entry.get("options", [entry])]
            yield from _unique(flat, "value")
            if option["currentValue"] not in [each["value"] for each in flat]:
                yield f"{option['id']} is {option['currentValue']}, which is not among its options"

    def _undeclared(self, what: str) -> Iterator[str]:
        at: Any = self._capabilities
        for step in NEEDS.get(what, ()):
            at = at.get(step) if isinstance(at, dict) else None
        if at is None or at is False:
            yield f"{what} needs the client's capability {'.'.join(NEEDS[what])}"

    # ── answers ────────────────────────────────────────────────────────────

    def answered(self, side: str, method: str, message: Message) -> Iterator[str]:
        result = message["result"]
        asker = "client" if side == "agent" else "agent"
        asked = self._asked.pop((asker, repr(message["id"])), {})
        check = _RESULTS.get(method)
        if check is not None:
            yield from check(self, asked, result)

    def refused(self, asker: str, message: Message) -> None:
        self._asked.pop((asker, repr(message["id"])), None)

    def _greeted(self, asked: Message, result: Message) -> Iterator[str]:
        methods = result.get("authMethods", [])
        yield from _unique(methods, "id")
        if any(method.get("type") == "terminal" for method in methods):
            yield from self._undeclared("terminal auth")

    def _opened(self, asked: Message, result: Message) -> Iterator[str]:
        if "sessionId" in result:
            self._calls.setdefault(result["sessionId"], {})
        yield from self._options(result.get("configOptions") or [])
        modes = result.get("modes")
        if modes and modes["currentModeId"] not in [mode["id"] for mode in modes["availableModes"]]:
            yield f"the mode {modes['currentModeId']} is not available"

    def _listed(self, asked: Message, result: Message) -> Iterator[str]:
        yield from _unique(result["sessions"], "sessionId")
        for session in result["sessions"]:
            for path in (session["cwd"], *session.get("additionalDirectories", ())):
                yield from _absolute(path)

    def _permitted(self, asked: Message, result: Message) -> Iterator[str]:
        chosen = result["outcome"].get("optionId")
        if chosen is not None and chosen not in [option["optionId"] for option in asked.get("options", ())]:
            yield f"{chosen} was not offered"

    def _set(self, asked: Message, result: Message) -> Iterator[str]:
        yield from self._options(result["configOptions"])

    def _terminal(self, asked: Message, result: Message) -> Iterator[str]:
        self._terminals.add(result["terminalId"])
        yield from ()


_RESULTS: dict[str, Callable[[Rules, Message, Message], Iterator[str]]] = {
    "initialize": Rules._greeted,
    "session/new": Rules._opened,
    "session/load": Rules._opened,
    "session/resume": Rules._opened,
    "session/fork": Rules._opened,
    "session/list": Rules._listed,
    "session/set_config_option": Rules._set,
    "session/request_permission": Rules._permitted,
    "terminal/create": Rules._terminal,
}


def _unique(entries: list[Message], field: str) -> Iterator[str]:
    values = [entry[field] for entry in entries]
    for value in sorted({value for value in values if values.count(value) > 1}):
        yield f"the {field} {value} is there twice"


def _absolute(path: str) -> Iterator[str]:
    if not os.path.isabs(path):
        yield f"the path {path} is relative"
