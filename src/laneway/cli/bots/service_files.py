"""The file of the service: where it is, whether it is ours, how the service is started and ended."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from laneway.base.errors import LanewayError
from laneway.base.foreign_files import read_regular
from laneway.base.plain import label
from laneway.cli.bots.service_unit import LABEL, MADE_BY, UNIT, ServiceKind

MAX_BYTES = 64 * 1024
CALL_S = 60.0
"""For a call of `systemctl` or `launchctl`; a service gets 30 s to end."""
MAX_PROBLEM_CHARS = 300


class ServicePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where the service of a user is."""

    kind: ServiceKind
    file: Path

    @property
    def starting(self) -> tuple[tuple[str, ...], ...]:
        """The commands that start it now and at each login."""
        if self.kind == "launchd":
            return (("launchctl", "bootstrap", _domain(), str(self.file)),)
        return (("systemctl", "--user", "daemon-reload"), ("systemctl", "--user", "enable", "--now", UNIT))

    @property
    def restarting(self) -> tuple[tuple[str, ...], ...]:
        """The same where an older one may run."""
        if self.kind == "launchd":
            return self.starting
        return (*self.starting, ("systemctl", "--user", "restart", UNIT))

    @property
    def ending(self) -> tuple[str, ...]:
        """The command that ends it, and keeps it from starting again."""
        if self.kind == "launchd":
            return ("launchctl", "bootout", f"{_domain()}/{LABEL}")
        return ("systemctl", "--user", "disable", "--now", UNIT)

    @property
    def links(self) -> tuple[Path, ...]:
        """What enabling it leaves behind."""
        return (self.file.parent / "default.target.wants" / UNIT,) if self.kind == "systemd" else ()


def place(home: Path, environment: Mapping[str, str], system: str = sys.platform) -> ServicePlace:
    if system == "darwin":
        return ServicePlace(kind="launchd", file=home / "Library" / "LaunchAgents" / f"{LABEL}.plist")
    config = environment.get("XDG_CONFIG_HOME", "")
    folder = Path(config) if config.startswith("/") else home / ".config"
    return ServicePlace(kind="systemd", file=folder / "systemd" / "user" / UNIT)


def is_ours(file: Path) -> bool:
    """Whether `laneway setup service` has written it."""
    try:
        text = read_regular(file, MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return False
    return MADE_BY.split(";")[0] in text


def call(words: Sequence[str]) -> None:
    """Run one of the commands above. Raises `LanewayError` with its first words if that fails."""
    if shutil.which(words[0]) is None:
        raise LanewayError(f"There is no `{words[0]}` here.")
    try:
        ran = subprocess.run(
            list(words), stdin=subprocess.DEVNULL, capture_output=True, timeout=CALL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise LanewayError(f"`{' '.join(words)}` did not end: {type(problem).__name__}.") from None
    if ran.returncode:
        told = (
            label(ran.stderr.decode("utf-8", "replace"), MAX_PROBLEM_CHARS) or f"exit code {ran.returncode}"
        )
        raise LanewayError(f"`{' '.join(words)}` failed: {told}")


def end_and_remove(service: ServicePlace) -> str:
    """End it, and remove its file. Returns why it could not be ended. Raises `OSError`.

    The file goes all the same: where no service manager is in this session, mostly nothing runs.
    """
    problem = ""
    try:
        call(service.ending)
    except LanewayError as failed:
        problem = str(failed)
    for path in (*service.links, service.file):
        path.unlink(missing_ok=True)
    return problem


def _domain() -> str:
    return f"gui/{os.getuid()}"
