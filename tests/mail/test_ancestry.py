"""Processes by pid, start and space: which of them are gone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from laneway.mail.ancestry import fate, ourselves, pid_space
from laneway.testing.processes import wait_gone


def test_a_process_is_known_by_its_start_and_its_space() -> None:
    """A number alone is nobody."""
    us = ourselves()
    assert fate(us.pid, us.start, pid_space()) == "alive"
    assert fate(us.pid, us.start, "another machine") == "unknown"
    if sys.platform == "linux":
        assert fate(us.pid, "1", pid_space()) == "gone"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_process_that_has_ended_and_that_nobody_has_reaped_is_gone() -> None:
    """In a container there may be nobody who ever does."""
    # asyncio would reap it.
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)  # noqa: ASYNC220
    with process:
        assert fate(process.pid, "", pid_space()) == "alive"
        process.kill()
        await wait_gone(process.pid)
        os.kill(process.pid, 0)  # the number is still taken
        assert fate(process.pid, "", pid_space()) == "gone"
