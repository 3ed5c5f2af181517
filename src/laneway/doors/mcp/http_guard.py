"""Whether an HTTP request's headers say the same as its body, and which status an answer goes with.

Pure. Who may speak at all is `laneway.doors.gate`'s to say.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import msgspec

from laneway.doors.gate import HEADER_MISMATCH, Headers, Refused
from laneway.doors.mcp.eras import CAPABILITIES_KEY, VERSION_KEY
from laneway.wire.messages import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

STATUS_OF_ERROR = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""In the stateless era; all other errors, and all of the eras before, are answers and go with 200."""

_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods of the stateless era whose object is also named in `Mcp-Name`, and where it stands."""

_ENCODED = re.compile(r"=\?base64\?(.*)\?=", re.ASCII)


def check_mirrors(headers: Headers, method: str, params: Any, request_id: bytes) -> None:
    """Headers and body must agree: what stands between us and the client may have read only the headers."""
    given = params if isinstance(params, dict) else {}
    meta = given.get("_meta")
    if not isinstance(meta, dict):
        raise Refused(
            400, "Every request carries its _meta object", code=INVALID_PARAMS, request_id=request_id
        )
    for key in (VERSION_KEY, CAPABILITIES_KEY):
        if key not in meta:
            raise Refused(400, f"_meta lacks {key}", code=INVALID_PARAMS, request_id=request_id)
    _compare(headers.get("mcp-protocol-version"), meta[VERSION_KEY], "MCP-Protocol-Version", request_id)
    _compare(headers.get("mcp-method"), method, "Mcp-Method", request_id)
    key_of_name = _NAMED.get(method)
    if key_of_name is not None and given.get(key_of_name) is not None:
        _compare(decoded(headers.get("mcp-name")), given[key_of_name], "Mcp-Name", request_id)


def _compare(header: str | None, body: Any, name: str, request_id: bytes) -> None:
    if header is None or header != body:
        problem = "is missing or cannot be read" if header is None else "does not match the body"
        raise Refused(400, f"Header mismatch: {name} {problem}", code=HEADER_MISMATCH, request_id=request_id)


def decoded(value: str | None) -> str | None:
    """A header's value, which may have been put into Base64; none if that was done badly."""
    found = _ENCODED.fullmatch(value) if value is not None else None
    if found is None:
        return value
    try:
        raw = base64.b64decode(found[1], validate=True)
        # Another spelling of the same bytes is not what an honest client writes.
        return raw.decode() if base64.b64encode(raw).decode() == found[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def status_of(answer: bytes) -> int:
    """The HTTP status for an answer of the stateless era."""
    try:
        error = msgspec.json.decode(answer, type=_Answer).error
    except msgspec.ValidationError:
        return 200
    return STATUS_OF_ERROR.get(error.code, 200) if error is not None else 200


class _Error(msgspec.Struct):
    code: int


class _Answer(msgspec.Struct):
    error: _Error | None = None
