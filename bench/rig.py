"""What every measurement needs: a scripted model, a home, an environment, a fresh process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.ids import new_id
from laneway.base.paths import cache_home
from laneway.codex import locate
from laneway.rehearsal.home import throwaway_home

CHILD_S = 120.0
"""A measurement that takes longer is stuck."""


class Rig(msgspec.Struct, frozen=True):
    """The real Codex's executable, its home, an empty folder to work in, and the environment."""

    codex: str
    home: Path
    work: Path
    environment: dict[str, str]

    def measure(self, module: str, *arguments: object) -> dict[str, Any]:
        """Run a module of this package in a process of its own; its last line is JSON."""
        ran = subprocess.run(
            [sys.executable, "-m", module, *map(str, arguments)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            timeout=CHILD_S,
            check=True,
        )
        found: dict[str, Any] = msgspec.json.decode(ran.stdout.splitlines()[-1])
        return found


def tell(found: dict[str, Any]) -> None:
    """The other end of `Rig.measure`."""
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


@contextmanager
def rig() -> Iterator[Rig]:
    """One model process and one home for the whole bench."""
    environment = child_environment()
    work = cache_home() / "rehearsals" / new_id("work")
    work.mkdir(parents=True)
    try:
        with model(environment) as base_url, throwaway_home(base_url) as home:
            environment["CODEX_HOME"] = str(home)
            yield Rig(locate.find().path, home, work, environment)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def model(environment: dict[str, str]) -> Iterator[str]:
    """The scripted model in its own process, so that its work is nobody's but its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "laneway.rehearsal.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.communicate(timeout=CHILD_S)  # closes its standard input, which ends it


def child_environment() -> dict[str, str]:
    """Ours, with bytecode cached as in real life."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
