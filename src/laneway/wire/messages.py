"""JSON-RPC messages as values: decoding, error answers, and the faults of malformed messages.

Pure; knows no connection. A well-formed message is read by its shape; its params and result stay
undecoded. For the rest there are `mend` and `fault_of`, which may be slow: only broken or hostile
bytes get there.
"""

from __future__ import annotations

import logging
import re
from typing import Any

import msgspec

from laneway.base.errors import RemoteError

log = logging.getLogger(__name__)

MAX_SALVAGE_BYTES = 1024 * 1024
"""Of a message nested too deeply to be decoded, to search it for its id. Longer ones are answered without
an id: the search blocks the reader, for a quarter of a second at this length."""
SHOWN_CHARS = 200
"""Of foreign text in the log: enough to recognise it."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CLOSING = -32000

Raw = msgspec.Raw


class Envelope(msgspec.Struct):
    """Any JSON-RPC message; its parts stay undecoded until they are needed."""

    id: Raw = Raw()
    method: str | None = None
    params: Raw = Raw()
    result: Raw = Raw()
    error: Raw = Raw()


class Fault(msgspec.Struct, frozen=True):
    """Why a frame is no message, and the id to answer under, if it has one of the other end's."""

    code: int
    text: str
    request_id: bytes | None = None


class _ErrorBody(msgspec.Struct):
    code: int = INTERNAL_ERROR
    message: str = ""
    data: Any = None


class _Claim(msgspec.Struct):
    """The fields that can still be read of an object that is no message."""

    id: Raw = Raw()
    method: Raw = Raw()


decode_envelope = msgspec.json.Decoder(Envelope).decode
encode = msgspec.json.Encoder().encode
_decode_error = msgspec.json.Decoder(_ErrorBody).decode
_decode_claim = msgspec.json.Decoder(_Claim).decode
_decode_any = msgspec.json.Decoder(Raw).decode

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""All that decoding foreign bytes can raise; msgspec's error for bad UTF-8 is no `DecodeError`."""
_NOT_ENCODABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""All that encoding our own values can raise; older msgspecs overflow at 64 bits."""

# ── faults ─────────────────────────────────────────────────────────────────

NOT_A_MESSAGE = Fault(INVALID_REQUEST, "This is not a JSON-RPC message")
_NOT_JSON = Fault(PARSE_ERROR, "This is not JSON")
_NOT_UTF8 = Fault(PARSE_ERROR, "This is not UTF-8")
_TOO_DEEP = Fault(INVALID_REQUEST, "The message is nested too deeply")

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.S
)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]++|[\]}]++|[^"\[\]{}]++', re.S)


def is_utf8(frame: bytes) -> bool:
    """Whether a frame is text. Raw parts are passed on undecoded, so that nobody else checks it."""
    if frame.isascii():
        return True
    try:
        frame.decode()
    except UnicodeDecodeError:
        return False
    return True


def mend(frame: bytes) -> bytes:
    r"""Half a surrogate pair (`\ud83d` alone) becomes U+FFFD; all else stays.

    JavaScript writes such halves when a text was cut inside an emoji. They are valid JSON but no
    text; no decoder accepts them.
    """
    if b"\\ud" not in frame and b"\\uD" not in frame:
        return frame
    return _ESCAPE.sub(lambda match: b"\\ufffd" if match[1] else match[0], frame)


def fault_of(frame: bytes) -> Fault:
    """The fault to answer to a frame that is no message."""
    if not is_utf8(frame):
        return _NOT_UTF8
    try:
        _decode_any(frame)  # msgspec reports a wrong shape before it has seen the rest: is it JSON at all?
        claim = _decode_claim(frame)
    except msgspec.ValidationError:
        return NOT_A_MESSAGE
    except msgspec.DecodeError:
        return _NOT_JSON
    except RecursionError:
        return _deep_fault(frame)
    return msgspec.structs.replace(NOT_A_MESSAGE, request_id=_claimed(claim))


def _deep_fault(frame: bytes) -> Fault:
    if len(frame) > MAX_SALVAGE_BYTES:
        return _TOO_DEEP
    try:
        claim = _decode_claim(_shallow(frame))
    except msgspec.ValidationError:
        return _TOO_DEEP
    except msgspec.DecodeError:
        return _NOT_JSON
    return msgspec.structs.replace(_TOO_DEEP, request_id=_claimed(claim))


def _claimed(claim: _Claim) -> bytes | None:
    """The id of a malformed request. Without `method` it may be an answer, and the id one of ours."""
    return bytes(claim.id) if claim.id and claim.method else None


def _shallow(frame: bytes) -> bytes:
    """The outermost object or array, with null for everything nested in it."""
    pieces: list[bytes] = []
    depth = 0
    for match in _TOKEN.finditer(frame):
        token = match[0]
        if token[0] in b"[{":
            if depth == 0:
                pieces.append(token[:1])
            if depth <= 1 < depth + len(token):
                pieces.append(b"null")
            depth += len(token)
        elif token[0] in b"]}":
            depth -= len(token)
            if depth <= 0:
                pieces.append(token[-1:])
        elif depth <= 1:
            pieces.append(token)
    return b"".join(pieces)


# ── errors on the wire ─────────────────────────────────────────────────────


def wire_error(error: Exception, method: str) -> dict[str, Any]:
    """The one place where an exception becomes a wire error. Texts of foreign exceptions are not sent."""
    if isinstance(error, RemoteError):
        body: dict[str, Any] = {"code": error.code, "message": error.message}
        return body if error.data is None else {**body, "data": error.data}
    if isinstance(error, msgspec.ValidationError):
        return {"code": INVALID_PARAMS, "message": f"Invalid params: {error}"}
    log.error("serving %s failed", method[:SHOWN_CHARS], exc_info=error)
    return {"code": INTERNAL_ERROR, "message": "Internal error"}


def error_body(error: Exception, method: str) -> bytes:
    """An answer without its head and id."""
    try:
        return b'"error":' + encode(wire_error(error, method))
    except _NOT_ENCODABLE:
        log.exception("the error of %s cannot be put into JSON", method[:SHOWN_CHARS])
        return b'"error":' + encode({"code": INTERNAL_ERROR, "message": "Internal error"})


def remote_error(raw: Raw) -> RemoteError:
    """The other end's error answer, whatever its content."""
    try:
        body = _decode_error(raw)
    except UNREADABLE:
        body = _ErrorBody(message="The other end sent an answer that is none")
    return RemoteError(body.code, body.message, body.data)
