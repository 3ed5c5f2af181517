"""Checks of the platform and the Python version."""

from __future__ import annotations

import platform
import sys

from laneway.cli.checks.model import Check, CheckContext

OLDEST_PYTHON = (3, 11)


async def look(context: CheckContext) -> list[Check]:
    return [on_platform(sys.platform, platform.platform()), on_python(sys.version_info[:3])]


def on_platform(system: str, name: str) -> Check:
    facts = {"system": system, "platform": name}
    match system:
        case "linux":
            return Check("platform", "ok", f"{name}: supported and tested.", facts=facts)
        case "darwin":
            return Check("platform", "note", f"{name}: expected to work, not tested yet.", facts=facts)
        case "win32":
            remedy = "Use Laneway in WSL 2."
            return Check("platform", "error", "Windows is not supported for now.", remedy, facts)
        case _:
            return Check("platform", "warning", f"{name}: Laneway has not been tried there.", facts=facts)


def on_python(version: tuple[int, ...]) -> Check:
    spelled = ".".join(str(part) for part in version)
    facts = {"version": spelled, "executable": sys.executable}
    if version < OLDEST_PYTHON:
        problem = f"Python {spelled} is too old."
        return Check("python", "error", problem, "Install Laneway with Python 3.11 or newer.", facts)
    return Check("python", "ok", f"Python {spelled}.", facts=facts)
