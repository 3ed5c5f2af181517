"""One running `codex mcp-server`: the handshake, tool calls, and everything that is merely passed on.

Its reader only decodes, resolves and posts; it awaits nobody. Ids are ours towards the child and
the child's towards us; what Laneway does not serve itself goes through in both directions with
nothing but its id changed. When the process ends, every waiter hears it, once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import msgspec

from laneway import __version__
from laneway.base.errors import EngineLost, EngineSilent, RemoteError, WireError
from laneway.codex import binary, link
from laneway.codex import relay_calls as calls
from laneway.codex.relay_events import EVENT, RelayedEvent
from laneway.codex.relay_thread import RelayThread, question_of
from laneway.codex.running import Connect, RunningCodex
from laneway.core.ports import Abilities
from laneway.wire.messages import METHOD_NOT_FOUND, UNREADABLE
from laneway.wire.peer import Peer, Raw

log = logging.getLogger(__name__)

PROTOCOL = "2025-06-18"
"""The newest that 0.104 … 0.153 speak; they take any."""
OWN_END_S = 1.0
"""For a process without unanswered calls to end by itself."""
FORWARD_S = 30.0
"""For the child to answer a request that was passed on: some it never answers."""


class RelayClient(Protocol):
    """Whoever gets what the child says and Laneway does not serve: the client at the other side."""

    async def request(self, method: str, params: Raw) -> Raw: ...

    def notify(self, method: str, params: Raw) -> None: ...


class RelayLink(RunningCodex):
    def __init__(self, client: Callable[[], RelayClient | None], forward_s: float) -> None:
        super().__init__()
        self._client = client
        self._forward_s = forward_s
        self._calls: dict[bytes, RelayThread] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._version: tuple[int, ...] = binary.OLDEST
        self.threads: dict[str, RelayThread] = {}
        """What this process knows, held or not: it forgets none."""
        self.garbage = 0
        self._unnamed: list[RelayThread] = []
        self._peer = Peer(
            self._write,
            on_request=self._on_request,
            on_notification=self._on_notification,
            on_garbage=self._on_garbage,
            cancel_notice=_cancelled,
            with_batches=False,
        )

    @classmethod
    async def open(
        cls,
        connect: Connect,
        client: Callable[[], RelayClient | None],
        *,
        handshake_s: float = link.HANDSHAKE_S,
        forward_s: float = FORWARD_S,
    ) -> RelayLink:
        """Start the process and shake hands; raise `EngineLost` if it will not."""
        opened = cls(client, forward_s)
        opened._transport = await connect(opened._peer.feed, opened._on_end)
        try:
            async with asyncio.timeout(handshake_s):
                hello = await opened._peer.call("initialize", _hello())
        except TimeoutError:
            await opened.aclose()
            tail = opened.stderr_tail
            raise EngineSilent(f"no answer to initialize within {handshake_s:g} s", tail) from None
        except WireError as error:
            await opened.aclose()
            raise EngineLost(opened._how or str(error), opened.stderr_tail) from None
        except BaseException:
            await opened.aclose()
            raise
        opened._peer.notify("notifications/initialized")
        server = hello.get("serverInfo") if isinstance(hello, dict) else None
        told = str(server.get("version")) if isinstance(server, dict) else ""
        opened._version = binary.parse_version(told) or binary.OLDEST
        opened._is_open = True
        return opened

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            version=binary.spell(self._version),
            turn_context=False,
            inject=False,
            history_pages=False,
            resume=False,
        )

    # ── tools ──────────────────────────────────────────────────────────────

    def adopt(self, thread: RelayThread) -> None:
        """A thread that has no id yet must hear of the end all the same."""
        self._unnamed.append(thread)

    def disown(self, thread: RelayThread) -> None:
        """One that was given up before it had an id will never have one."""
        if thread in self._unnamed:
            self._unnamed.remove(thread)

    def call_tool(self, thread: RelayThread, tool: str, arguments: dict[str, Any]) -> None:
        """Ask; the thread is told the answer, and before that what happens."""
        self._spawn(self._ask(thread, tool, arguments))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, thread: RelayThread, tool: str, arguments: dict[str, Any]) -> None:
        sent: list[bytes] = []

        def on_sent(request_id: bytes) -> None:
            sent.append(request_id)
            self._calls[request_id] = thread
            thread.on_sent(request_id)

        def on_reply(raw: Raw) -> None:
            # On the reader: what the child says next may be about the next turn.
            thread.on_answer(sent[0], calls.outcome(raw))

        params = {"name": tool, "arguments": arguments}
        try:
            await self._peer.call("tools/call", params, on_sent=on_sent, on_reply=on_reply)
        except RemoteError as error:
            thread.on_answer(sent[0], calls.CallOutcome(error.message, is_error=True))
        except WireError:
            thread.on_unsent(self._how or "the connection is closed")
        finally:
            for request_id in sent:
                self._calls.pop(request_id, None)

    def after_ping(self, then: Callable[[], None]) -> None:
        """Do it when the child has had a moment to say what it is about to say."""
        self._spawn(self._ping(then))

    async def _ping(self, then: Callable[[], None]) -> None:
        try:
            await self._peer.call("ping")
        except RemoteError:
            pass  # an answer all the same
        except WireError:
            return  # the thread is told of the end
        then()

    def cancel(self, request_id: bytes) -> None:
        """Stop the turn of this call. The child does so, and never answers the call."""
        self._peer.notify(*_cancelled(request_id), may_drop=False)

    # ── passing on ─────────────────────────────────────────────────────────

    async def forward(self, method: str, params: Raw) -> Raw:
        """A request of the client's that is none of ours."""
        try:
            async with asyncio.timeout(self._forward_s):
                return await self._peer.call(method, params, reply=Raw)
        except TimeoutError:
            late = f"codex mcp-server did not answer {method[:200]} within {self._forward_s:g} s"
            raise RemoteError(METHOD_NOT_FOUND, late) from None
        except RemoteError:
            raise
        except WireError:
            raise EngineLost(self._how or "the connection is closed", self.stderr_tail) from None

    def forward_notification(self, method: str, params: Raw) -> None:
        self._peer.notify(method, params)

    async def aclose(self) -> None:
        """End the process and everything it started."""
        self._closing = True
        deaf = any(thread.has_ears for thread in (*self.threads.values(), *self._unnamed))
        await self._peer.aclose()
        if self._asking:
            await asyncio.wait(tuple(self._asking))
        if self._transport is not None:
            # With a call unanswered it does not heed the end of its input.
            self._on_end(await self._transport.stop(0.0 if deaf else OWN_END_S))

    # ── from the child ─────────────────────────────────────────────────────

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _on_notification(self, method: str, raw: Raw, frame: bytes) -> None:
        told = _told(raw) if method == EVENT else None
        thread = self._thread_of(told) if told is not None else None
        if told is not None and thread is not None:
            thread.on_told(told, frame)
            return
        client = self._client()
        if client is not None:
            client.notify(method, raw)

    def _thread_of(self, told: RelayedEvent) -> RelayThread | None:
        thread = self.threads.get(told.meta.threadId)
        if thread is None:
            thread = self._calls.get(bytes(told.meta.requestId))
            if thread is not None and told.meta.threadId:
                self.threads[told.meta.threadId] = thread
                self.disown(thread)
        return thread

    async def _on_request(self, method: str, raw: Raw, request_id: bytes) -> Any:
        if method == "elicitation/create":
            params = _object(raw)
            question = question_of(params)
            thread = self._asker(params)
            if question is not None and thread is not None:
                return calls.decision(question, await thread.ask(question), self._version)
        if method == "ping":
            return {}
        client = self._client()
        if client is None:
            raise RemoteError(METHOD_NOT_FOUND, f"Nobody here answers {method[:200]}")
        return await client.request(method, raw)

    def _asker(self, params: dict[str, Any]) -> RelayThread | None:
        thread = self.threads.get(str(params.get("threadId")))
        return thread or self._calls.get(str(params.get("codex_mcp_tool_call_id")).encode())

    def _on_garbage(self, frame: bytes, problem: str) -> None:
        self.garbage += 1
        log.warning("mcp-server said something that is no message (%s): %.200r", problem, frame)

    def _on_end(self, ended: Any) -> None:
        if self._how is not None:
            return
        self._how = str(ended)
        self._log_end("mcp-server")
        self._peer.feed_eof()
        for thread in (*self.threads.values(), *self._unnamed):
            thread.on_lost(self._how)
        self.threads.clear()
        self._unnamed.clear()


def _hello() -> dict[str, Any]:
    return {
        "protocolVersion": PROTOCOL,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "laneway", "title": "Laneway", "version": __version__},
    }


def _cancelled(request_id: bytes) -> tuple[str, Any]:
    return "notifications/cancelled", {"requestId": Raw(request_id), "reason": "no longer needed"}


def _told(raw: Raw) -> RelayedEvent | None:
    """An event whose shape we know; any other is none of ours."""
    try:
        return msgspec.json.decode(raw, type=RelayedEvent)
    except UNREADABLE:
        return None


def _object(raw: Raw) -> dict[str, Any]:
    params = msgspec.json.decode(raw) if raw else {}
    return params if isinstance(params, dict) else {"value": params}
