"""Logs: five levels, for people or as JSON lines, to standard error or a rotating file.

Built on the standard library's `logging`, which asyncio loads anyway. Every line carries the ids
that it belongs to (agent, session, thread, turn, item, request), bound once by the code that knows
them, and is redacted. Standard output is never used: it belongs to protocols.

    error   a crash, a loss of data            info    sessions start and end, mail is delivered
    warning a stale identity, a time-out       debug   messages        trace  raw bytes
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import TextIOWrapper
from pathlib import Path
from typing import Literal, TypeAlias

TRACE = 5
LEVELS = {
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": TRACE,
}
FILE_BYTES = 10 * 1024 * 1024
"""Size at which a log file is rotated."""
FILES_KEPT = 3
MAX_LINE_CHARS = 16 * 1024
"""One line; a longer message is cut, visibly."""

Form: TypeAlias = Literal["human", "json"]

logging.addLevelName(TRACE, "TRACE")
_bound: ContextVar[dict[str, str]] = ContextVar("laneway_log_ids")


@contextmanager
def bound(**ids: str | None) -> Iterator[None]:
    """Every line logged inside, in this task and those it starts, carries these ids."""
    token = _bound.set({**_bound.get({}), **{name: value for name, value in ids.items() if value}})
    try:
        yield
    finally:
        _bound.reset(token)


@contextmanager
def timed(log: logging.Logger, what: str, level: int = logging.DEBUG) -> Iterator[None]:
    """Log how long something took, whether it succeeded or not."""
    if not log.isEnabledFor(level):
        yield
        return
    began = time.perf_counter()
    outcome = "failed"
    try:
        yield
        outcome = "done"
    finally:
        elapsed_ms = (time.perf_counter() - began) * 1e3
        log.log(level, "%s %s", what, outcome, extra={"latency_ms": round(elapsed_ms, 3)})


def configure(level: str = "warning", form: Form = "human", file: Path | None = None) -> logging.Handler:
    """Set up Laneway's own logs. Replaces an earlier configuration."""
    root = logging.getLogger("laneway")
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    handler = _rotating(file) if file is not None else logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else HumanFormatter())
    handler.addFilter(_add_ids)
    root.addHandler(handler)
    root.setLevel(LEVELS[level])
    root.propagate = False
    return handler


def _add_ids(record: logging.LogRecord) -> bool:
    record.ids = _bound.get({})
    return True


def _rotating(file: Path) -> logging.Handler:
    from logging.handlers import RotatingFileHandler

    class PrivateFile(RotatingFileHandler):
        def _open(self) -> TextIOWrapper:
            return open(self.baseFilename, "a", encoding="utf-8", opener=_private)

    if not file.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {file.parent}", str(file))
    return PrivateFile(file, maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8")


def _private(path: str, flags: int) -> int:
    """Open a file for its owner alone. A pipe without a reader is an error: it would block."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY, 0o600)
    os.set_blocking(fd, True)
    return fd


def _message(record: logging.LogRecord) -> str:
    text = record.getMessage()
    if record.exc_info:
        text += "\n" + logging.Formatter().formatException(record.exc_info)
    if len(text) > MAX_LINE_CHARS:
        text = text[:MAX_LINE_CHARS] + " [cut]"
    from laneway.base.redact import redact  # loaded late: only when something is logged

    return redact(text)


class HumanFormatter(logging.Formatter):
    """`08:15:02 WARNING core.session the turn was stuck  agent=agent-1 turn=…`"""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        name = record.name.removeprefix("laneway.")
        details = dict(getattr(record, "ids", {}))
        if hasattr(record, "latency_ms"):
            details["took"] = f"{record.latency_ms:g}ms"
        suffix = "  " + " ".join(f"{key}={value}" for key, value in details.items()) if details else ""
        # The message may contain foreign text: none of its lines must pass for a line of this log.
        from laneway.base.plain import code_label, plain

        message = plain(_message(record)).replace("\n", "\n    ")
        return f"{clock} {record.levelname} {name} {message}{code_label(suffix, MAX_LINE_CHARS)}"


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        import json  # two milliseconds of start-up for a format that few use

        whole, part = divmod(record.created, 1)
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int(part * 1e3):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **getattr(record, "ids", {}),
        }
        if hasattr(record, "latency_ms"):
            line["latency_ms"] = record.latency_ms
        return json.dumps(line, ensure_ascii=False)
