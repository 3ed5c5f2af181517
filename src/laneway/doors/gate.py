"""Access control for servers on the network: bearer tokens, and the `Host` and `Origin` headers.

Pure. Every request passes `Gate` before a byte of its body is read. A page in a browser is refused
even if its host name resolves to this machine (DNS rebinding): its `Host` or `Origin` is not one
of ours, and it does not know the token.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Iterable
from typing import Any

from laneway.base.errors import UsageError
from laneway.wire.messages import INVALID_REQUEST

HEADER_MISMATCH = -32020
"""JSON-RPC code for headers that contradict each other, or the body."""
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
MIN_TOKEN_CHARS = 16
"""Of a token that a user chose: shorter ones can be guessed by trying."""

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
"""Headers that decide something must not be repeated: a proxy before us may have read the other value."""

_LOOPBACK_ORIGIN = re.compile(r"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?", re.ASCII)


class AccessDenied(Exception):
    """A request that is not served: the HTTP status, and what the body of the response says."""

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
    """A request's headers by lower-case name. Those that decide something must appear once."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, str] = {}
        for name_bytes, value in raw:
            name = name_bytes.decode("latin-1").lower()
            if name not in self._values:
                self._values[name] = value.decode("latin-1").strip()
            elif name in _ONCE:
                raise AccessDenied(400, f"The header {name} appears more than once", code=HEADER_MISMATCH)
            else:
                self._values[name] += ", " + value.decode("latin-1")

    def get(self, name: str) -> str | None:
        return self._values.get(name)

    def accepts(self, media_type: str) -> bool:
        """Whether `Accept` lists it, or all of its kind. No `Accept` at all accepts everything."""
        accept = self._values.get("accept", "*/*")
        listed = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
        return not listed.isdisjoint({media_type, media_type.partition("/")[0] + "/*", "*/*"})


def new_token() -> str:
    return secrets.token_urlsafe(32)


def principal_of(token: str) -> str:
    """The principal of a token: the same after every reconnect, and it does not reveal the token."""
    return "http:" + hashlib.sha256(token.encode()).hexdigest()[:16]


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def host_names(host: str, port: int, further: Iterable[str] = ()) -> frozenset[str]:
    """The values of `Host` that are ours when we are bound to this address and port."""
    host_in_url = f"[{host}]" if ":" in host else host
    names = {host_in_url.lower(), *(name.lower() for name in further)}
    if is_loopback(host) or host == "localhost":
        names.update(LOOPBACK_NAMES)
    with_port = {f"{name}:{port}" for name in names}
    return frozenset(with_port | names if port == 80 else with_port)


class Gate:
    """Admits requests that carry a known token, our own `Host` and no foreign `Origin`."""

    def __init__(self, tokens: Iterable[str], hosts: Iterable[str], origins: Iterable[str] = ()) -> None:
        accepted = list(tokens)
        if not accepted:
            raise UsageError("This server needs a token that its clients must know.")
        for token in accepted:
            if len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
                raise UsageError(
                    f"A token has at least {MIN_TOKEN_CHARS} characters, all of them printable ASCII "
                    "and none of them a space. Leave it out and one is made for you."
                )
        self._tokens = [(_digest(token), principal_of(token)) for token in accepted]
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)

    def check_place(self, headers: Headers) -> None:
        """Refuse a request for another host, or one that an unknown web page sent."""
        host = headers.get("host")
        if host is None or host.lower() not in self._hosts:
            raise AccessDenied(421, "This server has another name: the Host header is not one of its own")
        origin = headers.get("origin")
        if origin is None:
            return
        origin = origin.lower()
        if not _LOOPBACK_ORIGIN.fullmatch(origin) and origin not in self._origins:
            raise AccessDenied(403, "Pages of this origin may not speak to this server")

    def admit(self, headers: Headers) -> str:
        """The principal whose token the request carries."""
        scheme, _, token = (headers.get("authorization") or "").partition(" ")
        if scheme.lower() != "bearer":
            challenge = (("www-authenticate", 'Bearer realm="laneway"'),)
            raise AccessDenied(401, "A bearer token is needed in the Authorization header", headers=challenge)
        digest = _digest(token.strip())
        principals = [owner for known, owner in self._tokens if hmac.compare_digest(known, digest)]
        if not principals:
            challenge = (("www-authenticate", 'Bearer realm="laneway", error="invalid_token"'),)
            raise AccessDenied(401, "This is not the token", headers=challenge)
        return principals[0]


def _digest(token: str) -> bytes:
    """Of equal length for all tokens, so that the time of a comparison reveals nothing."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
