"""The types of `laneway doctor`: checks, probes, what they share; `run_probe` runs one under a deadline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from laneway.base.errors import LanewayError
from laneway.base.settings import Settings
from laneway.codex.engine import CodexEngine
from laneway.codex.link import Link
from laneway.codex.locate import Binary

Severity: TypeAlias = Literal["ok", "note", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("ok", "note", "warning", "error")

T = TypeVar("T")


class Check(msgspec.Struct, frozen=True):
    """One result: how bad it is, one plain sentence, and what to do about it."""

    name: str
    severity: Severity
    message: str
    remedy: str = ""
    facts: dict[str, Any] = {}
    """For programs. Holds no secret: foreign text is redacted before it gets here."""


class CheckContext:
    """What the probes share: each stores its results for those that run after it."""

    def __init__(
        self,
        home: Path,
        folder: Path,
        environment: Mapping[str, str],
        codex_bin: str | None,
        claude_bin: str | None = None,
    ) -> None:
        self.home = home
        self.folder = folder
        self.environment = environment
        self.codex_environment = dict(environment)
        """The environment of Codex; a rehearsal points it to another home."""
        self.codex_bin = codex_bin
        self.claude_bin = claude_bin
        self.settings: Settings | None = None
        self.binary: Binary | None = None
        self.version: tuple[int, ...] | None = None
        self.engine: CodexEngine | None = None
        self.link: Link | None = None
        self.stderr_tail = ""
        self.warnings: list[str] = []
        """Warnings that Codex gave during the checks."""

    async def aclose(self) -> None:
        if self.engine is not None:
            await self.engine.aclose()


Look: TypeAlias = Callable[[CheckContext], Awaitable[list[Check]]]


class Probe(msgspec.Struct, frozen=True):
    """One kind of check: its name, what to show meanwhile, and the function that runs it."""

    name: str
    doing: str
    """What a person reads while they wait."""
    look: Look
    least_s: float = 0.0
    """For a probe that may take longer than the deadline asked for."""


async def run_probe(probe: Probe, context: CheckContext, deadline_s: float) -> list[Check]:
    """The probe's checks, or one error that says why there are none."""
    bound_s = max(deadline_s, probe.least_s)
    try:
        async with asyncio.timeout(bound_s):
            return await probe.look(context)
    except TimeoutError:
        problem = f"There was no result within {bound_s:g} s."
        remedy = (
            "Try again with a longer --deadline; if that does not help, send us a report (--report FILE)."
        )
        return [Check(probe.name, "error", problem, remedy)]
    except LanewayError as error:
        return [Check(probe.name, "error", sentence(str(error)))]
    except msgspec.ValidationError:
        return [
            Check(probe.name, "error", "Codex gave an answer that Laneway does not understand.", UNTESTED)
        ]
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return [Check(probe.name, "error", f"It could not be checked: {error.strerror}{where}.")]


UNTESTED = "Use a Codex that is tested with this Laneway: see the line `codex-versions`."


def worst(checks: Iterable[Check]) -> Severity:
    return max((check.severity for check in checks), key=SEVERITIES.index, default="ok")


def sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


async def in_thread(work: Callable[[], T]) -> T:
    """Run in a thread what may block on a dead disk. A thread that hangs does not keep us from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, problem: BaseException | None) -> None:
        if done.cancelled():
            return
        if problem is not None:
            done.set_exception(problem)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # the one of the two that is set

    def run() -> None:
        result, problem = None, None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001  handed on to whoever waits, not handled
            problem = raised
        try:
            loop.call_soon_threadsafe(settle, result, problem)
        except RuntimeError:
            pass  # too late: the loop is closed, nobody waits

    threading.Thread(target=run, daemon=True).start()
    return await done
