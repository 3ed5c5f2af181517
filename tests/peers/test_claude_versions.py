"""The versions of Claude Code that people have, each with its SDK: the same tests hold on all of them."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from laneway.base.programs import Binary
from laneway.claude import locate, version

FOLDER = os.environ.get("LANEWAY_PEERS", "")
ROOT = Path(__file__).resolve().parent.parent.parent
OF_THE_ENGINE = ("test_real_*.py", "test_engine_kit.py", "test_same_as_sdk.py", "test_repo_trust.py")


def claudes() -> list[str]:
    """The folders that `scripts/fetch_peers.py` brought, by the version of the SDK, oldest first."""
    if not FOLDER:
        return ["none fetched"]
    found = (path.name for path in Path(FOLDER).glob("claude-agent-sdk-*"))
    return sorted(found, key=lambda name: version.parse_version(name) or ())


@pytest.mark.peers
@pytest.mark.parametrize("folder", claudes())
async def test_the_engines_tests_hold_on_this_version(folder: str) -> None:
    """The very tests of `make test`, all of them; and the table of versions has this one."""
    claude = Path(FOLDER) / folder / "claude_agent_sdk" / "_bundled" / "claude"
    found = await asyncio.to_thread(version.probe, Binary(str(claude), "PATH"))
    assert version.spell(found) in version.TESTED
    # The SDK that this Claude Code came with is the one that is compared.
    paths = os.pathsep.join(filter(None, (str(Path(FOLDER) / folder), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, locate.ENVIRONMENT_KEY: str(claude), "PYTHONPATH": paths}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--timeout", "90"]
    folder_of_tests = ROOT / "tests" / "claude"
    tests = [str(path) for pattern in OF_THE_ENGINE for path in sorted(folder_of_tests.glob(pattern))]
    async with asyncio.timeout(580):
        process = await asyncio.create_subprocess_exec(
            *words, *tests, cwd=ROOT, env=env, stdout=PIPE, stderr=STDOUT
        )
        out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()[-4000:]


@pytest.mark.peers
async def test_every_version_of_the_table_is_fetched() -> None:
    """But for the one of the lock file, which `make test` runs."""
    locked = await asyncio.to_thread(version.probe, locate.find(environment={"PATH": ""}))
    paths = [Path(FOLDER) / folder / "claude_agent_sdk" / "_bundled" / "claude" for folder in claudes()]
    probes = (asyncio.to_thread(version.probe, Binary(str(path), "PATH")) for path in paths)
    fetched = {version.spell(each) for each in (locked, *await asyncio.gather(*probes))}
    assert fetched == set(version.TESTED)
