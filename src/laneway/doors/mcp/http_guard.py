"""Who may speak to the HTTP door, and whether a request's headers say the same as its body.

Pure. Every request passes `Gate.admit` before a byte of its body is read. A page in a browser
cannot get in even if its name resolves to this machine: its `Host` or its `Origin` tells on it,
and it does not know the token.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Iterable
from typing import Any

import msgspec

from laneway.base.errors import UsageError
from laneway.doors.mcp.eras import CAPABILITIES_KEY, VERSION_KEY
from laneway.wire.messages import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
MIN_TOKEN_CHARS = 16
"""Of a token that somebody chose: shorter ones can be tried out."""

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

_ONCE = frozenset(
    {
        "host",
        "origin",
        "authorization",
        "content-type",
        "last-event-id",
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
    }
)
"""Headers that decide something: of two values, whoever stands before us may have read the other one."""

_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods of the stateless era whose object is also named in `Mcp-Name`, and where it stands."""

_LOOPBACK_ORIGIN = re.compile(r"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?", re.ASCII)
_ENCODED = re.compile(r"=\?base64\?(.*)\?=", re.ASCII)


class Refused(Exception):
    """A request that is not served: the status, and what its body says."""

    def __init__(
        self,
        status: int,
        text: str,
        *,
        code: int = INVALID_REQUEST,
        data: Any = None,
        request_id: bytes = b"null",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.code = code
        self.data = data
        self.request_id = request_id
        self.headers = headers


class Headers:
    """A request's headers by lower-case name. Those that decide something stand there once."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, str] = {}
        for name_bytes, value in raw:
            name = name_bytes.decode("latin-1").lower()
            if name not in self._values:
                self._values[name] = value.decode("latin-1").strip()
            elif name in _ONCE:
                raise Refused(400, f"The header {name} appears more than once", code=HEADER_MISMATCH)
            else:
                self._values[name] += ", " + value.decode("latin-1")

    def get(self, name: str) -> str | None:
        return self._values.get(name)

    def accepts(self, media_type: str) -> bool:
        """Whether `Accept` lists it, or all of its kind. No `Accept` at all accepts everything."""
        accept = self._values.get("accept", "*/*")
        listed = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
        return not listed.isdisjoint({media_type, media_type.partition("/")[0] + "/*", "*/*"})


# ── who is asking ──────────────────────────────────────────────────────────


def new_token() -> str:
    return secrets.token_urlsafe(32)


def principal_of(token: str) -> str:
    """Whose sessions a token opens: the same ones after every reconnect, and never the token itself."""
    return "http:" + hashlib.sha256(token.encode()).hexdigest()[:16]


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def host_names(host: str, port: int, further: Iterable[str] = ()) -> frozenset[str]:
    """The values of `Host` that mean us, where we are bound to this address and port."""
    shown = f"[{host}]" if ":" in host else host
    names = {shown.lower(), *(name.lower() for name in further)}
    if is_loopback(host) or host == "localhost":
        names.update(LOOPBACK_NAMES)
    known = {f"{name}:{port}" for name in names}
    return frozenset(known | names if port == 80 else known)


class Gate:
    """Lets in whoever knows a token and comes by our own name."""

    def __init__(self, tokens: Iterable[str], hosts: Iterable[str], origins: Iterable[str] = ()) -> None:
        given = list(tokens)
        if not given:
            raise UsageError("The HTTP server needs a token that its clients must know.")
        for token in given:
            if len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
                raise UsageError(
                    f"A token has at least {MIN_TOKEN_CHARS} characters, all of them printable ASCII "
                    "and none of them a space. Leave it out and one is made for you."
                )
        self._tokens = [(_digest(token), principal_of(token)) for token in given]
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)

    def check_place(self, headers: Headers) -> None:
        """That the request was meant for us, and not sent by a page that we do not know."""
        host = headers.get("host")
        if host is None or host.lower() not in self._hosts:
            raise Refused(421, "This server has another name: the Host header is not one of its own")
        origin = headers.get("origin")
        if origin is None:
            return
        shown = origin.lower()
        if not _LOOPBACK_ORIGIN.fullmatch(shown) and shown not in self._origins:
            raise Refused(403, "Pages of this origin may not speak to this server")

    def admit(self, headers: Headers) -> str:
        """The principal whose token this is."""
        scheme, _, token = (headers.get("authorization") or "").partition(" ")
        if scheme.lower() != "bearer":
            challenge = (("www-authenticate", 'Bearer realm="laneway"'),)
            raise Refused(401, "A bearer token is needed in the Authorization header", headers=challenge)
        digest = _digest(token.strip())
        found = [owner for known, owner in self._tokens if hmac.compare_digest(known, digest)]
        if not found:
            challenge = (("www-authenticate", 'Bearer realm="laneway", error="invalid_token"'),)
            raise Refused(401, "This is not the token", headers=challenge)
        return found[0]


def _digest(token: str) -> bytes:
    """Of equal length for all, so that comparing tells nothing of the right one."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


# ── the stateless era: headers that repeat the body ────────────────────────


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
