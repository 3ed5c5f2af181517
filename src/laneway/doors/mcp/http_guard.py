"""Checks that an HTTP request's MCP headers agree with its body, and maps JSON-RPC errors to HTTP statuses.

Pure. Access control is in `laneway.doors.gate`.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import msgspec

from laneway.doors.gate import HEADER_MISMATCH, AccessDenied, Headers
from laneway.doors.mcp.eras import (
    CAPABILITIES_KEY,
    MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
)
from laneway.wire.messages import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

STATUS_OF_ERROR = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""In the stateless era; all other errors, and all errors of the handshake eras, are sent with 200."""

_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods of the stateless era whose target is also in the header `Mcp-Name`, and its key in the params."""
_ROUTED = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}
"""The same for tasks; but a client that leaves the header out is served, as by the official SDK's server."""

_ENCODED = re.compile(r"=\?base64\?(.*)\?=", re.ASCII)


def check_mirrors(headers: Headers, method: str, params: Any, request_id: bytes) -> None:
    """Headers and body must agree: a proxy between us and the client may have read only the headers."""
    body = params if isinstance(params, dict) else {}
    meta = body.get("_meta")
    if not isinstance(meta, dict):
        raise AccessDenied(
            400, "Every request carries its _meta object", code=INVALID_PARAMS, request_id=request_id
        )
    for key in (VERSION_KEY, CAPABILITIES_KEY):
        if key not in meta:
            raise AccessDenied(400, f"_meta lacks {key}", code=INVALID_PARAMS, request_id=request_id)
    _compare(headers.get("mcp-protocol-version"), meta[VERSION_KEY], "MCP-Protocol-Version", request_id)
    _compare(headers.get("mcp-method"), method, "Mcp-Method", request_id)
    key_of_name = _NAMED.get(method) or _ROUTED.get(method)
    name = headers.get("mcp-name")
    if name is None and method in _ROUTED:
        return
    if key_of_name is not None and body.get(key_of_name) is not None:
        _compare(decoded(name), body[key_of_name], "Mcp-Name", request_id)


def _compare(header: str | None, body: Any, name: str, request_id: bytes) -> None:
    if header is None or header != body:
        problem = "is missing or cannot be read" if header is None else "does not match the body"
        raise AccessDenied(
            400, f"Header mismatch: {name} {problem}", code=HEADER_MISMATCH, request_id=request_id
        )


def decoded(value: str | None) -> str | None:
    """A header's value, decoded if it is Base64; none if it is not valid Base64."""
    encoded = _ENCODED.fullmatch(value) if value is not None else None
    if encoded is None:
        return value
    try:
        raw = base64.b64decode(encoded[1], validate=True)
        # Another spelling of the same bytes is not what an honest client writes.
        return raw.decode() if base64.b64encode(raw).decode() == encoded[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def status_of(answer: bytes) -> int:
    """The HTTP status for an answer of the stateless era."""
    try:
        error = msgspec.json.decode(answer, type=_AnswerShape).error
    except msgspec.ValidationError:
        return 200
    return STATUS_OF_ERROR.get(error.code, 200) if error is not None else 200


class _Error(msgspec.Struct):
    code: int


class _AnswerShape(msgspec.Struct):
    error: _Error | None = None
