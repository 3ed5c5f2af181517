"""A client of ACP 2, and the lint that its messages go through: the draft's own schema and rules.

What the messages say about each other is kept as a client of the draft would keep it: states,
terminals, calls, messages. Everything else is the stage and the client of protocol 1.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from tests.doors.acp.client import Client
from tests.doors.acp.lint import SCHEMAS, Book, Lint
from tests.doors.acp.rules import Rules, _absolute, _unique
from tests.doors.acp.support import Message, Stage

ENDED = ("completed", "failed", "cancelled")
FULL: Message = {"auth": {"terminal": {}}, "elicitation": {"form": {}, "url": {}}}
"""The capabilities of a client that takes all that the draft has to show."""


@cache
def draft_book() -> Book:
    return Book(json.loads((SCHEMAS / "v2" / "schema.json").read_bytes())["$defs"])


class DraftLint(Lint):
    def __init__(self) -> None:
        super().__init__()
        self._book = draft_book()
        self._rules = DraftRules()


class _Session:
    """What a client knows of one session."""

    def __init__(self) -> None:
        self.state = "idle"
        self.calls: dict[str, str] = {}
        self.terminals: dict[str, bool] = {}
        """Whether each has exited."""
        self.said: set[str] = set()
        self.is_current = False
        """Whether a state has been told since the last `session/resume`."""


class DraftRules(Rules):
    def __init__(self) -> None:
        super().__init__()
        self._sessions: dict[str, _Session] = {}

    def _client_said(self, method: str, params: Message) -> None:
        if method == "initialize":
            self._capabilities = params.get("capabilities") or {}
        if method == "session/resume":
            session = self._sessions.setdefault(params["sessionId"], _Session())
            session.is_current = False
            session.calls, session.terminals = {}, {}  # they may be told from the start

    def _agent_said(self, method: str, params: Message) -> Iterator[str]:
        session = self._sessions.get(params.get("sessionId", ""))
        if "sessionId" in params and session is None:
            yield f"the client knows no session {params['sessionId']}"
            return
        match method:
            case "session/update":
                assert session is not None
                yield from self._updated(session, params["update"])
            case "session/request_permission":
                assert session is not None
                yield from _unique(params["options"], "optionId")
                if not params["options"]:
                    yield "a permission request without options"
                yield from self._subject(session, params.get("subject") or {})
            case "elicitation/create":
                yield from self._elicitation(params)
            case "elicitation/complete" if params["elicitationId"] not in self._links:
                yield f"there is no elicitation {params['elicitationId']}"
            case "$/cancel_request" if ("agent", repr(params["requestId"])) not in self._asked:
                yield f"the agent has no open request {params['requestId']!r}"

    def _updated(self, session: _Session, update: Message) -> Iterator[str]:
        match update["sessionUpdate"]:
            case "state_update":
                yield from self._state(session, update)
            case "user_message":
                session.said.add(update["messageId"])
            case "tool_call_update":
                yield from self._call(session, update)
            case "terminal_update":
                yield from _absolute(update.get("cwd", "/"))
                yield from _base64(update.get("output", {}).get("data", ""))
                has_exited = session.terminals.get(update["terminalId"], False)
                session.terminals[update["terminalId"]] = has_exited or "exitStatus" in update
            case "terminal_output_chunk":
                if session.terminals.get(update["terminalId"], True):
                    yield f"the terminal {update['terminalId']} is not there or has exited"
                yield from _base64(update["data"])
            case "config_option_update":
                yield from self._options(update["configOptions"])

    def _state(self, session: _Session, update: Message) -> Iterator[str]:
        state = update["state"]
        if state == session.state and session.is_current:
            yield f"{state} is told twice"
        if (update.get("stopReason") == "error") != ("error" in update):
            yield "an error stop has its error, and nothing else has"
        if state == "idle" and session.state != "idle" and "stopReason" not in update:
            yield "work has ended without a stop reason"
        if state == "requires_action" and session.state == "idle":
            yield "nothing runs that could be blocked"
        session.state, session.is_current = state, True

    def _call(self, session: _Session, call: Message) -> Iterator[str]:
        before, status = session.calls.get(call["toolCallId"], "pending"), call.get("status")
        if before in ENDED and status not in (None, *ENDED):
            yield f"the tool call {call['toolCallId']} was {before} and is {status} again"
        session.calls[call["toolCallId"]] = status or before
        for part in call.get("content") or ():
            if part["type"] == "terminal" and part["terminalId"] not in session.terminals:
                yield f"there is no terminal {part['terminalId']}"
            for change in part.get("changes", ()):
                yield from _absolute(change["path"])
                yield from _absolute(change.get("oldPath", "/"))
        for location in call.get("locations") or ():
            yield from _absolute(location["path"])

    def _subject(self, session: _Session, subject: Message) -> Iterator[str]:
        match subject.get("type"):
            case "tool_call":
                yield from self._call(session, subject["toolCall"])
            case "command":
                yield from _absolute(subject["cwd"])
                if subject.get("toolCallId", "") not in {*session.calls, ""}:
                    yield f"there is no tool call {subject['toolCallId']}"
                if subject.get("terminalId", "") not in {*session.terminals, ""}:
                    yield f"there is no terminal {subject['terminalId']}"

    def _options(self, options: list[Message]) -> Iterator[str]:
        yield from _unique(options, "configId")
        for option in options:
            values = [each["value"] for each in option.get("options", ())]
            if option["type"] == "select" and option["currentValue"] not in values:
                yield f"{option['configId']} is {option['currentValue']}, which is not among its options"

    def answered(self, side: str, method: str, message: Message) -> Iterator[str]:
        result = message["result"]
        asker = "client" if side == "agent" else "agent"
        asked = self._asked.pop((asker, repr(message["id"])), {})
        match method:
            case "initialize":
                yield from _unique(result.get("authMethods", []), "methodId")
                if any(each["type"] == "terminal" for each in result.get("authMethods", [])):
                    yield from self._undeclared("terminal auth")
            case "session/new" | "session/resume":
                session = self._sessions.setdefault(result.get("sessionId") or asked["sessionId"], _Session())
                if method == "session/resume" and not session.is_current:
                    yield "resumed without a state"
                session.is_current = True
                yield from self._options(result["configOptions"])
                yield from _unique(result["availableCommands"], "name")
            case "session/prompt" if result["messageId"] not in self._sessions[asked["sessionId"]].said:
                yield f"the message {result['messageId']} was not echoed"
            case "session/close" if asked["sessionId"] in self._sessions:
                if self._sessions.pop(asked["sessionId"]).state != "idle":
                    yield "closed while it is busy"
            case "session/list":
                yield from self._listed(asked, result)
            case "session/set_config_option":
                yield from self._options(result["configOptions"])
            case "session/request_permission":
                yield from self._permitted(asked, result)


def _base64(data: str) -> Iterator[str]:
    try:
        base64.b64decode(data, validate=True)
    except ValueError:
        yield f"{data[:40]} is no base64"


class DraftClient(Client):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.lint = DraftLint()

    async def initialize(
        self, capabilities: Message | None = None, version: int = 2, name: str = "test"
    ) -> Message:
        info = {"name": name, "version": "1"}
        params = {"protocolVersion": version, "info": info, "capabilities": capabilities or {}}
        self.hello = await self.ask("initialize", params)
        return self.hello

    async def open(self) -> str:
        """A new session; its id."""
        self.opened["new"] = await self.ask("session/new", {"cwd": str(self._work)})
        session_id: str = self.opened["new"]["sessionId"]
        return session_id

    async def again(self, session_id: str, **params: Any) -> Message:
        return await self.ask("session/resume", {"sessionId": session_id, "cwd": str(self._work), **params})

    async def turn(self, session_id: str, prompt: str) -> Message:
        """Send a prompt and wait until the session is idle again: that state."""
        before = len(self.states("idle"))
        await self.prompt(session_id, prompt)
        return await self.wait_state("idle", before)

    async def wait_state(self, state: str, after: int = 0) -> Message:
        """The first state of this name but so many."""
        return await self._wait(lambda: next(iter(self.states(state)[after:]), None))

    def states(self, state: str | None = None) -> list[Message]:
        told = self.of("state_update")
        return [each for each in told if state in (None, each["state"])]

    def terminals(self) -> dict[str, Message]:
        """As they stand, with what they show as bytes under `shown`."""
        found: dict[str, Message] = {}
        for update in self.updates:
            body = update.body
            if update.kind == "terminal_update":
                terminal = found.setdefault(body["terminalId"], {"shown": b""})
                terminal.update(body)
                if "output" in body:
                    terminal["shown"] = base64.b64decode(body["output"]["data"])
            elif update.kind == "terminal_output_chunk":
                found[body["terminalId"]]["shown"] += base64.b64decode(body["data"])
        return found

    def whole(self, kind: str) -> dict[str, str]:
        """The texts of messages told in one piece, by id."""
        return {
            body["messageId"]: "".join(part["text"] for part in body["content"] if part["type"] == "text")
            for body in self.of(kind)
        }

    def the_call(self) -> Message:
        (call,) = self.tool_calls().values()
        return call


@asynccontextmanager
async def draft(
    here: Stage, *words: str, capabilities: Message | None = None, env: dict[str, str] | None = None
) -> AsyncIterator[DraftClient]:
    """`laneway acp --v2` with a client that has shaken hands by protocol 2."""
    async with here.agent("--v2", *words, capabilities=capabilities, env=env, kind=DraftClient) as client:
        assert isinstance(client, DraftClient)
        yield client
