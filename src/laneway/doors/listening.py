"""Listening TCP sockets of the servers: reachable from this machine only, unless the user chose otherwise."""

from __future__ import annotations

import socket

from laneway.base.errors import UsageError
from laneway.doors.gate import is_loopback


def bind(host: str, port: int, *, remote_flag: str, may_leave_machine: bool = False) -> socket.socket:
    """A listening socket; an address that other machines can reach needs `may_leave_machine`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as problem:
        raise UsageError(f"The address {host} is not known here: {problem.strerror}.") from problem
    if not may_leave_machine and not is_loopback(str(address[0])):
        raise UsageError(
            f"{host} can be reached from other machines, and anyone who has the token can run commands here. "
            f"Use 127.0.0.1, or add {remote_flag} if that is meant."
        )
    # With its protocol given: asyncio sets TCP_NODELAY only where it knows that the socket is TCP.
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
        listening.setblocking(False)
    except OSError as problem:
        listening.close()
        raise UsageError(
            f"Cannot listen on {host}:{port}: {problem.strerror}. Choose another port, or 0 for a free one."
        ) from problem
    return listening


def address(text: str, flag: str) -> tuple[str, int]:
    """`PORT`, `HOST:PORT` or `[v6]:PORT`; loopback where no host is given."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{flag} wants HOST:PORT, not {text!r}.")
    return host.strip("[]") or "127.0.0.1", int(port)
