"""Opens a browser on this machine without using our standard streams.

The standard library's `webbrowser` falls back on browsers in the terminal, which would read and
write the streams of the protocol.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

OPENING_S = 10.0
"""An opener passes the URL on and exits. One that runs this long has become the browser itself."""


async def open_browser(url: str, environment: Mapping[str, str]) -> bool:
    """Open a URL; returns whether a program took it."""
    program = _opener(environment)
    if program is None:
        return False
    try:
        process = await asyncio.create_subprocess_exec(
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
            return await process.wait() == 0
    except TimeoutError:
        return True


def _opener(environment: Mapping[str, str]) -> str | None:
    import shutil  # costs three milliseconds of start-up, and only a login needs it

    path = environment.get("PATH")
    if environment.get("NO_BROWSER"):
        return None
    if sys.platform == "darwin":
        return shutil.which("open", path=path)
    if environment.get("WSL_DISTRO_NAME") and (wslview := shutil.which("wslview", path=path)):
        return wslview
    has_display = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    return shutil.which("xdg-open", path=path) if has_display else None
