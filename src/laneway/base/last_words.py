"""The last lines of a program's standard error, made fit for an error message.

A few lines without colours and without a stack, redacted and made visible. Pure.
"""

from __future__ import annotations

import re

MAX_LINES = 3
"""An error and its cause: more is for the log."""
MAX_CHARS = 500
"""Of all lines together: a model may read it, and pays for it."""
LOOKED_AT_CHARS = 8 * 1024
"""From the end: enough to skip a stack trace."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_STACK = re.compile(r"(?im)^\s*(?:stack backtrace:?|note: run with `RUST_BACKTRACE.*)\s*$")
_FRAME = re.compile(r"^\s*(?:\d+: |at /)")
"""A line of Rust's stack, where its heading has been cut off."""


def last_words(stderr_tail: str) -> str:
    """The last lines, joined by newlines; empty if nothing was printed."""
    if not stderr_tail.strip():
        return ""
    from laneway.base.plain import plain  # every program imports the errors, which use us
    from laneway.base.redact import redact

    tail = _COLOURS.sub("", stderr_tail[-LOOKED_AT_CHARS:])
    lines = [
        line.strip() for line in _without_stack(tail).splitlines() if line.strip() and not _FRAME.match(line)
    ]
    text = plain(redact("\n".join(lines[-MAX_LINES:])))
    return text if len(text) <= MAX_CHARS else "…" + text[-MAX_CHARS:]


def _without_stack(text: str) -> str:
    """Up to the last stack, if there is something before it."""
    stacks = list(_STACK.finditer(text))
    text_before_stack = text[: stacks[-1].start()] if stacks else ""
    return text_before_stack if text_before_stack.strip() else text
