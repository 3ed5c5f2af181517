"""What every door that listens on the network is told by the command line: where, with which token.

Not loaded by those on standard input and output.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

from laneway.doors.gate import new_token
from laneway.doors.listening import address


class Web(NamedTuple):
    host: str
    port: int
    tokens: list[str]
    on_ready: Callable[[str], None]
    """Tells the person where it is, and the token if it was made for this run: that one is shown once."""


def web(protocol: str, flag: str, where: str, token: str | None) -> Web:
    """`where` is what the flag was given; `token` is the user's own, if there is one."""
    host, port = address(where, flag)
    used = token or new_token()

    def tell(url: str) -> None:
        print(f"laneway: serving {protocol} on {url}", file=sys.stderr)
        if token is None:
            print(f"laneway: bearer token (for this run): {used}", file=sys.stderr)
        sys.stderr.flush()

    return Web(host, port, [used], tell)
