"""The setup of every measurement: a scripted model, a Codex home, an environment, a fresh process."""

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
        completed = subprocess.run(
            [sys.executable, "-m", module, *map(str, arguments)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            timeout=CHILD_S,
            check=True,
        )
        result: dict[str, Any] = msgspec.json.decode(completed.stdout.splitlines()[-1])
        return result


def tell(result: dict[str, Any]) -> None:
    """Print the result of a measurement, for `Rig.measure` in the parent process."""
    sys.stdout.write(msgspec.json.encode(result).decode() + "\n")


@contextmanager
def rig() -> Iterator[Rig]:
    """One model process and one Codex home for the whole bench."""
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
    """Run the scripted model in its own process, so that its CPU time is not counted."""
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
    """Our environment, with bytecode caching on, as in real use."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
