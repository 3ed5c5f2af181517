"""The Chromium that browser tests use: Debian's, or another one that is found."""

from __future__ import annotations

import os
import shutil

ATTACKER_HOST = "attacker.test"
"""A name that leads to this machine, in the browser of the tests."""
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    f"--host-resolver-rules=MAP {ATTACKER_HOST} 127.0.0.1",
)
WHY_NOT = "there is no Chromium here: install Debian's `chromium` (CI does), and the page is tested, too"


def find_chromium() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


def chromium_arguments() -> list[str]:
    """Chromium's own sandbox refuses to work for root."""
    return [*ARGUMENTS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
