"""Handshake: answers `initialize` before the rest of Laneway is loaded, then forwards all other messages.

The answer needs no Codex, and the other modules are imported after it: an editor has it in half the
time. Every `LanewayError` of a request becomes a JSON-RPC error here. A cancel, which is a notification,
waits one iteration of the event loop: by then, prompts that were sent before it are in the queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from laneway.base.errors import LanewayError, RemoteError
from laneway.base.log import bound, timed
from laneway.core.background import TaskSet
from laneway.doors.acp.accounts.auth_methods import methods
from laneway.doors.acp.client import EditorClient, client_of
from laneway.doors.acp.faults import CANCELLED, bad_params, fault, wire_error
from laneway.doors.acp.ids import thread_id
from laneway.doors.acp.v2 import greeting as draft
from laneway.wire.messages import INVALID_REQUEST, UNREADABLE
from laneway.wire.peer import Peer, Raw

if TYPE_CHECKING:
    from laneway.doors.acp.agent import Agent

log = logging.getLogger(__name__)

PROTOCOL = 1
"""The stable version, also the answer to a client that offers another one; but see `speaks_draft`."""

MAX_SHOWN_ID = 100
"""Bytes of a request's id in the log: a client may choose a longer one."""

MAX_MESSAGE_BYTES = 128 * 1024 * 1024
"""Of one message. An image that is too large gets an error that says so, so it must be read first."""

Params: TypeAlias = dict[str, Any]


class Greeting(msgspec.Struct, frozen=True):
    """The variable parts of the answer to `initialize`, and the choice of the protocol version."""

    version: str
    program: tuple[str, ...]
    """The command that starts this agent, for a login in a terminal."""
    environment: Mapping[str, str]
    is_unstable: bool = False
    """Whether methods are offered that the stable protocol does not have yet."""
    speaks_draft: bool = False
    """Whether a client that offers protocol 2 gets it."""

    def read_client(self, params: Params) -> EditorClient:
        if self.speaks_draft and params["protocolVersion"] >= draft.PROTOCOL:
            return draft.client_of(params)
        return client_of(params)

    def answer(self, client: EditorClient) -> dict[str, Any]:
        if client.protocol == draft.PROTOCOL:
            return draft.answer(client, self.version, self.program, self.environment)
        names = ["list", "delete", "additionalDirectories", "resume", "close"]
        if self.is_unstable or client.is_unstable:
            names.append("fork")
        return {
            "protocolVersion": PROTOCOL,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": False},
                "sessionCapabilities": {name: {} for name in names},
                "auth": {"logout": {}},
            },
            "authMethods": methods(client, self.program, self.environment),
            "agentInfo": {"name": "laneway", "title": "Codex by Laneway", "version": self.version},
        }


Engage: TypeAlias = Callable[[EditorClient, Peer], Awaitable["Agent"]]
"""Makes the agent that serves a client; the first call opens the shared resources."""


class Handshake:
    """The connection of one client. `on_request` and `on_notification` are called by its peer."""

    def __init__(self, greeting: Greeting, engage: Engage, peer: Callable[[], Peer]) -> None:
        self._greeting = greeting
        self._engage = engage
        self._peer = peer
        self._agent: asyncio.Future[Agent] | None = None
        self._agent_order = asyncio.Lock()
        self._cancels = TaskSet()

    async def on_request(self, method: str, raw: Raw, request_id: bytes) -> Any:
        with bound(request=request_id[:MAX_SHOWN_ID].decode(errors="replace")):
            try:
                return await self._serve(method, _decode_object(raw), request_id)
            except LanewayError as error:
                raise wire_error(error) from error

    async def _serve(self, method: str, params: Params, request_id: bytes) -> Any:
        session_id = params.get("sessionId")
        thread = thread_id(session_id) if isinstance(session_id, str) else None
        with bound(session=session_id if thread else None, thread=thread), timed(log, method):
            if method == "initialize":
                return self._initialize(params)
            if self._agent is None:
                raise fault(INVALID_REQUEST, "Say `initialize` first.")
            agent = await self._wait_agent(self._agent)
            return await agent.serve(method, params, request_id)

    async def _wait_agent(self, agent: asyncio.Future[Agent]) -> Agent:
        """The agent once it is ready. Callers get it in the order in which they asked."""
        async with self._agent_order:
            return await asyncio.shield(agent)

    def _initialize(self, params: Params) -> dict[str, Any]:
        if not isinstance(params.get("protocolVersion"), int):
            raise bad_params("initialize needs protocolVersion, a number.")
        if self._agent is not None:
            raise fault(INVALID_REQUEST, "`initialize` has been said already.")
        client = self._greeting.read_client(params)
        log.info("client %s %s", client.name or "without a name", client.version)
        self._agent = asyncio.ensure_future(self._make_agent(client))
        self._agent.add_done_callback(_retrieve_exception)
        return self._greeting.answer(client)

    async def _make_agent(self, client: EditorClient) -> Agent:
        await asyncio.sleep(0)  # the answer to `initialize` is written first
        await asyncio.sleep(0)
        return await self._engage(client, self._peer())

    def on_notification(self, method: str, raw: Raw, frame: bytes) -> None:
        try:
            if method == "session/cancel":
                self._cancels.spawn(self._cancel(_decode_object(raw).get("sessionId")), "a cancel")
            elif method == "$/cancel_request":
                request_id = bytes(msgspec.json.decode(raw, type=_Cancel).requestId)
                asyncio.get_running_loop().call_soon(self._cancel_request, request_id)
            else:
                log.debug("the client said %s", method[:100])
        except (RemoteError, *UNREADABLE) as problem:
            log.info("a cancel that names nothing: %s", problem)

    async def _cancel(self, session_id: Any) -> None:
        """Cancel after the requests that came before this one and still wait for the agent."""
        if self._agent is None:
            return  # no request can be running yet
        try:
            agent = await self._wait_agent(self._agent)
        except LanewayError as error:
            log.info("nothing to cancel: %s", error)
        else:
            agent.cancel(str(session_id))

    def _cancel_request(self, request_id: bytes) -> None:
        self._peer().cancel_theirs(request_id, RemoteError(CANCELLED, "The request was cancelled."))

    async def aclose(self) -> None:
        """Close the agent, if there is one: the client has disconnected."""
        await self._cancels.cancel()
        if self._agent is not None:
            self._agent.cancel()
            await asyncio.gather(self._agent, return_exceptions=True)
            if not self._agent.cancelled() and self._agent.exception() is None:
                await self._agent.result().aclose()


def _retrieve_exception(agent: asyncio.Future[Agent]) -> None:
    """Mark a failure as seen, so that asyncio does not log it: every request of the client reports it."""
    if not agent.cancelled():
        agent.exception()


class _Cancel(msgspec.Struct):
    requestId: msgspec.Raw


def cancel_notice(request_id: bytes) -> tuple[str, Any]:
    """The notification that cancels one of our own requests."""
    return "$/cancel_request", {"requestId": msgspec.Raw(request_id)}


def _decode_object(raw: Raw) -> Params:
    try:
        params = msgspec.json.decode(raw) if raw else {}
    except UNREADABLE as problem:
        raise bad_params(f"The params cannot be read: {problem}") from problem
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise bad_params("The params must be an object.")
    return params
