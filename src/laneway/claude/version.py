"""Versions of Claude Code: the oldest that works, and those that are tested.

Starts no process on a start-up path: the version is in the answer to the handshake; only `probe` runs
the binary. The binary is found by `laneway.claude.locate`.
"""

from __future__ import annotations

import re
import subprocess

from laneway.base.errors import BinaryError
from laneway.base.programs import Binary

OLDEST = (2, 1, 305)
"""Some older ones decide by themselves what may be done unasked, and lack what we rely on."""
TESTED = ("2.1.327", "2.1.326", "2.1.325", "2.1.316", "2.1.305")
"""Versions that `make test` and `make test-peers` have run."""
PROBE_S = 10.0


def probe(binary: Binary) -> tuple[int, ...]:
    """Run `claude --version`."""
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
        raise cannot_run(binary.path, problem) from problem
    except subprocess.TimeoutExpired as timeout:
        raise BinaryError(
            f"{binary.path} did not tell its version within {PROBE_S:g} s: name another with --claude-bin."
        ) from timeout
    version = parse_version(completed.stdout)
    if version is None or "Claude Code" not in completed.stdout:
        raise BinaryError(
            f"{binary.path} does not look like Claude Code: name the right one with --claude-bin."
        )
    return version


def cannot_run(path: str, problem: OSError) -> BinaryError:
    return BinaryError(
        f"{path} cannot be run ({problem.strerror}): reinstall Claude Code or name another with --claude-bin."
    )


def parse_version(text: str) -> tuple[int, ...] | None:
    """The first x.y.z in the output of `claude --version`, or in the answer to the handshake."""
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(part) for part in match.groups()) if match else None


def spell(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


def check_age(version: tuple[int, ...], path: str) -> None:
    if version < OLDEST:
        from laneway.base.installed import installed_how

        raise BinaryError(
            f"Claude Code {spell(version)} at {path} is older than {spell(OLDEST)}: upgrade it with"
            f" `{installed_how().adding('claude', upgrade=True)}` or `claude update`."
        )


def untested_note(version: tuple[int, ...]) -> str:
    """The text that `laneway --version` adds after the number."""
    return "" if spell(version) in TESTED else " (untested with this Laneway)"
