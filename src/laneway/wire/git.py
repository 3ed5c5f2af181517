"""Runs git with limits on time and output, and without running programs that a repository configures.

`git` asks a repository about itself: where it is, its references and settings. Commands that read
contents (diff, status, ls-files, log) go through `git_view`, which reads nothing of the repository's own
configuration; `git_apart` uses no repository at all, and is for `apply`.

No command that is passed here may use the network, prompt, page, or write to a repository.
Blocking: from asyncio call through `in_thread`, which ends git when it is cancelled. A git that
cannot be started is reported as an error like any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from laneway.base.repo import find_repo

P = ParamSpec("P")
T = TypeVar("T")

GIT_S = 15.0
"""Seconds for one command. A healthy repository takes far less; a person waits for the answer."""
MAX_OUTPUT_BYTES = 4 * 1024 * 1024
"""Of one command. More than anybody reads; git is ended at this size."""
MAX_ERROR_BYTES = 4096
NEVER_RAN = 127
"""The exit code of a git that could not be started, as in shells."""

_PASSED = (
    "HOME",
    "XDG_CONFIG_HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "DEVELOPER_DIR",  # macOS finds its git by this
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_COUNT",
)
_PASSED_BEGINNINGS = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
"""What git gets of our environment. Other `GIT_…` variables may name a repository or a program."""
_ALWAYS = {
    "GIT_OPTIONAL_LOCKS": "0",  # reading must not write
    "GIT_NO_LAZY_FETCH": "1",  # contents that a partial clone lacks stay missing …
    "GIT_ALLOW_PROTOCOL": "none",  # … also for a git that does not know the line above
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_ASKPASS": "false",
    "LC_ALL": "C",
}
_OVERRIDDEN = (
    "core.fsmonitor=",  # empty, because for an old git `false` would be the name of a program
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.untrackedCache=false",
    "credential.helper=",
    "gpg.program=false",
    "log.showSignature=false",
    "submodule.recurse=false",
    "safe.bareRepository=explicit",
    "color.ui=false",
)
APART = {
    "GIT_DIR": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "HOME": os.devnull,  # for a git that does not know the line above
    "XDG_CONFIG_HOME": os.devnull,
}
"""Variables with which git finds no repository and no settings."""


class GitRun(msgspec.Struct, frozen=True):
    """The result of one git command."""

    exit_code: int
    """Git's exit code; negative when it was ended."""
    stdout: bytes = b""
    error: str = ""
    """What git wrote to standard error, or a sentence of ours where it could not run."""
    is_cut: bool = False
    """There was more output, and git was ended."""

    @property
    def line(self) -> str:
        """The output as a single path or id."""
        return os.fsdecode(self.stdout.removesuffix(b"\n"))


class _Running:
    """The running git process of one call, which another thread can end."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.is_over = False

    def begin(self, process: subprocess.Popen[bytes]) -> None:
        with self._mutex:
            self._process = process
            if self.is_over:
                _end(process)

    def clear(self) -> None:
        """Called before the process is reaped: after that its pid may belong to another one."""
        with self._mutex:
            self._process = None

    def end(self) -> None:
        with self._mutex:
            self.is_over = True
            if self._process is not None:
                _end(self._process)


_running: ContextVar[_Running | None] = ContextVar("laneway_running_git", default=None)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work that uses git in a thread. On cancellation git is ended and not started again."""
    running = _Running()
    token = _running.set(running)  # asyncio's threads inherit the context of the caller
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    except asyncio.CancelledError:
        running.end()
        raise
    finally:
        _running.reset(token)


NO_GIT = GitRun(NEVER_RAN, error="There is no git on this machine.")


def git(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    max_bytes: int = MAX_OUTPUT_BYTES,
    timeout_s: float = GIT_S,
) -> GitRun:
    """Ask the repository of a folder about itself."""
    return _run(folder, arguments, {}, stdin, max_bytes, timeout_s)


def rev_parse(folder: Path, *questions: str) -> list[str] | GitRun:
    """What `git rev-parse` answers to each question, such as `--git-path objects`; or why it does not.

    One process for all of them. Only where a path has the end of a line in it, there is one for each.
    """
    ran = git(folder, "rev-parse", *(word for question in questions for word in question.split(" ")))
    if ran.exit_code != 0:
        return ran
    answers = [os.fsdecode(line) for line in ran.stdout.split(b"\n")[:-1]]
    if len(answers) != len(questions):
        runs = [git(folder, "rev-parse", *question.split(" ")) for question in questions]
        answers = [run.line if run.exit_code == 0 else "" for run in runs]
    if not all(answers):
        return GitRun(NEVER_RAN, error=f"{folder} is not in a work tree.")
    return answers


def git_apart(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    max_bytes: int = MAX_OUTPUT_BYTES,
    timeout_s: float = GIT_S,
    place: Mapping[str, str] = APART,
) -> GitRun:
    """Run git without a repository and with our settings only; `place` may name a repository to use."""
    return _run(folder, arguments, place, stdin, max_bytes, timeout_s)


def _run(
    folder: Path,
    arguments: tuple[str, ...],
    place: Mapping[str, str],
    stdin: bytes,
    max_bytes: int,
    timeout_s: float,
) -> GitRun:
    import tempfile  # loads random and hashlib: a tenth of a server's start-up time

    running = _running.get() or _Running()
    if running.is_over:
        return GitRun(NEVER_RAN, error="It was cancelled.")
    path = _safe_path(folder)
    program = _program(path)
    if program is None:
        return _never_ran(folder, FileNotFoundError())
    settings = [word for setting in _OVERRIDDEN for word in ("-c", setting)]
    with tempfile.TemporaryFile() as stdin_file, tempfile.TemporaryFile() as stderr_file:
        stdin_file.write(stdin)
        stdin_file.seek(0)
        try:
            process = subprocess.Popen(
                [program, *settings, *arguments],
                cwd=folder,
                env=_environment(path, place),
                stdin=stdin_file,
                stdout=subprocess.PIPE,
                stderr=stderr_file,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            return _never_ran(folder, problem)
        stdout = _read(process, running, max_bytes, timeout_s)
        stderr_file.seek(0)
        error = stderr_file.read(MAX_ERROR_BYTES).decode("utf-8", "replace").strip()
    is_cut = len(stdout) > max_bytes
    if process.returncode == -signal.SIGKILL and not is_cut and not running.is_over:
        error = f"it took longer than {timeout_s:g} seconds and was ended"
    return GitRun(process.returncode, stdout[:max_bytes], error, is_cut)


def _never_ran(folder: Path, problem: Exception) -> GitRun:
    if not os.path.isdir(folder):
        return GitRun(NEVER_RAN, error=f"There is no folder {folder}.")
    if isinstance(problem, FileNotFoundError):
        return NO_GIT
    why = getattr(problem, "strerror", None) or "it cannot be asked that"
    return GitRun(NEVER_RAN, error=f"Git cannot be started in {folder} ({why}).")


# ── the environment ────────────────────────────────────────────────────────


def _environment(path: str, place: Mapping[str, str]) -> dict[str, str]:
    inherited = {
        key: value
        for key, value in os.environ.items()
        if (key in _PASSED or key.startswith(_PASSED_BEGINNINGS)) and not place
    }
    return {**inherited, **_ALWAYS, **place, "PATH": path}


def _safe_path(folder: Path) -> str:
    """The PATH without folders inside the repository, where a model could write a program named `git`."""
    real = os.path.realpath(folder)
    repo = find_repo(Path(real))
    top = real if repo is None else os.fspath(repo.root)
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if os.path.isabs(entry) and not _is_below(entry, top))


def _is_below(entry: str, top: str) -> bool:
    return top != "/" and f"{os.path.realpath(entry)}/".startswith(f"{top}/")


def _program(path: str) -> str | None:
    """Find git as a shell would (`shutil.which` costs three milliseconds of start-up)."""
    for entry in path.split(os.pathsep) if path else ():
        candidate = os.path.join(entry, "git")
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


# ── the process ────────────────────────────────────────────────────────────


def _read(process: subprocess.Popen[bytes], running: _Running, max_bytes: int, timeout_s: float) -> bytes:
    """Its output, up to one byte more than allowed. Afterwards it is gone with all that it started."""
    timer = threading.Timer(timeout_s, _end, (process,))
    timer.start()
    running.begin(process)
    with process:
        assert process.stdout is not None
        try:
            stdout = process.stdout.read(max_bytes + 1)
            if len(stdout) > max_bytes:
                _end(process)
        finally:
            timer.cancel()
            timer.join()
            running.clear()  # from now on nobody signals a process group whose id may be free again
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                _end(process)
    return stdout


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill its process group. Only before it is reaped: after that the id may belong to another group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
