"""The end of a turn of `laneway ask`: its exit code, an error sentence, and how to continue the thread."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from laneway.base.engines import CODEX, DEFAULT_BACKEND
from laneway.base.errors import EngineLost, LanewayError
from laneway.base.plain import plain
from laneway.base.redact import redact
from laneway.core.turn import TurnResult
from laneway.terminal.status import count, elapsed


def exit_code(result: TurnResult, *, is_stopped: bool = False, engine: str = CODEX) -> int:
    """0 done, 1 failed or stopped by an answer, 4 engine ended, 130 interrupted; one sentence says why."""
    if result.status == "completed":
        return 0
    if result.stopped_by == "timeout":
        return _fail("the turn took longer than --timeout and was stopped")
    if result.status == "interrupted" and is_stopped and result.stopped_by is None:
        return _fail("you declined, and the turn was stopped as you chose")
    if result.status == "interrupted":
        _fail("interrupted")
        return 130
    failure = result.failure
    if failure is not None and failure.kind == "engine_lost":
        raise EngineLost(failure.message.partition(": ")[2] or failure.message, engine=engine)
    reason = plain(redact(failure.message)) if failure else "no reason given"
    return _fail(f"the turn failed: {reason}")


def _fail(sentence: str) -> int:
    print(f"laneway: {sentence}", file=sys.stderr)
    return 1


def summary(seconds: float, tokens: int) -> str:
    return f"{elapsed(seconds)}" + (f" · {count(tokens)} tokens" if tokens else "")


def continue_hint(thread_id: str, folder: Path, backend: str = DEFAULT_BACKEND) -> str:
    """The command that continues this thread, from the user's current folder."""
    engine_flag = "" if backend == DEFAULT_BACKEND else f" --engine {backend}"
    cwd_flag = "" if folder == Path.cwd() else f" -C {shlex.quote(_short(folder))}"
    return f'go on: laneway ask{engine_flag}{cwd_flag} --last "…"   or with --thread {thread_id}'


def _short(folder: Path) -> str:
    relative = os.path.relpath(folder)
    return relative if len(relative) < len(str(folder)) else str(folder)


def write_last_message(file: Path, text: str) -> None:
    """For `-o`. Without a message the file is emptied: its old content would be taken for this answer."""
    try:
        file.write_text(text, "utf-8")
    except OSError as problem:
        raise LanewayError(
            f"The last message could not be written to {file}: {problem.strerror}."
        ) from problem
    if not text:
        print(f"laneway: no message came: {file} is empty", file=sys.stderr)
