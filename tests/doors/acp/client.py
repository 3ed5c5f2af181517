"""A raw ACP client that hides nothing: every message is kept, in order, and held against the schema."""

from __future__ import annotations

import asyncio
import fcntl
import json
import termios
from array import array
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar

from tests.doors.acp import views
from tests.doors.acp.golden import normalised
from tests.doors.acp.lint import Lint, Side
from tests.doors.acp.views import Update
from tests.doors.stdio_client import StdioClient

DEADLINE_S = 60.0
"""For a whole test."""
END_S = 20.0
"""For an agent to go once its input is closed; then for what it said last to be read."""

Message = dict[str, Any]
Prompt: TypeAlias = str | list[Message]
Found = TypeVar("Found")

CANCELLED: Message = {"outcome": {"outcome": "cancelled"}}
OPENING = ("session/new", "session/load", "session/resume", "session/fork")
ENDING = ("session/close", "session/delete")


class Refused(Exception):
    """A JSON-RPC error: of the agent when raised, of the client when a handler returns it."""

    def __init__(self, error: Message) -> None:
        super().__init__(error)
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")
        self.error = error


UNKNOWN = Refused({"code": -32601, "message": "Method not found"})

Handler: TypeAlias = Callable[[Message], Message | Refused | None]
"""Params in; the result, an error, or none to leave it open."""


def select(params: Message, wanted: str) -> Message:
    """The first option of this id or kind."""
    for option in params["options"]:
        if wanted in (option["optionId"], option["kind"]):
            return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
    raise AssertionError(f"{wanted} is not among {params['options']}")


class Client(StdioClient):
    """One agent on pipes. Requests by number; what comes unasked is kept in order."""

    def __init__(
        self, process: Process, work: Path, places: dict[str, str], unstable: Collection[str]
    ) -> None:
        self.mark = ""
        """By which all that the agent started is found."""
        self.lint = Lint(unstable)
        self.hello: Message = {}
        """The result of initialize."""
        self.opened: dict[str, Message] = {}
        """The results of session/new, load and resume, by session."""
        self.heard: list[Message] = []
        """Notifications and requests of the agent."""
        self.updates: list[Update] = []
        self.strays: list[Message] = []
        """Answers to nothing."""
        self.on_permission: Handler = lambda params: CANCELLED
        self.on_elicitation: Handler = lambda params: {"action": "cancel"}
        self.on_request: dict[str, Handler] = {}
        self._work = work
        self._places = places
        self._unstable = unstable
        self._lines: list[tuple[Side, Message]] = []
        self._untraced: set[Any] = set()
        """Ids of requests that are the harness's own, not the test's."""
        self._waiting: dict[Any, asyncio.Future[Message]] = {}
        self._number = 0
        self._subscriptions = asyncio.Condition()
        super().__init__(process)

    # ── out ────────────────────────────────────────────────────────────────

    async def initialize(
        self, capabilities: Message | None = None, version: int = 1, name: str = "test"
    ) -> Message:
        params = {
            "protocolVersion": version,
            "clientCapabilities": capabilities or {},
            "clientInfo": {"name": name, "version": "1"},
        }
        self.hello = await self.ask("initialize", params)
        return self.hello

    async def new(self, cwd: Path | str | None = None, **params: Any) -> str:
        """A new session, in the stage's folder; its id."""
        result = await self.ask("session/new", {"cwd": str(cwd or self._work), "mcpServers": [], **params})
        session_id: str = result["sessionId"]
        self.opened[session_id] = result
        return session_id

    async def load(self, session_id: str, cwd: Path | str | None = None, **params: Any) -> Message:
        return await self._open("session/load", session_id, cwd, params)

    async def resume(self, session_id: str, cwd: Path | str | None = None, **params: Any) -> Message:
        return await self._open("session/resume", session_id, cwd, params)

    async def _open(self, method: str, session_id: str, cwd: Path | str | None, params: Message) -> Message:
        where = {"sessionId": session_id, "cwd": str(cwd or self._work), "mcpServers": []}
        self.opened[session_id] = await self.ask(method, {**where, **params})
        return self.opened[session_id]

    def start_prompt(self, session_id: str, prompt: Prompt) -> asyncio.Future[Message]:
        blocks = [{"type": "text", "text": prompt}] if isinstance(prompt, str) else prompt
        return self.request("session/prompt", {"sessionId": session_id, "prompt": blocks})

    async def prompt(self, session_id: str, prompt: Prompt) -> Message:
        """The result of a prompt; `Refused` when it is an error."""
        return await self.start_prompt(session_id, prompt)

    def cancel(self, session_id: str) -> None:
        self.tell("session/cancel", {"sessionId": session_id})

    def cancel_request(self, request_id: int) -> None:
        self.tell("$/cancel_request", {"requestId": request_id})

    async def ask(self, method: str, params: Any) -> Message:
        return await self.request(method, params)

    async def refusal(self, method: str, params: Any, *, lint: bool = True) -> Message:
        """The error of a request that must fail. `lint=False` for one that is wrong on purpose."""
        try:
            result = await self.request(method, params, lint=lint)
        except Refused as refused:
            return refused.error
        raise AssertionError(f"{method} was not refused: {result}")

    def request(self, method: str, params: Any, *, lint: bool = True) -> asyncio.Future[Message]:
        """Send it; the future is its result, or raises `Refused`."""
        self._number += 1
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[self._number] = answer
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}, lint=lint)
        return answer

    @property
    def last_id(self) -> int:
        return self._number

    def tell(self, method: str, params: Message, *, lint: bool = True) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params}, lint=lint)

    def answer(self, asked: Message, answer: Message | Refused) -> None:
        """Answer a request of the agent that a handler left open."""
        body = {"error": answer.error} if isinstance(answer, Refused) else {"result": answer}
        self.send({"jsonrpc": "2.0", "id": asked["id"], **body})

    def send(self, message: Message, *, lint: bool = True) -> None:
        if lint:
            self.lint.check("client", message)
        else:
            self.lint.note("client", message)
        self._keep("client", message)
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    # ── in ─────────────────────────────────────────────────────────────────

    async def wait_update(self, is_it: Callable[[Update], bool]) -> Update:
        """The first update, past or to come, of which this is true."""
        return await self._wait(lambda: next(filter(is_it, self.updates), None))

    async def wait_kind(self, kind: str, session_id: str | None = None) -> Update:
        return await self.wait_update(
            lambda each: each.kind == kind and session_id in (None, each.session_id)
        )

    async def wait_heard(self, is_it: Callable[[Message], bool]) -> Message:
        """The first notification or request, past or to come, of which this is true."""
        return await self._wait(lambda: next(filter(is_it, self.heard), None))

    async def wait_asked(self, method: str) -> Message:
        return await self.wait_heard(lambda message: message["method"] == method and "id" in message)

    async def _wait(self, find: Callable[[], Found | None]) -> Found:
        async with self._subscriptions:
            while (found := find()) is None:
                assert not self._tasks[0].done(), f"the agent has ended:\n{self.stderr}"
                await self._subscriptions.wait()
            return found

    @property
    def asked(self) -> list[Message]:
        """The agent's requests so far."""
        return [message for message in self.heard if "id" in message]

    def of(self, kind: str, session_id: str | None = None) -> list[Message]:
        """The bodies of all updates of a kind."""
        return [update.body for update in self._of(session_id) if update.kind == kind]

    def kinds(self, session_id: str | None = None) -> list[str]:
        return [update.kind for update in self._of(session_id)]

    def text(self, session_id: str | None = None, kind: str = "agent_message_chunk") -> str:
        return "".join(self.messages(session_id, kind))

    def messages(self, session_id: str | None = None, kind: str = "agent_message_chunk") -> list[str]:
        return views.messages(self._of(session_id), kind)

    def tool_calls(self, session_id: str | None = None) -> dict[str, Message]:
        """As they stand now."""
        return views.tool_calls(self._of(session_id))

    def open_tool_calls(self) -> dict[str, Message]:
        return {name: call for name, call in self.tool_calls().items() if not views.is_ended(call)}

    def _of(self, session_id: str | None) -> list[Update]:
        return [update for update in self.updates if session_id in (None, update.session_id)]

    def trace(self, without: Collection[str] = ()) -> list[Message]:
        """Both sides, normalised, for `golden`. `without` leaves out kinds of update."""
        return normalised(self._lines, self._places, without)

    async def _read(self) -> None:
        try:
            async for line in self._lines_in():
                await self._take(json.loads(line))
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(EOFError(f"the agent has ended:\n{self.stderr}"))
                    waiting.exception()  # whoever waits is told; nobody has to
            async with self._subscriptions:
                self._subscriptions.notify_all()

    async def _lines_in(self) -> AsyncIterator[bytes]:
        assert self.process.stdout is not None
        while (line := await self.process.stdout.readline()).endswith(b"\n"):  # half a line: it was killed
            yield line

    async def _take(self, message: Message) -> None:
        self.lint.check("agent", message)
        self._keep("agent", message)
        if "method" not in message:
            self._settle(message)
            return
        self.heard.append(message)
        update = views.update_of(message)
        if update is not None:
            self.updates.append(update)
        if "id" in message:
            self._react(message)
        async with self._subscriptions:
            self._subscriptions.notify_all()

    def _keep(self, side: Side, message: Message) -> None:
        asker = side if "method" in message else "client" if side == "agent" else "agent"
        if asker == "agent" or message.get("id") not in self._untraced:
            self._lines.append((side, message))

    def _settle(self, message: Message) -> None:
        waiting = self._waiting.pop(message.get("id"), None)
        if waiting is None:
            self.strays.append(message)
        elif waiting.done():
            pass  # its waiter has given up
        elif "error" in message:
            waiting.set_exception(Refused(message["error"]))
        else:
            waiting.set_result(message["result"])

    def _react(self, message: Message) -> None:
        own = {"session/request_permission": self.on_permission, "elicitation/create": self.on_elicitation}
        handler = {**own, **self.on_request}.get(message["method"])
        answer = UNKNOWN if handler is None else handler(message.get("params", {}))
        if answer is not None:
            self.answer(message, answer)

    def pause(self) -> None:
        """Take nothing from the pipe, which fills up; until `go_on`."""
        self._out.pause_reading()

    def go_on(self) -> None:
        self._out.resume_reading()

    @property
    def unread_bytes(self) -> int:
        """What stands in the pipe."""
        found = array("i", [0])
        fcntl.ioctl(self._out.get_extra_info("pipe"), termios.FIONREAD, found)
        return found[0]

    @property
    def _out(self) -> Any:
        transport: Any = vars(self.process)["_transport"]
        return transport.get_pipe_transport(1)

    # ── the next test's turn ───────────────────────────────────────────────

    @property
    def is_settled(self) -> bool:
        """Whether the agent lives, and neither side owes the other an answer."""
        is_there = self.process.returncode is None and not any(task.done() for task in self._tasks)
        return is_there and not self._waiting and not self.lint.has_open_requests

    async def let_go(self) -> None:
        """Close every session and stop listening. What was heard stays; the agent runs on."""
        for session_id in self._open_sessions():
            self._untraced.add(self._number + 1)
            await self.ask("session/close", {"sessionId": session_id})
        for task in self._tasks:
            task.cancel()
        for end in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(end, Exception):
                raise end

    def _open_sessions(self) -> list[str]:
        """By what was said: opened, and not closed since."""
        said = [message for side, message in self._lines if side == "client" and "method" in message]
        asked = {message.get("id"): message for message in said}
        found: dict[str, None] = {}
        for side, answer in self._lines:
            request = asked.get(answer["id"]) if side == "agent" and "result" in answer else None
            if request is not None and request["method"] in OPENING:
                found[answer["result"].get("sessionId") or request["params"]["sessionId"]] = None
            elif request is not None and request["method"] in ENDING:
                found.pop(request["params"]["sessionId"], None)
        return list(found)

    def successor(self, work: Path, places: dict[str, str]) -> Self:
        """A client for the same agent, once this one has let go: greeted, and nothing heard."""
        client = type(self)(self.process, work, places, self._unstable)
        client.mark, client.hello, client._number = self.mark, self.hello, self._number
        for side, message in self._lines[:2]:
            assert side == "agent" or message["method"] == "initialize"
            client.lint.check(side, message)
            client._lines.append((side, message))
        return client

    # ── the end ────────────────────────────────────────────────────────────

    async def aclose(self) -> None:
        try:
            if self.process.returncode is None:
                async with asyncio.timeout(END_S):
                    await self.hang_up()
        finally:
            if self.process.returncode is None:
                self.process.kill()
                await self.process.wait()
            # Somebody whom the agent left behind may hold its pipes open.
            _, stuck = await asyncio.wait(self._tasks, timeout=END_S)
            for task in stuck:
                task.cancel()
            ends = await asyncio.gather(*self._tasks, return_exceptions=True)
            for waiting in self._waiting.values():
                waiting.cancel()
        for end in ends:
            if isinstance(end, Exception):
                raise end  # the reader failed on what the agent said, or a test's handler did
