"""Ours, Claude Code's dialect and both of ATM's on one inbox, with kill -9 in between."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from tests.chaos.mail_storm import CASTS

STORMS = 4
ROUNDS = 1000 if os.environ.get("LANEWAY_CHAOS") else len(CASTS)
"""In each storm; they run side by side."""
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.covers("FR-20.2")
@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("storm", range(STORMS if os.environ.get("LANEWAY_CHAOS") else 1))
async def test_whoever_is_killed_every_message_is_kept_once(tmp_path: Path, storm: int) -> None:
    """What a writer was told is safe is in the inbox or was delivered; nothing twice, no mark lost."""
    seed = random.randrange(2**32)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-m", "tests.chaos.mail_storm", str(tmp_path / "home"), str(ROUNDS), str(seed)]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, env=env, cwd=ROOT)
    try:
        async with asyncio.timeout(1700):
            told, problem = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, f"seed {seed}: {problem.decode()[-3000:]}"
    assert json.loads(told)["messages"] > ROUNDS // 2, "they must get something done"
