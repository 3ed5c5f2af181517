"""What the fuzzer drives: one function for each place where foreign bytes come in.

Each takes any bytes and returns, or raises: that is a find. `scripts/fuzz.py` runs them
under coverage guidance, `tests/fuzz/test_finds.py` plays every stored find again.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from laneway.base import settings, trust
from laneway.base.errors import EngineLost, FileDamaged, FileNewer, SettingError, StoreError
from laneway.codex.link import Link
from laneway.codex.thread import CodexThread
from laneway.codex.translate import Translator
from laneway.core.model import Event, FromSubagent, TurnDone, TurnStarted, public
from laneway.rehearsal import script
from laneway.store import registry
from laneway.testing.tape import DecliningHost
from laneway.wire.batch import MAX_BATCH
from laneway.wire.frames import LineDecoder
from laneway.wire.headers import MAX_SKIP_FRAMES, MixedDecoder
from laneway.wire.messages import mend
from laneway.wire.peer import Peer, Raw
from tests.fuzz.editor import Sayings, editor
from tests.fuzz.shapes import THREAD, TURN, Shapes

MAX_BYTES = 64
"""Of one message, so that short inputs meet the bound."""
MAX_PEER_BYTES = 4096
GOOD = b'{"method":"good"}'


@functools.cache
def loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    loop().run_until_complete(coroutine)


# ── frames ─────────────────────────────────────────────────────────────────


def frames(data: bytes) -> None:
    """Any chunks give the same messages, little waits, and the stream finds back."""
    cuts, stream = data[:4], data[4:]
    stream += b"\n" + (b" " * (MAX_BYTES - 1) + b"\n") * (MAX_SKIP_FRAMES + 1)
    stream += b"%b\nContent-Length: %d\r\n\r\n%b" % (GOOD, len(GOOD), GOOD)
    at_once, in_pieces = _decode(stream, [stream]), _decode(stream, _pieces(stream, cuts))
    assert at_once == in_pieces, "the chunks made a difference"
    assert at_once[0][-2:] == [GOOD, GOOD], "the stream did not find back"
    lines = LineDecoder(MAX_BYTES)
    heard = [frame for piece in _pieces(stream, cuts) for frame in lines.feed(piece)]
    assert heard == [line for line in stream.split(b"\n")[:-1] if 0 < len(line) <= MAX_BYTES]


def _decode(stream: bytes, pieces: list[bytes]) -> tuple[list[bytes], int, list[str], bool]:
    oversize: list[int] = []
    problems: list[str] = []
    decoder = MixedDecoder(MAX_BYTES, oversize.append, problems.append)
    heard: list[bytes] = []
    for piece in pieces:
        heard += decoder.feed(piece)
        assert decoder.waiting_bytes <= MAX_BYTES
    return heard, len(oversize), problems, decoder.uses_lengths


def _pieces(stream: bytes, cuts: bytes) -> list[bytes]:
    edges = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    return [stream[start:end] for start, end in pairwise(edges)]


# ── the peer ───────────────────────────────────────────────────────────────


def peer(data: bytes) -> None:
    """`feed` never raises; what goes out is JSON; every request has exactly one answer."""
    run(_peer(data))


async def _peer(data: bytes) -> None:
    sent: list[bytes] = []

    async def serve(method: str, params: Raw, request_id: bytes) -> Any:
        return msgspec.json.decode(params) if method.startswith("d") and params else params

    for lengths in (False, True):
        sent.clear()
        one = Peer(
            sent.append,
            on_request=serve,
            on_notification=lambda *_: None,
            with_lengths=lengths,
            max_bytes=MAX_PEER_BYTES,
        )
        call = asyncio.ensure_future(one.call("ours"))
        await asyncio.sleep(0)
        for piece in _pieces(data, data[:4]):
            one.feed(piece)
        while one._service._tasks:
            await asyncio.sleep(0)
        await one.aclose()
        await asyncio.gather(call, return_exceptions=True)
        if lengths:
            for message in MixedDecoder().feed(b"".join(sent)):
                json.loads(message)
            continue
        answers = Counter(_answered(b"".join(sent)))
        asked = Counter(_asked(data))
        assert not asked - answers, "a request was not answered"
        assert all(count == asked[key] for key, count in answers.items() if key != "null")


def _answered(sent: bytes) -> Iterator[str]:
    for line in sent.split(b"\n")[:-1]:
        told = json.loads(line)
        for message in told if isinstance(told, list) else [told]:
            if "method" not in message:
                yield json.dumps(message["id"])


def _asked(data: bytes) -> Iterator[str]:
    """By another reader of JSON than ours."""
    for line in data.split(b"\n")[:-1]:
        try:
            told = json.loads(line.decode(), parse_constant=_no_constant)
        except (ValueError, RecursionError):
            continue
        messages = told if isinstance(told, list) else [told]
        if len(line) > MAX_PEER_BYTES or len(messages) > MAX_BATCH:
            continue
        for message in messages:
            if isinstance(message, dict) and "id" in message and message.get("method") is not None:
                # Half a surrogate pair comes back as U+FFFD.
                yield mend(json.dumps(message["id"]).encode()).decode()


def _no_constant(name: str) -> None:
    raise ValueError(name)


# ── what Codex says ────────────────────────────────────────────────────────


def translate(data: bytes) -> None:
    """Any notifications become well-typed events that keep the promises of `core.model`."""
    events: list[Event] = []
    translator = Translator(events.append)
    translator.begin(TURN)
    for method, params in Shapes(data).notifications():
        translator.notification(method, params, b"")
    translator.lost(EngineLost("the fuzzer is through"))
    check_events(events)


def link(data: bytes) -> None:
    """The same through the link and a thread of it: nothing fails on the reader."""
    run(_link(data))


async def _link(data: bytes) -> None:
    failures = _Failures()
    logger = logging.getLogger("laneway.wire.peer")
    logger.addHandler(failures)
    try:
        one, host = Link(), DecliningHost()
        host.thread = CodexThread(one, host, {"thread": {"id": THREAD}})
        host.thread._translator.begin(TURN)
        for frame in Shapes(data).frames():
            one._peer.feed(frame + b"\n")
        await asyncio.sleep(0)
        await one.aclose()
        one._on_end("the fuzzer is through")
        check_events(host.events)
    finally:
        logger.removeHandler(failures)


class _Failures(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        problem = record.exc_info[1] if record.exc_info else None
        raise AssertionError(record.getMessage()) from problem

    def handleError(self, record: logging.LogRecord) -> None:
        raise


def check_events(events: list[Event]) -> None:
    """Of the types that they say, fit to be told, and each turn begun once and ended once."""
    open_turn: str | None = None
    for event in events:
        inner = event.inner if isinstance(event, FromSubagent) else event
        msgspec.convert(msgspec.to_builtins(inner), type(inner))
        msgspec.json.encode(public(event))
        if isinstance(event, TurnStarted):
            assert open_turn is None, "a turn began inside another"
            open_turn = event.turn_id
        elif isinstance(event, TurnDone):
            assert open_turn == event.turn_id, "a turn ended that had not begun"
            open_turn = None
    assert open_turn is None, "a turn never ended"


# ── what people and files say ──────────────────────────────────────────────


def rehearsal(data: bytes) -> None:
    """Every prompt is a list of steps."""
    msgspec.json.encode(script.parse(data.decode("utf-8", "replace")))


@functools.cache
def folders() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    keeper = tempfile.TemporaryDirectory(prefix="laneway-fuzz-")
    top = Path(keeper.name)
    (top / ".git").mkdir()
    (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return keeper, top


def toml(data: bytes) -> None:
    """A configuration holds or is refused in words."""
    _, top = folders()
    file = top / ".atm.toml"
    file.write_bytes(data)
    try:
        settings.load({}, {}, top, top)
    except SettingError:
        pass


def sessions(data: bytes) -> None:
    """A registry that can be read can be written, and reads the same again."""
    try:
        content = registry.decode(data, "here")
    except (FileDamaged, FileNewer):
        return
    again = registry.decode(content.render(), "there")
    assert again.entries == content.entries
    try:
        owned = content.disowned()
    except StoreError:
        return
    assert registry.decode(owned.render(), "there").entries == owned.entries


def trusted(data: bytes) -> None:
    """Whatever the file holds, it is never an exception and never everything."""
    _, top = folders()
    file = top / "trust.json"
    file.write_bytes(data)
    file.chmod(0o600)
    given = trust.read(file)
    assert given.entry(Path("/nowhere"), Path("/nowhere/.atm.toml")) is None


def durable(name: str, data: bytes) -> bytes:
    """A find in a form that means the same when the tables of `shapes` have grown."""
    shapes = {"translate": Shapes, "link": Shapes, "editor": Sayings}.get(name)
    return b"\n".join(shapes(data).frames()) if shapes else data


TARGETS: dict[str, Callable[[bytes], None]] = {
    "frames": frames,
    "peer": peer,
    "translate": translate,
    "link": link,
    "rehearsal": rehearsal,
    "settings": toml,
    "registry": sessions,
    "trust": trusted,
    "editor": editor,
}
