"""The connection to one running Claude Code: its handshake, our control requests, and its messages.

Its reader only decodes, resolves and posts; it awaits nobody. When the process ends, every waiter gets
an error, once. A process is never reopened: `laneway.claude.thread` starts another one.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from laneway.base.engines import CLAUDE
from laneway.base.errors import EngineLost, EngineRefused, EngineSilent
from laneway.base.log import TRACE
from laneway.wire.child import Child, Exit
from laneway.wire.frames import LineDecoder, as_line
from laneway.wire.messages import mend

T = TypeVar("T")

log = logging.getLogger(__name__)

HANDSHAKE_S = 60.0
"""A cold Claude Code answers in half a second; with slow MCP servers of the user's it takes longer."""
CONTROL_S = 30.0
"""For the answer to a control request: milliseconds, unless the process hangs."""
OWN_END_S = 2.0
"""To end by itself after its input is closed: it writes its transcript and ends its MCP servers."""
MAX_LINE_BYTES = 64 * 1024 * 1024
"""One message. Claude Code cuts what tools print at 30 kB; images stay far below. More ends the process."""

_HELLO = "laneway-hello"
Response = dict[str, Any]


class StreamDelta(msgspec.Struct, gc=False):
    type: str = ""
    text: str = ""
    thinking: str = ""


class _StreamPart(msgspec.Struct):
    type: str
    index: int = 0
    delta: StreamDelta | None = None
    message: dict[str, Any] | None = None
    content_block: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None


class StreamEvent(msgspec.Struct):
    """A piece of an answer of the model. There are tens of thousands, so only what is used is decoded."""

    event: _StreamPart
    parent_tool_use_id: str | None = None


_STREAM_START = b'{"type":"stream_event"'
_stream_decoder = msgspec.json.Decoder(StreamEvent)
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def decoded(decoder: msgspec.json.Decoder[T], line: bytes) -> T:
    """A line of Claude Code's, who cuts texts inside an emoji and writes half of it."""
    try:
        return decoder.decode(line)
    except msgspec.DecodeError:
        mended = mend(line)
        if mended == line:
            raise
        return decoder.decode(mended)


class Listener(Protocol):
    """Called on the reader, in the order of the messages; must not raise."""

    def on_stream(self, event: StreamEvent, frame: bytes) -> None: ...

    def on_message(self, message: dict[str, Any], frame: bytes) -> None: ...

    def on_request(self, request_id: str, request: dict[str, Any]) -> None:
        """A request of Claude Code's, to be answered by `reply` or `refuse`."""
        ...

    def on_cancel(self, request_id: str) -> None:
        """That request needs no answer any more."""
        ...

    def on_end(self, how: str) -> None: ...


class ClaudeProcess:
    """`await process.open(…)` once, later `await process.aclose()`."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._child: Child | None = None
        self._lines = LineDecoder(MAX_LINE_BYTES, self._on_oversize)
        self._pending: dict[str, tuple[str, asyncio.Future[Response]]] = {}
        """Our control requests that wait for an answer: the subtype of each, and who waits."""
        self._numbers = itertools.count(1)
        self._is_closing = False
        self._end_reason: str | None = None
        self._fault: str | None = None
        """Why we ended the process ourselves."""
        self.first_error: str | None = None
        """What it said instead of an answer to the handshake."""
        self.garbage = 0
        self.hello: Response = {}
        """The answer to the handshake."""

    async def open(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        cwd: Path,
        initialize: Mapping[str, Any],
        held: Sequence[int] = (),
        handshake_s: float = HANDSHAKE_S,
    ) -> None:
        """Start Claude Code and do the handshake; raise `EngineError` or `OSError` if that fails.

        `held`: locks that are kept until the process and everything it started are gone.
        """
        answer = self._expect(_HELLO, "initialize")
        hello = {
            "type": "control_request",
            "request_id": _HELLO,
            "request": {"subtype": "initialize", **initialize},
        }
        self._child = await Child.spawn(
            argv, on_stdout=self._feed, on_end=self._on_end, env=environment, cwd=cwd, held=held
        )
        try:
            if self._is_closing:
                raise EngineLost("it was ended while it started", engine=CLAUDE)
            self._write(hello)
            async with asyncio.timeout(handshake_s):
                self.hello = await answer
        except TimeoutError:
            await self.aclose(own_end_s=0.0)
            raise EngineSilent(
                f"no answer to initialize within {handshake_s:g} s", self.stderr_tail, engine=CLAUDE
            ) from None
        except BaseException:
            await self.aclose()
            raise

    @property
    def is_alive(self) -> bool:
        return self._end_reason is None and not self._is_closing

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    @property
    def stderr_tail(self) -> str:
        return self._child.stderr_tail if self._child is not None else ""

    # ── to Claude Code ─────────────────────────────────────────────────────

    def send_input(self, uuid: str, content: list[dict[str, Any]]) -> None:
        """What a person says. It is reported under its uuid when it is taken."""
        message = {"role": "user", "content": content}
        self._write(
            {"type": "user", "uuid": uuid, "message": message, "parent_tool_use_id": None, "session_id": ""}
        )

    def take_back(self, uuid: str) -> None:
        """Take an input back, if no turn has taken it up. Waits for no answer: it may hang."""
        request = {"subtype": "cancel_async_message", "message_uuid": uuid}
        request_id = f"laneway-{next(self._numbers)}"
        self._write({"type": "control_request", "request_id": request_id, "request": request})

    async def interrupt(self, waiting: Sequence[str]) -> None:
        """End what runs, and take these inputs back, with which it would go on."""
        calls = [
            *(self.control("cancel_async_message", message_uuid=uuid) for uuid in waiting),
            self.control("interrupt"),
        ]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        if isinstance(answers[-1], BaseException):
            raise answers[-1]

    async def control(self, subtype: str, **fields: Any) -> Response:
        """Send a control request and wait for its answer."""
        if not self.is_alive:
            raise self.loss()
        request_id = f"laneway-{next(self._numbers)}"
        answer = self._expect(request_id, subtype)
        request = {"subtype": subtype, **fields}
        self._write({"type": "control_request", "request_id": request_id, "request": request})
        try:
            async with asyncio.timeout(CONTROL_S):
                return await answer
        except TimeoutError:
            raise EngineRefused(
                subtype, 0, f"it did not answer within {CONTROL_S:g} s", engine=CLAUDE
            ) from None
        finally:
            self._pending.pop(request_id, None)

    def reply(self, request_id: str, response: Response) -> None:
        body = {"subtype": "success", "request_id": request_id, "response": response}
        self._write({"type": "control_response", "response": body})

    def refuse(self, request_id: str, problem: str) -> None:
        body = {"subtype": "error", "request_id": request_id, "error": problem}
        self._write({"type": "control_response", "response": body})

    def _expect(self, request_id: str, subtype: str) -> asyncio.Future[Response]:
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = subtype, answer
        return answer

    def _write(self, message: dict[str, Any]) -> None:
        line = as_line(msgspec.json.encode(message))
        if log.isEnabledFor(TRACE):
            log.log(TRACE, "→ %s", line.decode())
        if self._child is not None:
            self._child.write(line)

    # ── from Claude Code ───────────────────────────────────────────────────

    def _feed(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            if log.isEnabledFor(TRACE):
                log.log(TRACE, "← %s", line.decode("utf-8", "replace"))
            try:
                self._take(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError, KeyError) as problem:
                self.garbage += 1
                log.warning("Claude Code said something that is no message (%s): %.200r", problem, line)
            except Exception:
                # A message of a shape that no version has: it must not end the reader.
                self.garbage += 1
                log.exception("a message of Claude Code's could not be read: %.200r", line)

    def _take(self, line: bytes) -> None:
        if line.startswith(_STREAM_START):
            self._listener.on_stream(decoded(_stream_decoder, line), line)
            return
        message = decoded(_decoder, line)
        match message["type"]:
            case "control_response":
                self._on_response(message["response"])
            case "control_request":
                request = message.get("request")
                if isinstance(request, dict):
                    self._listener.on_request(str(message["request_id"]), request)
                else:
                    self.refuse(str(message["request_id"]), "Laneway expects an object as a request")
            case "control_cancel_request":
                self._listener.on_cancel(str(message["request_id"]))
            case "stream_event":
                self._listener.on_stream(decoded(_stream_decoder, line), line)
            case kind:
                if _HELLO in self._pending and kind == "result":
                    errors = message.get("errors")
                    self.first_error = "; ".join(map(str, errors)) if isinstance(errors, list) else None
                self._listener.on_message(message, line)

    def _on_response(self, response: Any) -> None:
        if not isinstance(response, dict):
            raise TypeError("a response is an object")
        # Our own answers come back as well, under ids that are none of ours.
        subtype, answer = self._pending.pop(str(response.get("request_id")), ("", None))
        if answer is None or answer.done():
            return
        if response.get("subtype") == "success":
            value = response.get("response")
            answer.set_result(value if isinstance(value, dict) else {})
        else:
            problem = str(response.get("error") or "no reason given")
            answer.set_exception(EngineRefused(subtype, 0, problem, engine=CLAUDE))

    def _on_oversize(self, size: int) -> None:
        """What was in that line is unknown, be it a question that Claude Code waits for: it has to end."""
        if self._fault is None:
            self._fault = f"it sent a line of more than {MAX_LINE_BYTES // 2**20} MB, and was ended"
            if self._child is not None:
                self._child.kill()

    # ── the end ────────────────────────────────────────────────────────────

    def loss(self) -> EngineLost:
        return EngineLost(self._end_reason or "it is not running", self.stderr_tail, engine=CLAUDE)

    def _on_end(self, exit_status: Exit) -> None:
        self._end_reason = self._fault or str(exit_status)
        if not self._is_closing:
            words = self.stderr_tail[-500:].strip() or "none"
            log.info("Claude Code ended: %s; its last words: %s", self._end_reason, words)
        for _, answer in self._pending.values():
            if not answer.done():
                answer.set_exception(self.loss())
        self._pending.clear()
        if not self._is_closing:
            self._listener.on_end(self._end_reason)

    async def aclose(self, own_end_s: float = OWN_END_S) -> None:
        """End the process and everything that it started. The listener is not called any more."""
        self._is_closing = True
        if self._child is not None:
            await self._child.stop(own_end_s)
