"""A server that a person started at a terminal says what it waits for: nothing else would be seen."""

from __future__ import annotations

import sys


def say_waiting(protocol: str, register: str) -> None:
    """On standard error, where standard input is a terminal; a client's pipe hears nothing."""
    if sys.stdin is not None and sys.stdin.isatty():
        print(
            f"This is an {protocol}: it waits for a client on standard input. "
            f"To register it: `{register}`. Ctrl-C ends it.",
            file=sys.stderr,
            flush=True,
        )
