"""A browser on this machine, opened without touching our own standard streams.

The standard library's `webbrowser` falls back on browsers in the terminal, which would read and
write what belongs to the protocol.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

OPENING_S = 10.0
"""An opener hands the address on and ends. One that takes this long has become the browser itself."""


async def open_browser(url: str, environment: Mapping[str, str]) -> bool:
    """Whether something on this machine took the address."""
    program = _opener(environment)
    if program is None:
        return False
    try:
        opening = await asyncio.create_subprocess_exec(
            program,
            url,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(OPENING_S):
            return await opening.wait() == 0
    except TimeoutError:
        return True


def _opener(environment: Mapping[str, str]) -> str | None:
    import shutil  # three milliseconds of start-up, for a login

    path = environment.get("PATH")
    if environment.get("NO_BROWSER"):
        return None
    if sys.platform == "darwin":
        return shutil.which("open", path=path)
    if environment.get("WSL_DISTRO_NAME") and (found := shutil.which("wslview", path=path)):
        return found
    has_screen = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    return shutil.which("xdg-open", path=path) if has_screen else None
