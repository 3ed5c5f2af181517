"""The address and the bearer token of a server that listens on the network, from the command line.

Not imported by servers on standard input and output.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

from laneway.doors.gate import new_token
from laneway.doors.listening import address


class ListenAddress(NamedTuple):
    """Where a server listens, and which tokens it accepts."""

    host: str
    port: int
    tokens: list[str]
    on_ready: Callable[[str], None]
    """Prints the URL, and the token if it was generated for this run: then it is shown only here."""


def listen_address(protocol: str, flag: str, where: str, token: str | None) -> ListenAddress:
    """`where` is the flag's value; `token` is the user's own, if there is one."""
    host, port = address(where, flag)
    used = token or new_token()

    def announce(url: str) -> None:
        print(f"laneway: serving {protocol} on {url}", file=sys.stderr)
        if token is None:
            print(f"laneway: bearer token (for this run): {used}", file=sys.stderr)
        sys.stderr.flush()

    return ListenAddress(host, port, [used], announce)
