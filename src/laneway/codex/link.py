"""One running app-server: the handshake, calls, and the way from its frames to threads.

Its reader only decodes, resolves and posts; it awaits nobody. When the process ends,
every waiter hears it, once. A link is never revived: `CodexEngine` opens a new one.
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
from laneway.codex.own_features import is_about_ours
from laneway.codex.running import Connect, RunningCodex, backoff_s
from laneway.codex.translate import DELTA_EVENTS, decode_delta
from laneway.core.ports import Abilities
from laneway.wire.peer import METHOD_NOT_FOUND, Peer, Raw

log = logging.getLogger(__name__)

HANDSHAKE_S = 30.0
"""A cold app-server answers in 0.1 s; one that needs this long never will."""
OWN_END_S = 1.0
"""For an app-server to end once its standard input is closed; one that never answered gets no time."""
OVERLOADED = -32001
OVERLOAD_TRIES = 6
_EARLY = frozenset({"mcpServer/startupStatus/updated", "warning"})
"""What Codex may tell of a thread before it has answered the call that opens it."""
KEPT_EARLY = 64
"""Threads whose first words are kept until somebody has them open, and words of each: a few a server."""
KEPT_WARNINGS = 32
"""Warnings told before any thread was there to hear them."""

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
"""Calls that may be sent again when Codex says it is overloaded, or has died; a turn never is."""


class ThreadListener(Protocol):
    """A thread as the link sees it."""

    @property
    def owner(self) -> ThreadListener:
        """The thread that a session holds: itself, or the one that a subagent speaks through."""
        ...

    def on_delta(self, method: str, delta: Any, frame: bytes) -> None: ...

    def on_notification(self, method: str, params: dict[str, Any], frame: bytes) -> None: ...

    async def on_request(self, method: str, params: dict[str, Any], request_id: bytes) -> Any: ...

    def on_resolved(self, request_id: bytes) -> None: ...

    def on_lost(self, how: str) -> None: ...

    def has_run(self, turn_id: str) -> bool: ...

    def adopt(self, thread_id: str) -> ThreadListener: ...


Watcher = Callable[[dict[str, Any] | None], None]
"""Told of a notification that belongs to no thread, on the reader; None: Codex has ended."""

_ADOPTING = frozenset({"turn/started", "item/completed"})
"""Notifications that may tell of a subagent's thread."""
_WARNINGS = frozenset({"configWarning", "warning", "deprecationNotice"})


class _Resolved(msgspec.Struct):
    requestId: Raw
    """As it stood on the wire: ids are compared byte for byte."""


_decode_resolved = msgspec.json.Decoder(_Resolved).decode


class Link(RunningCodex):
    def __init__(self) -> None:
        super().__init__()
        self._listeners: dict[str, ThreadListener] = {}
        self._watchers: dict[str, list[Watcher]] = {}
        self._early: dict[str, list[tuple[str, dict[str, Any], bytes]]] = {}
        """Of threads that are being opened: their MCP servers may fail before Codex has answered."""
        self._ended = asyncio.Event()
        self.abilities = Abilities(version="0")
        self.warnings: list[str] = []
        self._summaries: set[str] = set()
        """The same without their details."""
        self.garbage = 0
        self.is_logged_in = False
        """Whether Codex has said that nobody needs to log in, or to log in again."""
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
        cls, connect: Connect, handshake_s: float = HANDSHAKE_S, *, is_greeted: bool = False
    ) -> Link:
        """Start app-server and shake hands; raise `EngineError` if it will not.

        `is_greeted`: whoever starts it says our first words (`laneway.codex.hello`) along with that.
        """
        link = cls()
        answer = link._peer.expect(hello.REQUEST_ID) if is_greeted else None
        feed = link._feed_traced if log.isEnabledFor(TRACE) else link._peer.feed
        if is_greeted:
            log.log(TRACE, "→ %s", hello.FIRST.decode())
        link._transport = await connect(feed, link._on_end)
        try:
            async with asyncio.timeout(handshake_s):
                greeted = await link._greet(answer)
        except TimeoutError:
            await link.aclose(own_end_s=0.0)
            raise EngineSilent(
                f"no answer to initialize within {handshake_s:g} s", link.stderr_tail
            ) from None
        except BaseException:
            await link.aclose()
            raise
        version = binary.parse_version(str(greeted.get("userAgent", ""))) or binary.OLDEST
        link.abilities = binary.abilities(version)
        link._is_open = True
        return link

    async def _greet(self, answer: asyncio.Future[Raw] | None) -> dict[str, Any]:
        if answer is None:
            greeted = await self.call("initialize", Raw(hello.PARAMS))
            self._peer.notify("initialized")
            return greeted if isinstance(greeted, dict) else {}
        try:
            return _object(await answer)
        except RemoteError as error:
            raise _refusal("initialize", None, error) from None
        except WireError:
            raise EngineLost(self._how or "the connection is closed", self.stderr_tail) from None

    @property
    def stderr_tail(self) -> str:
        """Without the warnings that Codex gave us as messages, too: none of them is why it ended."""
        tail = super().stderr_tail
        for warning in self._summaries:
            while (at := tail.find(warning)) >= 0:  # its lines, with what its log puts before and behind it
                begin, end = tail.rfind("\n", 0, at) + 1, tail.find("\n", at + len(warning)) + 1
                tail = tail[:begin] + (tail[end:] if end else "")
        return tail

    def attach(self, thread_id: str, listener: ThreadListener) -> None:
        self._listeners[thread_id] = listener
        for method, params, frame in self._early.pop(thread_id, ()):
            listener.on_notification(method, params, frame)

    def detach(self, thread_id: str) -> None:
        """Listen no more, neither to this thread nor to the subagents that speak through it."""
        gone = self._listeners.pop(thread_id, None)
        for child, listener in list(self._listeners.items()):
            if listener.owner is gone:
                del self._listeners[child]

    @property
    def has_listeners(self) -> bool:
        return bool(self._listeners)

    def watch(self, method: str, watcher: Watcher) -> Callable[[], None]:
        """Tell of each such notification without a thread, until the returned function is called."""
        watchers = self._watchers.setdefault(method, [])
        watchers.append(watcher)

        def stop() -> None:
            if watcher in watchers:
                watchers.remove(watcher)

        return stop

    async def call(
        self, method: str, params: Any = None, *, on_reply: Callable[[Raw], None] | None = None
    ) -> Any:
        """Ask Codex; raise `EngineLost` if it dies, `EngineRefused` if it says no."""
        tries = OVERLOAD_TRIES if method in IDEMPOTENT else 1
        for attempt in range(1, tries + 1):
            try:
                with timed(log, method):
                    return await self._peer.call(method, params, on_reply=on_reply)
            except RemoteError as error:
                if error.code != OVERLOADED or attempt == tries:
                    raise _refusal(method, params, error) from None
                await asyncio.sleep(backoff_s(attempt))
            except WireError:
                raise EngineLost(self._how or "the connection is closed", self.stderr_tail) from None
        raise AssertionError("unreachable")

    async def users_config(self, cwd: Any) -> dict[str, Any]:
        """What the user's configuration comes to in a folder; empty if Codex does not tell."""
        try:
            answer = await self.call("config/read", {"cwd": str(cwd), "includeLayers": False})
        except EngineRefused as refused:
            log.info("the user's configuration could not be read: %s", refused)
            return {}
        config = answer.get("config") if isinstance(answer, dict) else None
        return config if isinstance(config, dict) else {}

    async def aclose(self, own_end_s: float = OWN_END_S) -> None:
        """End app-server and everything it started. `own_end_s` is what it gets to end by itself."""
        self._closing = True
        await self._peer.aclose()
        if self._transport is not None:
            ended = await self._transport.stop(own_end_s)
            self._on_end(ended)

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
                pass  # an odd shape goes the way of the unknown
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
        thread_id = _thread_of(params)
        if thread_id is None:
            self._tell_everybody(method, params, frame)
            return
        if method in _ADOPTING:
            self._adopt(method, thread_id, params)
        listener = self._listeners.get(thread_id)
        if method == "serverRequest/resolved" and "requestId" in params:
            self._take_back(listener, bytes(_decode_resolved(raw).requestId))
        elif listener is not None:
            listener.on_notification(method, params, frame)
        elif method in _EARLY:
            self._keep_early(thread_id, (method, params, frame))

    def _keep_early(self, thread_id: str, told: tuple[str, dict[str, Any], bytes]) -> None:
        if thread_id not in self._early and len(self._early) >= KEPT_EARLY:
            self._early.pop(next(iter(self._early)))
        early = self._early.setdefault(thread_id, [])
        if len(early) < KEPT_EARLY:
            early.append(told)

    def _tell_everybody(self, method: str, params: dict[str, Any], frame: bytes) -> None:
        if method in _WARNINGS and len(self.warnings) < KEPT_WARNINGS:
            told = (params.get("summary") or params.get("message"), params.get("details"))
            if told[0]:
                self._summaries.add(str(told[0]))
            if not is_about_ours(told[0]):
                self.warnings.append(" ".join(str(part) for part in told if part))
        if method == "account/updated":
            self.is_logged_in = False  # somebody logged in or out: the next thread asks again
        for watcher in list(self._watchers.get(method, ())):
            watcher(params)
        for listener in list(self._listeners.values()):
            listener.on_notification(method, params, frame)

    def _take_back(self, listener: ThreadListener | None, request_id: bytes) -> None:
        """Codex needs no answer to this request any more, or has had it."""
        if listener is not None:
            listener.on_resolved(request_id)
        self._peer.cancel_theirs(request_id)

    def _adopt(self, method: str, thread_id: str, params: dict[str, Any]) -> None:
        """A subagent's thread speaks through the thread that started it.

        Codex does not announce such threads: the first turn of one names the turn that it is
        for, and before that existed, the parent's tool call named the thread.
        """
        if method == "turn/started":
            root = _field(params, "turn", "rootTurnId")
            if root is None or thread_id in self._listeners:
                return
            parents = (listener for listener in self._listeners.values() if listener.has_run(root))
            parent, children = next(parents, None), list[Any]((thread_id,))
        elif _field(params, "item", "type") == "collabAgentToolCall":
            named = _field(params, "item", "receiverThreadIds")
            parent, children = self._listeners.get(thread_id), named if isinstance(named, list) else []
        else:
            return
        for child in children:
            if parent is not None and isinstance(child, str) and child not in self._listeners:
                self._listeners[child] = parent.adopt(child)

    async def _on_request(self, method: str, raw: Raw, request_id: bytes) -> Any:
        params = _object(raw)
        thread_id = _thread_of(params)
        listener = self._listeners.get(thread_id) if thread_id else None
        if listener is None:
            raise RemoteError(METHOD_NOT_FOUND, f"Nobody here answers {method}")
        return await listener.on_request(method, params, request_id)

    def _on_garbage(self, frame: bytes, problem: str) -> None:
        self.garbage += 1
        log.warning("app-server said something that is no message (%s): %.200r", problem, frame)

    def _on_end(self, ended: Any) -> None:
        if self._how is not None:
            return
        self._how = str(ended)
        self._log_end("app-server")
        self._peer.feed_eof()
        for listener in list(self._listeners.values()):
            listener.on_lost(self._how)
        self._listeners.clear()
        for watcher in [each for watchers in self._watchers.values() for each in watchers]:
            watcher(None)


def _object(raw: Raw) -> dict[str, Any]:
    params = msgspec.json.decode(raw) if raw else {}
    return params if isinstance(params, dict) else {"value": params}


def _field(params: dict[str, Any], outer: str, inner: str) -> Any:
    """A field of an object inside, if there is such an object."""
    value = params.get(outer)
    return value.get(inner) if isinstance(value, dict) else None


def _thread_of(params: dict[str, Any]) -> str | None:
    thread_id = params.get("threadId") or params.get("conversationId")
    if thread_id is None and isinstance(params.get("thread"), dict):
        thread_id = params["thread"].get("id")
    return thread_id if isinstance(thread_id, str) else None


def is_unborn(refused: EngineRefused) -> bool:
    """Whether the thread has no history because nothing was said in it yet. Only the text tells."""
    return "not materialized yet" in refused.message


def _refusal(method: str, params: Any, error: RemoteError) -> EngineError:
    """Codex's error answers, some of which only their text tells apart: read here and nowhere else."""
    thread_id = str(params.get("threadId")) if isinstance(params, dict) else ""
    text = error.message.lower()
    if "active writer" in text:
        return ActiveWriter(thread_id, None)
    if "thread not found" in text or "no rollout found" in text or "thread not loaded" in text:
        return ThreadUnknown(thread_id)
    if "invalid session id" in text or "invalid thread id" in text:
        return ThreadUnknown(thread_id)  # what follows is a parser's own words
    if ("rollout at" in text and text.endswith("is empty")) or text.endswith("empty session file"):
        return ThreadUnknown(thread_id)  # killed before it had written anything of the thread's first turn
    return EngineRefused(method, error.code, error.message)
