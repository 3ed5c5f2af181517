"""The versions of Codex that people have: the tour and the tests of the engine must hold on each."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from laneway.codex import binary, locate
from tests.cli.support import laneway

FOLDER = os.environ.get("LANEWAY_PEERS", "")
ROOT = Path(__file__).resolve().parent.parent.parent


def codexes() -> list[str]:
    """The executables that `scripts/fetch_peers.py` brought, oldest first."""
    if not FOLDER:
        return ["none fetched"]
    found = [
        path
        for path in Path(FOLDER).glob("codex-[0-9]*/**/codex")
        if path.is_file() and os.access(path, os.X_OK)
    ]
    return [str(path) for path in sorted(found, key=lambda path: binary.parse_version(str(path)) or ())]


every_codex = pytest.mark.parametrize(
    "codex", codexes(), ids=lambda path: binary.spell(binary.parse_version(path) or (0,))
)


@pytest.mark.covers("NFR-4")
@pytest.mark.peers
@every_codex
async def test_the_tour_works_on_this_version(codex: str) -> None:
    """Streaming, sandbox, edit, approval, interrupt, resume."""
    ran = await laneway("tour", "--json", "--codex-bin", codex)
    told = json.loads(ran.out)
    assert told["ok"], told
    assert told["codex"] == binary.spell(binary.probe(locate.find(codex)))


@pytest.mark.covers("NFR-4")
@pytest.mark.peers
@every_codex
async def test_the_engines_tests_hold_on_this_version_but_for_what_it_lacks(codex: str) -> None:
    """The very tests of `make test`; what the table says is missing is skipped, and nothing else is."""
    env = {**os.environ, "LANEWAY_CODEX_BIN": codex}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--timeout", "90"]
    tests = [str(path) for path in sorted((ROOT / "tests" / "codex").rglob("test_real_*.py"))]
    async with asyncio.timeout(500):
        process = await asyncio.create_subprocess_exec(
            *words, *tests, cwd=ROOT, env=env, stdout=PIPE, stderr=STDOUT
        )
        out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()[-4000:]
