"""Throw-away Codex homes: created, locked, removed; and swept when their owner was killed."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from laneway.rehearsal.home import sweep, throwaway_home, work_beside
from laneway.rehearsal.server import ModelServer

HOLD = """
import sys
from laneway.rehearsal.home import throwaway_home
with throwaway_home("http://127.0.0.1:1/v1") as home:
    print(home, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "laneway" / "rehearsals"


def test_a_home_is_private_and_gone_afterwards(cache: Path) -> None:
    """With a folder to work in beside it."""
    with throwaway_home("http://127.0.0.1:1/v1") as home:
        assert 'base_url = "http://127.0.0.1:1/v1"' in (home / "config.toml").read_text()
        for folder in (home, home.parent, cache, cache.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert list(work_beside(home).iterdir()) == []
    assert list(cache.iterdir()) == []


def test_what_a_killed_process_left_is_swept_and_what_lives_is_kept(cache: Path) -> None:
    """The lock tells, not the age."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ
    )
    with holder:
        assert holder.stdout is not None
        home = Path(holder.stdout.readline().strip())
        assert sweep(cache) == []
        holder.kill()
        holder.wait()
        assert sweep(cache) == [home.parent]
        assert list(cache.iterdir()) == []


async def test_the_model_listens_on_loopback_and_answers_nothing_else() -> None:
    """A stray request gets a plain 404, a broken one no crash."""
    async with asyncio.timeout(20), ModelServer() as model:
        for request, answer in (
            (b"GET /v1/models HTTP/1.1\r\n\r\n", b"HTTP/1.1 404"),
            (b'POST /v1/responses HTTP/1.1\r\ncontent-length: 12\r\n\r\n{"input":[]}', b"HTTP/1.1 200"),
            (b"nonsense\r\n\r\n", b"HTTP/1.1 404"),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", model.port)
            writer.write(request)
            assert (await reader.readuntil(b"\r\n")).startswith(answer)
            writer.close()
            await writer.wait_closed()


def test_what_was_left_of_a_home_is_swept(tmp_path: Path) -> None:
    """A Codex that writes while its home is being removed leaves a folder without a lock."""
    left = tmp_path / "home-left"
    (left / "codex" / "log").mkdir(parents=True)

    assert sweep(tmp_path) == [left]
    assert not left.exists()
