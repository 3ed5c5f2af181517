"""Versions of an engine's program: reads and spells them, asks a binary for its own, refuses one too old.

Which version is the oldest, and which are tested, says each engine (`laneway.codex.binary`,
`laneway.claude.version`).
"""

from __future__ import annotations

import re
import subprocess
from typing import NamedTuple

from laneway.base.errors import BinaryError
from laneway.base.programs import Binary, Program

PROBE_S = 10.0


class ProgramVersions(NamedTuple):
    """The versions of one program that can be used."""

    program: Program
    oldest: tuple[int, ...]
    tested: tuple[str, ...]
    upgrade: str
    """The program's own way to a newer version, as a command."""
    sign: str = ""
    """Stands in the output of `--version` of the right program."""

    def probe(self, binary: Binary) -> tuple[int, ...]:
        """Run it with `--version`."""
        try:
            completed = subprocess.run(
                [binary.path, "--version"],
                capture_output=True,
                text=True,
                timeout=PROBE_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except OSError as problem:
            raise self.cannot_run(binary.path, problem) from problem
        except subprocess.TimeoutExpired as timeout:
            raise BinaryError(
                f"{binary.path} did not tell its version within {PROBE_S:g} s:"
                f" name another with {self.program.flag}."
            ) from timeout
        version = parse_version(completed.stdout)
        if version is None or self.sign not in completed.stdout:
            raise BinaryError(
                f"{binary.path} does not look like {self.program.title}:"
                f" name the right one with {self.program.flag}."
            )
        return version

    def cannot_run(self, path: str, problem: OSError) -> BinaryError:
        return BinaryError(
            f"{path} cannot be run ({problem.strerror}): reinstall {self.program.title}"
            f" or name another with {self.program.flag}."
        )

    def check_age(self, version: tuple[int, ...], path: str) -> None:
        if version < self.oldest:
            from laneway.base.installed import installed_how

            raise BinaryError(
                f"{self.program.title} {spell(version)} at {path} is older than {spell(self.oldest)}:"
                f" upgrade it with `{installed_how().adding(self.program.extra, upgrade=True)}`"
                f" or `{self.upgrade}`."
            )

    def untested_note(self, version: tuple[int, ...]) -> str:
        """The text that `laneway --version` adds after the number."""
        return "" if spell(version) in self.tested else " (untested with this Laneway)"


def parse_version(text: str) -> tuple[int, ...] | None:
    """The first x.y.z in the output of `--version`, or in an engine's own first answer."""
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(part) for part in match.groups()) if match else None


def spell(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
