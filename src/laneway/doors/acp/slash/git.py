"""Git as a process: asked, bounded, and kept from running anything that a repository brings along.

Blocking: call it through `asyncio.to_thread`. Hooks, monitors, external diffs and pagers of the
repository are switched off, and so are variables that would lead git to another repository.
A git that cannot be started comes back as a complaint like any other.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from pathlib import Path

import msgspec

from laneway.base.plain import plain
from laneway.codex.locate import child_environment

GIT_S = 15.0
"""Seconds for one command. A healthy repository takes far less; a person waits for the answer."""
MAX_OUTPUT_BYTES = 4 * 1024 * 1024
"""Of one command. More than anybody reads; the rest is never made."""
MAX_COMPLAINT_BYTES = 4096
MAX_LINE_CHARS = 300
"""Of a complaint that is shown to a person: a sentence with a long path in it."""
NEVER_RAN = 127
"""The exit code of a git that could not be started, as shells have it."""

_QUIET = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.pager=cat", "color.ui=false")
_NOT_HERE = "fatal: not a git repository (or any"
"""How git's complaint begins where no folder above is a repository, in the locale that it is given."""
_KEPT = ("GIT_CONFIG", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM")
"""The user's own settings. All other `GIT_…` variables may name another repository or a program."""


class Ran(msgspec.Struct, frozen=True):
    code: int
    """Git's exit code; negative when it was ended."""
    out: bytes = b""
    complaint: str = ""
    is_cut: bool = False
    """There was more output, and git was ended."""


NO_GIT = Ran(NEVER_RAN, complaint="There is no git on this machine.")


def git(
    folder: Path,
    *words: str,
    given: bytes = b"",
    max_bytes: int = MAX_OUTPUT_BYTES,
    timeout_s: float = GIT_S,
) -> Ran:
    import tempfile  # with random and hashlib it would take a tenth of the door's start

    quiet = [word for setting in _QUIET for word in ("-c", setting)]
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.write(given)
        stdin.seek(0)
        try:
            process = subprocess.Popen(
                ["git", *quiet, *words],
                cwd=folder,
                env=_environment(),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as problem:
            return _never_ran(folder, problem)
        out = _read(process, max_bytes, timeout_s)
        stderr.seek(0)
        complaint = stderr.read(MAX_COMPLAINT_BYTES).decode("utf-8", "replace").strip()
    return Ran(process.returncode, out[:max_bytes], complaint, is_cut=len(out) > max_bytes)


def _never_ran(folder: Path, problem: OSError) -> Ran:
    if not os.path.isdir(folder):
        return Ran(NEVER_RAN, complaint=f"There is no folder {folder}.")
    if isinstance(problem, FileNotFoundError):
        return NO_GIT
    return Ran(NEVER_RAN, complaint=f"Git cannot be started in {folder} ({problem.strerror}).")


def _read(process: subprocess.Popen[bytes], max_bytes: int, timeout_s: float) -> bytes:
    """What it prints, up to one byte more than wanted; then it is gone, with all that it started."""
    late = threading.Timer(timeout_s, _end, (process,))
    late.start()
    with process:
        assert process.stdout is not None
        try:
            out = process.stdout.read(max_bytes + 1)
            if len(out) > max_bytes:
                _end(process)
        finally:
            late.cancel()
            late.join()  # from here on nobody signals a group whose id may be free again
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                _end(process)
    return out


def _end(process: subprocess.Popen[bytes]) -> None:
    """Only before it is reaped: until then the id of its group is its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    mine = {
        key: value
        for key, value in child_environment(os.environ).items()
        if not key.startswith("GIT_") or key.startswith(_KEPT)
    }
    # Looking must not write: without optional locks git leaves the index alone.
    return {**mine, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def why_not(folder: Path) -> str:
    """Why git has nothing to say of a folder, as a sentence; empty where it lies in a repository."""
    ran = git(folder, "rev-parse", "--show-toplevel")
    if ran.code == 0 and ran.out.strip():
        return ""
    if ran.code == NEVER_RAN:
        return plain(ran.complaint)
    if ran.complaint.startswith(_NOT_HERE):
        return plain(f"{folder} is not in a git repository.")
    return plain(f"Git does not work in {folder}: {first_line(ran.complaint)}.")


def first_line(complaint: str) -> str:
    """What git has against it, for a person to read. Without a full stop."""
    line = plain(complaint.partition("\n")[0].removeprefix("fatal: ")).rstrip(".") or "it was ended"
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + "…"
