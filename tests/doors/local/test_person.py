"""Who may answer a question: a person at a terminal, and nobody whom an agent runs."""

from __future__ import annotations

import asyncio
import os
import pty
import sys
from pathlib import Path

import pytest

from laneway.doors.local.person import ProcessRow, is_agent, is_person

US = os.getpid()
SHELL, TERMINAL = 900_001, 900_002


def process(parent: int, *words: str, foreground: int = 5, group: int = 5) -> ProcessRow:
    return ProcessRow(parent, group, foreground, words or ("sh",))


def table(**more: ProcessRow) -> dict[int, ProcessRow]:
    """A terminal with a shell; us, below a client that some other shell started."""
    return {
        TERMINAL: process(1, "tmux"),
        SHELL: process(TERMINAL, "-bash"),
        900_010: process(TERMINAL, "-bash"),
        900_011: process(900_010, "claude"),
        US: process(900_011, "python", "-m", "laneway", "mcp"),
        **{int(name.removeprefix("p")): value for name, value in more.items()},
    }


def test_somebody_at_a_shell_is_a_person() -> None:
    """`laneway sessions watch` in another window."""
    assert is_person(7, table(p7=process(SHELL, "laneway", "sessions", "watch")).get)


@pytest.mark.parametrize(
    "processes",
    [
        {"p7": process(SHELL, foreground=-1)},
        {"p7": process(SHELL, foreground=0)},
        {"p7": process(SHELL, foreground=6)},
        {"p7": process(US)},
        {"p7": process(8), "p8": process(9), "p9": process(US)},
        {"p7": process(8), "p8": process(SHELL, "/opt/bin/codex", "app-server")},
        {"p7": process(8), "p8": process(SHELL, "/x/codex-x86_64-unknown-linux-musl")},
        {
            "p7": process(8),
            "p8": process(SHELL, "python", "-I", "-S", "/x/guardian.py", "3", "--", "/x/codex"),
        },
        {"p7": process(900_011)},
        {"p7": process(8)},
        {"p7": process(7)},
    ],
    ids=[
        "no terminal",
        "none to be seen",
        "in the background",
        "started by us",
        "far below us",
        "run by Codex",
        "run by another Codex",
        "left behind by Codex",
        "run by the client that started us",
        "with a parent that is gone",
        "its own parent",
    ],
)
def test_whoever_an_agent_runs_is_none(processes: dict[str, ProcessRow]) -> None:
    """Whatever terminal it has been given."""
    assert not is_person(7, table(**processes).get)


def test_whoever_cannot_be_told_is_none() -> None:
    """The kernel did not say, or the process is gone."""
    assert not is_person(None, table().get)
    assert not is_person(7, table().get)


def test_an_agent_above_both_of_us_says_nothing_about_either() -> None:
    """These tests may be run by one."""
    above = {900_000: process(1, "claude"), TERMINAL: process(900_000, "sh")}
    assert is_person(7, {**table(p7=process(SHELL)), **above}.get)


@pytest.mark.parametrize(
    ("words", "expected"),
    [((), False), (("vim", "codex"), False), (("tmux", "-s", "claude"), False), (("Codex",), True)],
)
def test_an_agent_is_known_by_its_own_name(words: tuple[str, ...], expected: bool) -> None:
    """Not by what somebody does with it."""
    assert is_agent(words) is expected


async def test_a_program_that_we_started_is_none_though_it_has_a_terminal(tmp_path: Path) -> None:
    """As a command of a model would be: the kernel's own table says whose child it is."""
    ours, theirs = pty.openpty()
    code = (
        "import fcntl, os, sys, termios\n"
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "print(os.tcgetpgrp(0) == os.getpgrp(), file=sys.stderr, flush=True)\n"
        "sys.stdin.read()"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdin=theirs, stderr=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stderr is not None
        assert await asyncio.wait_for(process.stderr.readline(), 20) == b"True\n"
        assert not is_person(process.pid)
    finally:
        process.kill()
        await process.wait()
        os.close(ours)
        os.close(theirs)
