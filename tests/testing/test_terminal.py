"""The terminal that tests look at: what is on the screen, and what is gone at the end."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from laneway.testing.processes import wait_gone
from laneway.testing.terminal import terminal

pytest.importorskip("pyte", reason="needs pyte, which `make setup` installs")

PROGRAM = """\
import os, subprocess, sys, tty
own = os.open("/dev/tty", os.O_RDWR)  # only where the terminal is the program's own
child = subprocess.Popen([sys.executable, "-c", "import os, signal; os.setsid(); signal.pause()"])
tty.setcbreak(0)
print("pids", os.getpid(), child.pid, "of", os.get_terminal_size(), flush=True)
deaf = 2
while (key := os.read(0, 1)) != b"q":
    deaf -= 1
    print("\\x1b[2J\\x1b[Hheard" if deaf < 0 else "ignored", key, flush=True)
"""


async def test_a_program_is_seen_and_answered_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """A grandchild in a session of its own ends with it."""
    argv = [sys.executable, "-c", PROGRAM]
    async with terminal(argv, env=dict(os.environ), cwd=tmp_path, rows=20, columns=60) as screen:
        await screen.wait_for("of os.terminal_size(columns=60, lines=20)")
        words = screen.text.split()
        screen.type("a")
        await screen.wait_for("ignored b'a'")
        await screen.press_until_gone("enter", "pids")
        assert screen.text.startswith("heard")
    for pid in words[1:3]:
        await wait_gone(int(pid))


async def test_a_text_that_does_not_come_is_told_with_the_screen(tmp_path: Path) -> None:
    """Else nobody would know what stood there instead."""
    argv = [sys.executable, "-c", "print('something else', flush=True); input()"]
    async with terminal(argv, env=dict(os.environ), cwd=tmp_path) as screen:
        await screen.wait_for("something else")
        with pytest.raises(TimeoutError, match="something else"):
            await screen.wait_for("this", deadline_s=0.01)


async def test_a_program_that_ended_is_not_waited_for(tmp_path: Path) -> None:
    """Its last words stay readable."""
    argv = [sys.executable, "-c", "print('last words'); raise SystemExit(3)"]
    async with asyncio.timeout(20), terminal(argv, env=dict(os.environ), cwd=tmp_path) as screen:
        await screen.wait_for("last words")
        with pytest.raises(RuntimeError, match="exit code 3"):
            await screen.wait_for("more")


async def test_all_that_a_program_wrote_before_it_ended_is_read(tmp_path: Path) -> None:
    """Also if that is more than a terminal holds."""
    argv = [sys.executable, "-c", "print('many ' * 10_000, 'last words')"]
    for _ in range(5):
        async with asyncio.timeout(20), terminal(argv, env=dict(os.environ), cwd=tmp_path) as screen:
            await screen.wait_for("last words")
