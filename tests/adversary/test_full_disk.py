"""A full disk, for real: every command says so and names the folder; no traceback, nothing half-written."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.adversary.support import DEADLINE_S
from tests.cli.support import LANEWAY, Ran

SOURCES = os.pathsep.join(os.path.abspath(each) for each in sys.path)
"""The command runs in a folder of its own."""
ALONE = ("unshare", "--map-root-user", "--mount")
FILLED = """
mount -t tmpfs -o size=1m tmpfs "$1" && cd "$1" || exit 99
mkdir -p home/.local/state/laneway work && cd work && git init -q .
printf '[laneway]\\nmodel = "x"\\n' > .laneway.toml
export HOME="$1/home"; unset XDG_CACHE_HOME XDG_STATE_HOME XDG_CONFIG_HOME CODEX_HOME
head -c 2000000 /dev/zero > ../filling 2>/dev/null
shift
"$@"; code=$?
find "$HOME" -name '*.tmp' -o -name '*laneway-tmp' | sed 's/^/left: /'
exit $code
"""
"""A disk of our own for one command, full but for nothing; it goes with its process."""


@cache
def can_mount() -> bool:
    if sys.platform != "linux" or not shutil.which("unshare") or not shutil.which("git"):
        return False
    probe = [*ALONE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif("not can_mount()", reason="a small disk of our own needs user namespaces")


async def on_a_full_disk(tmp_path: Path, *words: str) -> Ran:
    process = await asyncio.create_subprocess_exec(
        *ALONE,
        "sh",
        "-c",
        FILLED,
        "sh",
        str(tmp_path),
        *LANEWAY,
        *words,
        env={**os.environ, "PYTHONPATH": SOURCES},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Ran(process.returncode, out, err)


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        (("ask", "--rehearse", "hello"), "home/.cache/laneway/rehearsals"),
        (("tour",), "home/.cache/laneway/rehearsals"),
        (("ask", "hello"), "home/.codex"),
    ],
)
async def test_a_full_disk_is_said_with_its_folder(
    tmp_path: Path, words: tuple[str, ...], folder: str
) -> None:
    """In one line."""
    ran = await on_a_full_disk(tmp_path, *words)
    assert ran.code in (1, 4)
    assert f"laneway: The disk is full: free some space for {tmp_path / folder} and try again.\n" in ran.err
    assert "Traceback" not in ran.err


async def test_doctor_blames_the_disk_and_not_the_codex(tmp_path: Path) -> None:
    """With a remedy that helps."""
    ran = await on_a_full_disk(tmp_path, "doctor")
    assert "app-server does not start: the disk is full." in ran.out
    assert f"free some space for {tmp_path / 'home/.codex'}" in ran.out
    assert "Use a Codex that is tested" not in ran.out
    assert "chmod u+rwx" not in ran.out


async def test_trust_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    """And says why."""
    ran = await on_a_full_disk(tmp_path, "config", "trust", "--yes")
    assert ran.code == 1
    assert "The disk is full" in ran.err
    assert str(tmp_path / "home/.local/state/laneway") in ran.err
    assert "left: " not in ran.out
