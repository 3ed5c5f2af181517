"""What the system tells of processes: their parents, whatever these do, and the sandbox they are in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from laneway.testing.processes import wait_gone
from laneway.wire import process_tree
from laneway.wire.child import Child
from laneway.wire.process_tree import GUARDIANS, Lineage, ProcessInfo, is_confined, lineage
from tests.wire.support import Heard, linux_only, program, python, start

pytestmark = linux_only

CONFINED = "import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); print(flush=True); input()"
"""Gives up new privileges for good, as every sandbox of Codex does, and stays."""
PLAIN = "print(flush=True); input()"


@contextmanager
def running(script: str) -> Iterator[int]:
    """A process of its own that has said a line; its number."""
    words = [sys.executable, "-I", "-S", "-c", script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def names(found: Lineage) -> list[str]:
    return [process.name for process in found.processes]


def test_a_lineage_goes_up_to_the_first_process() -> None:
    """Each is the parent of the one before, and not younger."""
    found = lineage(os.getpid())
    assert found.is_whole
    assert [found.processes[0].pid, found.processes[1].pid] == [os.getpid(), os.getppid()]
    for below, above in zip(found.processes, found.processes[1:], strict=False):
        assert (below.parent, below.started >= above.started) == (above.pid, True)
    assert found.processes[-1].parent == 0


async def test_of_a_process_that_is_gone_nothing_is_told() -> None:
    """Nor of one that has ended and whom nobody has buried yet: its children are somebody else's."""
    with running(PLAIN) as pid:
        os.kill(pid, signal.SIGKILL)
        await wait_gone(pid)
        assert lineage(pid) == Lineage((), is_whole=False)
    assert lineage(pid) == Lineage((), is_whole=False)
    assert is_confined(pid) is None


async def test_an_agents_guardian_stands_above_all_that_it_started() -> None:
    """Also above a daemon: sessions of their own and double forks are no way out."""
    heard = Heard()
    child = await start(program("tree", "stay"), heard)
    try:
        pids: dict[str, int] = json.loads(await heard.wait_line())
        for pid in pids.values():
            found = lineage(pid)
            assert GUARDIANS["agent"] in names(found)
            assert os.getpid() in [process.pid for process in found.processes]
            assert any(process.is_agent for process in found.processes)
    finally:
        child.kill()
        await child.wait()


async def test_the_guardian_of_a_plain_program_is_no_agents() -> None:
    """A terminal in a test, for one, belongs to the user."""
    heard = Heard()
    child = await Child.spawn(python(PLAIN), on_stdout=heard.on_stdout, kind="program")
    try:
        await heard.wait_line()
        below_us = lineage(child.pid).processes[:3]
        assert [process.pid for process in below_us][::2] == [child.pid, os.getpid()]
        assert not any(process.is_agent for process in below_us)
    finally:
        child.kill()
        await child.wait()


async def test_without_proc_the_same_is_told_by_ps() -> None:
    """Parents, and the guardian by its command line."""
    heard = Heard()
    child = await start(python(PLAIN), heard)
    try:
        await heard.wait_line()
        found, expected = process_tree._by_ps(child.pid), lineage(child.pid)
        assert [each[:2] for each in found.processes] == [each[:2] for each in expected.processes]
        assert found.is_whole
        assert names(found)[1] == GUARDIANS["agent"]
        ((_, _, line),) = process_tree._ps("-wwo", "pid=,ppid=,command=", "-p", str(found.processes[1].pid))
        assert process_tree._GUARDIAN_LINE.search(line)
    finally:
        child.kill()
        await child.wait()
    assert process_tree._by_ps(child.pid) == Lineage((), is_whole=False)


@pytest.mark.parametrize(("script", "expected"), [(PLAIN, False), (CONFINED, True)])
def test_a_sandbox_that_we_are_not_in_is_seen(script: str, expected: bool) -> None:
    """By what no process in it can undo."""
    with running(script) as pid:
        assert is_confined(pid) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("codex", True),
        ("codex-linux-sandbox"[:15], True),
        (GUARDIANS["agent"], True),
        (GUARDIANS["worker"], True),
        ("codexicon", False),
        ("zsh", False),
        ("tmux: server", False),
    ],
)
def test_agents_are_known_by_their_names(name: str, expected: bool) -> None:
    """As the system keeps them."""
    assert ProcessInfo(1, 0, 0, name).is_agent is expected
