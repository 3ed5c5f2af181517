"""A note for people who start a server at a terminal, where it would only seem to hang."""

from __future__ import annotations

import sys


def say_waiting(protocol: str, register: str) -> None:
    """Print what the server waits for, if standard input is a terminal and not a client's pipe."""
    if sys.stdin is not None and sys.stdin.isatty():
        print(
            f"This is an {protocol}: it waits for a client on standard input. "
            f"To register it: `{register}`. Ctrl-C ends it.",
            file=sys.stderr,
            flush=True,
        )
