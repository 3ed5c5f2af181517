"""The MCP connection to one running `codex mcp-server`: handshake, tool calls, and what is passed through.

Its reader only decodes, resolves and posts; it awaits nobody. Ids are ours towards the child and
the child's towards us; what Laneway does not serve itself is passed through in both directions with
only its id changed. When the process ends, every waiter gets an error, once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from laneway import __version__
from laneway.base.errors import EngineLost, EngineSilent, RemoteError, WireError
from laneway.base.ids import new_id
from laneway.codex import binary, link
from laneway.codex import relay_calls as calls
from laneway.codex.relay_events import EVENT, RelayedEvent
from laneway.codex.relay_thread import RelayThread
from laneway.codex.running import Connect, LinkBase
from laneway.core.background import TaskSet
from laneway.core.ports import Abilities
from laneway.wire.messages import METHOD_NOT_FOUND, UNREADABLE
from laneway.wire.peer import Peer, Raw

log = logging.getLogger(__name__)

PROTOCOL = "2025-06-18"
"""The newest MCP version that 0.104 … 0.153 speak; they accept any."""
OWN_END_S = 1.0
"""For a process without unanswered calls to exit by itself."""
FORWARD_S = 30.0
"""For the child to answer a request that was passed through: some it never answers."""


class RelayClient(Protocol):
    """The client that gets the child's requests and notifications that Laneway does not serve."""

    async def request(self, method: str, params: Raw) -> Raw: ...

    def notify(self, method: str, params: Raw) -> None: ...


class RelayLink(LinkBase):
    def __init__(self, client: Callable[[], RelayClient | None], forward_s: float) -> None:
        super().__init__()
        self._client = client
        self._forward_s = forward_s
        self._threads_by_call: dict[bytes, RelayThread] = {}
        self._call_tasks = TaskSet()
        self._version: tuple[int, ...] = binary.OLDEST
        self.threads: dict[str, RelayThread] = {}
        """All threads of this process, with or without an owner: the child forgets none."""
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
        """Start the process and do the handshake; raise `EngineLost` if that fails."""
        new_link = cls(client, forward_s)
        new_link._transport = await connect(new_link._peer.feed, new_link._on_end)
        try:
            async with asyncio.timeout(handshake_s):
                result = await new_link._peer.call("initialize", _initialize_params())
        except TimeoutError:
            await new_link.aclose()
            tail = new_link.stderr_tail
            raise EngineSilent(f"no answer to initialize within {handshake_s:g} s", tail) from None
        except WireError as error:
            await new_link.aclose()
            raise EngineLost(new_link._end_reason or str(error), new_link.stderr_tail) from None
        except BaseException:
            await new_link.aclose()
            raise
        new_link._peer.notify("notifications/initialized")
        server = result.get("serverInfo") if isinstance(result, dict) else None
        version = str(server.get("version")) if isinstance(server, dict) else ""
        new_link._version = binary.parse_version(version) or binary.OLDEST
        new_link._is_open = True
        return new_link

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

    def track(self, thread: RelayThread) -> None:
        """Remember a thread without an id, so that it gets an error when the process ends."""
        self._unnamed.append(thread)

    def untrack(self, thread: RelayThread) -> None:
        """Forget a thread that was released before it had an id, and will never have one."""
        if thread in self._unnamed:
            self._unnamed.remove(thread)

    def call_tool(self, thread: RelayThread, tool: str, arguments: dict[str, Any]) -> None:
        """Call a tool; the thread gets the result through `on_answer`, and before that the events."""
        self._call_tasks.spawn(self._call_tool(thread, tool, arguments), f"call of {tool}")

    async def _call_tool(self, thread: RelayThread, tool: str, arguments: dict[str, Any]) -> None:
        sent: list[bytes] = []

        def on_sent(request_id: bytes) -> None:
            sent.append(request_id)
            self._threads_by_call[request_id] = thread
            thread.on_sent(request_id)

        def on_reply(raw: Raw) -> None:
            # On the reader: the child's next message may be about the next turn.
            thread.on_answer(sent[0], calls.outcome(raw))

        params = {"name": tool, "arguments": arguments}
        try:
            await self._peer.call("tools/call", params, on_sent=on_sent, on_reply=on_reply)
        except RemoteError as error:
            thread.on_answer(sent[0], calls.CallOutcome(error.message, is_error=True))
        except WireError:
            thread.on_unsent(self._end_reason or "the connection is closed")
        finally:
            for request_id in sent:
                self._threads_by_call.pop(request_id, None)

    def after_ping(self, then: Callable[[], None]) -> None:
        """Call `then` after a ping, when the child has sent what it was about to send."""
        self._call_tasks.spawn(self._ping(then), "ping")

    async def _ping(self, then: Callable[[], None]) -> None:
        try:
            await self._peer.call("ping")
        except RemoteError:
            pass  # an error is an answer, too
        except WireError:
            return  # the thread gets `on_lost`
        then()

    def cancel(self, request_id: bytes) -> None:
        """Stop the turn of this call. The child does so, and never answers the call itself."""
        self._peer.notify(*_cancelled(request_id), may_drop=False)

    # ── passed through ─────────────────────────────────────────────────────

    async def forward(self, method: str, params: Raw) -> Raw:
        """Send a client's request that Laneway does not serve."""
        try:
            async with asyncio.timeout(self._forward_s):
                return await self._peer.call(method, params, reply=Raw)
        except TimeoutError:
            text = f"codex mcp-server did not answer {method[:200]} within {self._forward_s:g} s"
            raise RemoteError(METHOD_NOT_FOUND, text) from None
        except RemoteError:
            raise
        except WireError:
            raise EngineLost(self._end_reason or "the connection is closed", self.stderr_tail) from None

    def forward_notification(self, method: str, params: Raw) -> None:
        self._peer.notify(method, params)

    async def aclose(self) -> None:
        """End the process and everything it started."""
        self._closing = True
        has_open_calls = any(thread.has_open_calls for thread in (*self.threads.values(), *self._unnamed))
        await self._peer.aclose()
        await self._call_tasks.wait()
        if self._transport is not None:
            # With an unanswered call it ignores the end of its input.
            self._on_end(await self._transport.stop(0.0 if has_open_calls else OWN_END_S))

    # ── from the child ─────────────────────────────────────────────────────

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _on_notification(self, method: str, raw: Raw, frame: bytes) -> None:
        event = _relayed_event(raw) if method == EVENT else None
        thread = self._thread_of(event) if event is not None else None
        if event is not None and thread is not None:
            thread.on_relayed(event, frame)
            return
        client = self._client()
        if client is not None:
            client.notify(method, raw)

    def _thread_of(self, event: RelayedEvent) -> RelayThread | None:
        thread = self.threads.get(event.meta.threadId)
        if thread is None:
            thread = self._threads_by_call.get(bytes(event.meta.requestId))
            if thread is not None and event.meta.threadId:
                self.threads[event.meta.threadId] = thread
                self.untrack(thread)
        return thread

    async def _on_request(self, method: str, raw: Raw, request_id: bytes) -> Any:
        if method == "elicitation/create":
            params = _object(raw)
            question = calls.question_of(params, new_id("q"))
            thread = self._asking_thread(params)
            if question is not None and thread is not None:
                return calls.decision(question, await thread.ask(question), self._version)
        if method == "ping":
            return {}
        client = self._client()
        if client is None:
            raise RemoteError(METHOD_NOT_FOUND, f"Nobody here answers {method[:200]}")
        return await client.request(method, raw)

    def _asking_thread(self, params: dict[str, Any]) -> RelayThread | None:
        thread = self.threads.get(str(params.get("threadId")))
        return thread or self._threads_by_call.get(str(params.get("codex_mcp_tool_call_id")).encode())

    def _on_garbage(self, frame: bytes, problem: str) -> None:
        self.garbage += 1
        log.warning("mcp-server said something that is no message (%s): %.200r", problem, frame)

    def _on_end(self, exit_status: Any) -> None:
        if self._end_reason is not None:
            return
        self._end_reason = str(exit_status)
        self._log_end("mcp-server")
        self._peer.feed_eof()
        for thread in (*self.threads.values(), *self._unnamed):
            thread.on_lost(self._end_reason)
        self.threads.clear()
        self._unnamed.clear()


def _initialize_params() -> dict[str, Any]:
    return {
        "protocolVersion": PROTOCOL,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "laneway", "title": "Laneway", "version": __version__},
    }


def _cancelled(request_id: bytes) -> tuple[str, Any]:
    return "notifications/cancelled", {"requestId": Raw(request_id), "reason": "no longer needed"}


def _relayed_event(raw: Raw) -> RelayedEvent | None:
    """The event, if its shape is known; any other is passed through."""
    try:
        return msgspec.json.decode(raw, type=RelayedEvent)
    except UNREADABLE:
        return None


def _object(raw: Raw) -> dict[str, Any]:
    params = msgspec.json.decode(raw) if raw else {}
    return params if isinstance(params, dict) else {"value": params}
