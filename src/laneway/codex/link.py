"""The JSON-RPC connection to one running app-server: handshake, calls, and routing of messages to threads.

Its reader only decodes, resolves and posts; it awaits nobody. When the process ends, every waiter
gets an error, once. A link is never reopened: `CodexEngine` opens a new one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from laneway.base.errors import (
    ActiveWriter,
    EngineError,
    EngineLost,
    EngineRefused,
    EngineSilent,
    RemoteError,
    ThreadUnknown,
    WireError,
)
from laneway.base.log import TRACE, timed
from laneway.codex import binary, hello
from laneway.codex.own_features import is_about_own_features
from laneway.codex.running import Connect, LinkBase, backoff_s
from laneway.codex.translate import DELTA_EVENTS, decode_delta
from laneway.core.ports import Abilities
from laneway.wire.peer import METHOD_NOT_FOUND, Peer, Raw

log = logging.getLogger(__name__)

HANDSHAKE_S = 30.0
"""A cold app-server answers in 0.1 s; one that needs longer than this never answers."""
OWN_END_S = 1.0
"""For app-server to exit after its standard input is closed; one that never answered gets no time."""
OVERLOADED = -32001
OVERLOAD_TRIES = 6
_REMEDIES = {"thread/resume": "If Codex never wrote its transcript, start a new session."}
"""By method: what the user can do if Codex refuses it for a reason that we do not know."""
_EARLY = frozenset({"mcpServer/startupStatus/updated", "warning"})
"""Notifications about a thread that Codex may send before it answers the call that opens it."""
MAX_EARLY = 64
"""Threads whose early notifications are kept until they are attached, and notifications per thread."""
MAX_WARNINGS = 32
"""Warnings of the process that are kept."""

IDEMPOTENT = frozenset(
    {
        "thread/read",
        "thread/list",
        "thread/turns/list",
        "thread/items/list",
        "thread/resume",
        "model/list",
        "account/read",
        "config/read",
    }
)
"""Calls that may be sent again when Codex is overloaded or has died; a turn may not."""


class ThreadListener(Protocol):
    """A thread, as the link calls it."""

    @property
    def owner(self) -> ThreadListener:
        """The thread that a session owns: itself, or a subagent's parent."""
        ...

    def on_delta(self, method: str, delta: Any, frame: bytes) -> None: ...

    def on_notification(self, method: str, params: dict[str, Any], frame: bytes) -> None: ...

    async def on_request(self, method: str, params: dict[str, Any], request_id: bytes) -> Any: ...

    def on_resolved(self, request_id: bytes) -> None: ...

    def on_lost(self, how: str) -> None: ...

    def has_run(self, turn_id: str) -> bool: ...

    def subagent(self, thread_id: str) -> ThreadListener: ...


Watcher = Callable[[dict[str, Any] | None], None]
"""Called on the reader with the params of a notification that belongs to no thread; None: Codex has ended."""

_NAMING_SUBAGENTS = frozenset({"turn/started", "item/completed"})
"""Notifications by which a subagent's thread may become known."""
_WARNINGS = frozenset({"configWarning", "warning", "deprecationNotice"})


class _Resolved(msgspec.Struct):
    requestId: Raw
    """As received: ids are compared byte for byte."""


_decode_resolved = msgspec.json.Decoder(_Resolved).decode


class Link(LinkBase):
    def __init__(self) -> None:
        super().__init__()
        self._listeners: dict[str, ThreadListener] = {}
        self._watchers: dict[str, list[Watcher]] = {}
        self._early: dict[str, list[tuple[str, dict[str, Any], bytes]]] = {}
        """By thread that is being opened: its MCP servers may fail before Codex has answered."""
        self._ended = asyncio.Event()
        self.abilities = Abilities(version="0")
        self.warnings: list[str] = []
        self._warning_summaries: set[str] = set()
        """The summaries of all warnings, without details."""
        self.garbage = 0
        self.is_logged_in = False
        """Whether Codex has answered that no login is needed."""
        self._peer = Peer(
            self._write,
            on_request=self._on_request,
            on_notification=self._on_notification,
            on_garbage=self._on_garbage,
            with_header=False,
            with_batches=False,
        )

    @classmethod
    async def open(
        cls, connect: Connect, handshake_s: float = HANDSHAKE_S, *, is_handshake_sent: bool = False
    ) -> Link:
        """Start app-server and do the handshake; raise `EngineError` if that fails.

        `is_handshake_sent`: `connect` writes the handshake (`laneway.codex.hello`) as it starts the process.
        """
        link = cls()
        answer = link._peer.expect(hello.REQUEST_ID) if is_handshake_sent else None
        feed = link._feed_traced if log.isEnabledFor(TRACE) else link._peer.feed
        if is_handshake_sent:
            log.log(TRACE, "→ %s", hello.HANDSHAKE.decode())
        link._transport = await connect(feed, link._on_end)
        try:
            async with asyncio.timeout(handshake_s):
                result = await link._handshake(answer)
        except TimeoutError:
            await link.aclose(own_end_s=0.0)
            raise EngineSilent(
                f"no answer to initialize within {handshake_s:g} s", link.stderr_tail
            ) from None
        except BaseException:
            await link.aclose()
            raise
        version = binary.parse_version(str(result.get("userAgent", ""))) or binary.OLDEST
        link.abilities = binary.abilities(version)
        link._is_open = True
        return link

    async def _handshake(self, answer: asyncio.Future[Raw] | None) -> dict[str, Any]:
        if answer is None:
            result = await self.call("initialize", Raw(hello.PARAMS))
            self._peer.notify("initialized")
            return result if isinstance(result, dict) else {}
        try:
            return _object(await answer)
        except RemoteError as error:
            raise engine_error("initialize", None, error) from None
        except WireError:
            raise EngineLost(self._end_reason or "the connection is closed", self.stderr_tail) from None

    @property
    def stderr_tail(self) -> str:
        """Without the warnings that Codex also sent as notifications: none of them is why it ended."""
        tail = super().stderr_tail
        for warning in self._warning_summaries:
            while (at := tail.find(warning)) >= 0:  # whole lines, with what the log adds before and after
                begin, end = tail.rfind("\n", 0, at) + 1, tail.find("\n", at + len(warning)) + 1
                tail = tail[:begin] + (tail[end:] if end else "")
        return tail

    def attach(self, thread_id: str, listener: ThreadListener) -> None:
        self._listeners[thread_id] = listener
        for method, params, frame in self._early.pop(thread_id, ()):
            listener.on_notification(method, params, frame)

    def detach(self, thread_id: str) -> None:
        """Stop routing messages to this thread and to its subagents."""
        detached = self._listeners.pop(thread_id, None)
        for child, listener in list(self._listeners.items()):
            if listener.owner is detached:
                del self._listeners[child]

    @property
    def has_listeners(self) -> bool:
        return bool(self._listeners)

    def watch(self, method: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` for each such notification without a thread; return a function that stops that."""
        watchers = self._watchers.setdefault(method, [])
        watchers.append(watcher)

        def stop() -> None:
            if watcher in watchers:
                watchers.remove(watcher)

        return stop

    async def call(
        self, method: str, params: Any = None, *, on_reply: Callable[[Raw], None] | None = None
    ) -> Any:
        """Send a request; raise `EngineLost` if Codex dies, `EngineRefused` if it answers with an error."""
        tries = OVERLOAD_TRIES if method in IDEMPOTENT else 1
        for attempt in range(1, tries + 1):
            try:
                with timed(log, method):
                    return await self._peer.call(method, params, on_reply=on_reply)
            except RemoteError as error:
                if error.code != OVERLOADED or attempt == tries:
                    raise engine_error(method, params, error) from None
                await asyncio.sleep(backoff_s(attempt))
            except WireError:
                raise EngineLost(self._end_reason or "the connection is closed", self.stderr_tail) from None
        raise AssertionError("unreachable")

    async def users_config(self, cwd: Any) -> dict[str, Any]:
        """The user's effective configuration in a folder; empty if Codex does not answer."""
        try:
            answer = await self.call("config/read", {"cwd": str(cwd), "includeLayers": False})
        except EngineRefused as refused:
            log.info("the user's configuration could not be read: %s", refused)
            return {}
        config = answer.get("config") if isinstance(answer, dict) else None
        return config if isinstance(config, dict) else {}

    async def aclose(self, own_end_s: float = OWN_END_S) -> None:
        """End app-server and everything it started. `own_end_s` is the time that it has to exit by itself."""
        self._closing = True
        await self._peer.aclose()
        if self._transport is not None:
            exit_status = await self._transport.stop(own_end_s)
            self._on_end(exit_status)

    # ── from Codex ─────────────────────────────────────────────────────────

    def _feed_traced(self, data: bytes) -> None:
        log.log(TRACE, "← %s", data.decode("utf-8", "replace"))
        self._peer.feed(data)

    def _write(self, data: bytes) -> None:
        if log.isEnabledFor(TRACE):
            log.log(TRACE, "→ %s", data.decode("utf-8", "replace"))
        if self._transport is not None:
            self._transport.write(data)

    def _on_notification(self, method: str, raw: Raw, frame: bytes) -> None:
        if method in DELTA_EVENTS:
            try:
                delta = decode_delta(raw)
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass  # an unknown shape is handled like an unknown method
            else:
                listener = self._listeners.get(delta.threadId)
                if listener is not None:
                    listener.on_delta(method, delta, frame)
                return
        try:
            params = _object(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            self._on_garbage(frame, str(problem))
            return
        thread_id = _thread_id_of(params)
        if thread_id is None:
            self._broadcast(method, params, frame)
            return
        if method in _NAMING_SUBAGENTS:
            self._attach_subagents(method, thread_id, params)
        listener = self._listeners.get(thread_id)
        if method == "serverRequest/resolved" and "requestId" in params:
            self._on_resolved_request(listener, bytes(_decode_resolved(raw).requestId))
        elif listener is not None:
            listener.on_notification(method, params, frame)
        elif method in _EARLY:
            self._keep_early(thread_id, (method, params, frame))

    def _keep_early(self, thread_id: str, notification: tuple[str, dict[str, Any], bytes]) -> None:
        if thread_id not in self._early and len(self._early) >= MAX_EARLY:
            self._early.pop(next(iter(self._early)))
        early = self._early.setdefault(thread_id, [])
        if len(early) < MAX_EARLY:
            early.append(notification)

    def _broadcast(self, method: str, params: dict[str, Any], frame: bytes) -> None:
        if method in _WARNINGS and len(self.warnings) < MAX_WARNINGS:
            texts = (params.get("summary") or params.get("message"), params.get("details"))
            if texts[0]:
                self._warning_summaries.add(str(texts[0]))
            if not is_about_own_features(texts[0]):
                self.warnings.append(" ".join(str(part) for part in texts if part))
        if method == "account/updated":
            self.is_logged_in = False  # somebody logged in or out: the next thread checks again
        for watcher in list(self._watchers.get(method, ())):
            watcher(params)
        for listener in list(self._listeners.values()):
            listener.on_notification(method, params, frame)

    def _on_resolved_request(self, listener: ThreadListener | None, request_id: bytes) -> None:
        """Codex needs no answer to this request any more, or has got one."""
        if listener is not None:
            listener.on_resolved(request_id)
        self._peer.cancel_theirs(request_id)

    def _attach_subagents(self, method: str, thread_id: str, params: dict[str, Any]) -> None:
        """Route the messages of a subagent's thread to the thread that started it.

        Codex does not announce such threads: the first turn of one names its root turn, and in
        versions without that field the parent's tool call names the thread.
        """
        if method == "turn/started":
            root = _field(params, "turn", "rootTurnId")
            if root is None or thread_id in self._listeners:
                return
            parents = (listener for listener in self._listeners.values() if listener.has_run(root))
            parent, children = next(parents, None), list[Any]((thread_id,))
        elif _field(params, "item", "type") == "collabAgentToolCall":
            receivers = _field(params, "item", "receiverThreadIds")
            parent, children = (
                self._listeners.get(thread_id),
                receivers if isinstance(receivers, list) else [],
            )
        else:
            return
        for child in children:
            if parent is not None and isinstance(child, str) and child not in self._listeners:
                self._listeners[child] = parent.subagent(child)

    async def _on_request(self, method: str, raw: Raw, request_id: bytes) -> Any:
        params = _object(raw)
        thread_id = _thread_id_of(params)
        listener = self._listeners.get(thread_id) if thread_id else None
        if listener is None:
            raise RemoteError(METHOD_NOT_FOUND, f"Nobody here answers {method}")
        return await listener.on_request(method, params, request_id)

    def _on_garbage(self, frame: bytes, problem: str) -> None:
        self.garbage += 1
        log.warning("app-server said something that is no message (%s): %.200r", problem, frame)

    def _on_end(self, exit_status: Any) -> None:
        if self._end_reason is not None:
            return
        self._end_reason = str(exit_status)
        self._log_end("app-server")
        self._peer.feed_eof()
        for listener in list(self._listeners.values()):
            listener.on_lost(self._end_reason)
        self._listeners.clear()
        for watcher in [each for watchers in self._watchers.values() for each in watchers]:
            watcher(None)


def _object(raw: Raw) -> dict[str, Any]:
    params = msgspec.json.decode(raw) if raw else {}
    return params if isinstance(params, dict) else {"value": params}


def _field(params: dict[str, Any], outer: str, inner: str) -> Any:
    """A field of a nested object; none if there is no such object."""
    value = params.get(outer)
    return value.get(inner) if isinstance(value, dict) else None


def _thread_id_of(params: dict[str, Any]) -> str | None:
    thread_id = params.get("threadId") or params.get("conversationId")
    if thread_id is None and isinstance(params.get("thread"), dict):
        thread_id = params["thread"].get("id")
    return thread_id if isinstance(thread_id, str) else None


def has_no_turns(error: EngineRefused) -> bool:
    """Whether the thread has no history because it had no turn yet. Only the error's text says so."""
    return "not materialized yet" in error.message


def engine_error(method: str, params: Any, error: RemoteError) -> EngineError:
    """An error answer as one of our errors. Some are known only by their text, which is read only here."""
    thread_id = str(params.get("threadId")) if isinstance(params, dict) else ""
    text = error.message.lower()
    if "active writer" in text:
        return ActiveWriter(thread_id, None)
    if "thread not found" in text or "no rollout found" in text or "thread not loaded" in text:
        return ThreadUnknown(thread_id)
    if "invalid session id" in text or "invalid thread id" in text:
        return ThreadUnknown(thread_id)  # the rest is the text of a parser
    if ("rollout at" in text and text.endswith("is empty")) or text.endswith("empty session file"):
        return ThreadUnknown(thread_id)  # killed before it wrote anything of the thread's first turn
    return EngineRefused(method, error.code, error.message, remedy=_REMEDIES.get(method, ""))
