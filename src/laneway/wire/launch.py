"""Starts a program under its guardian process, without an event loop.

Separate from `laneway.wire.child`, which needs one, so that a slow child can be started before asyncio
and the rest of Laneway are imported. The caller must hand the result to a `Child`, or end: the guardian
notices both.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from laneway.wire import guardian

GUARDIAN = os.path.join(os.path.dirname(__file__), "guardian.py")


class Launched:
    """A guardian process that is starting, with our ends of its pipes."""

    __slots__ = ("control", "kind", "process", "program", "status")

    def __init__(
        self, process: subprocess.Popen[bytes], control: int, status: int, program: str, kind: str
    ) -> None:
        self.kind = kind
        self.process = process
        self.control = control
        self.status = status
        self.program = program


def launch(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    first: bytes = b"",
    kind: str = guardian.AGENT,
    held: Sequence[int] = (),
) -> Launched:
    """Start the guardian of `argv`. If `argv` itself cannot be run, its status pipe says so later.

    `first` is written to its standard input: no more than a pipe holds, since nobody reads it yet.
    `kind`: who chooses what it starts; see `laneway.wire.process_tree`. `held`: descriptors of locks that the
    guardian keeps for its life; the caller keeps its own copies.
    """
    if not argv:
        raise ValueError("there is no program to start")
    locale = (os.environ if env is None else env).get("LC_CTYPE")
    control_out, control_in = os.pipe()
    status_out, status_in = os.pipe()
    fds = (str(control_out), str(status_in), ",".join(map(str, held)))
    words = [*fds, "" if locale is None else f"={locale}", kind, "--", *argv]
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", GUARDIAN, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(control_out, status_in, *held),
            start_new_session=True,
            env=env,
            cwd=cwd,
            bufsize=0,
        )
    except BaseException:
        os.close(control_in)
        os.close(status_out)
        raise
    finally:
        os.close(control_out)
        os.close(status_in)
    if first:
        assert process.stdin
        try:
            process.stdin.write(first)
        except BrokenPipeError:
            pass  # it has ended already; its status pipe says how
    return Launched(process, control_in, status_out, argv[0], kind)
