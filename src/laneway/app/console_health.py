"""The checks of `laneway doctor` for the console, in a process of its own, which may hang or be killed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence

import msgspec

from laneway.base.errors import LanewayError
from laneway.doors.console.panels.ports import CheckRow

DOCTOR = (sys.executable, "-P", "-m", "laneway", "doctor", "--json")
CHECKS_S = 300.0
"""For all of them: each has a deadline of its own."""


class DoctorReport(msgspec.Struct, frozen=True):
    """What `laneway doctor --json` prints, as far as the console shows it."""

    checks: tuple[CheckRow, ...]


class DoctorChecks:
    """The `HealthChecks` of the console."""

    def __init__(self, command: Sequence[str] = DOCTOR, most_s: float = CHECKS_S) -> None:
        self._command = command
        self._most_s = most_s

    async def run(self, doing: Callable[[str], None], done: Callable[[Sequence[CheckRow]], None]) -> None:
        doing("running the checks of `laneway doctor`")
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(self._most_s):
                printed, _ = await process.communicate()
        except TimeoutError:
            raise LanewayError(f"The checks had no result within {self._most_s:g} s.") from None
        finally:
            if process.returncode is None:
                process.kill()  # what it has started is ended by the guardian
                await process.wait()
        try:
            report = msgspec.json.decode(printed, type=DoctorReport)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise LanewayError(
                f"`laneway doctor` ended with exit code {process.returncode} and no report: "
                "run it in a terminal."
            ) from None
        done(report.checks)
