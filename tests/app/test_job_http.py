"""Jobs of clients of the HTTP server: each token has its own, and none of the user's."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.jobs.support import Shell, shell
from tests.doors.mcp.http_support import BOTH, mirrors, modern
from tests.jobs.servers import start
from tests.jobs.stage import DEADLINE_S, reading, spawn

TOKEN = "alpha-token-0123456789"


@asynccontextmanager
async def serving(person: Shell, token: str) -> AsyncIterator[str]:
    """`laneway mcp --http`, gone at the end; its URL."""
    process = await start(person, "mcp", "--http", "127.0.0.1:0", LANEWAY_HTTP_TOKEN=token)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            found = re.search(r"http://\S+", (await process.stderr.readline()).decode())
            assert found is not None
            yield found[0]
            process.send_signal(signal.SIGTERM)
            await process.stderr.read()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def asked(url: str, token: str, tool: str, **arguments: Any) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {token}", "accept": BOTH, "content-type": "application/json"}
    headers |= {name.replace("_", "-"): value for name, value in mirrors(tool).items()}
    async with httpx2.AsyncClient(timeout=DEADLINE_S) as web:
        answered = await web.post(url, headers=headers, json=modern(tool, arguments))
    result: dict[str, Any] = answered.json()["result"]
    return result


@pytest.mark.covers("J-tools.18")
async def test_a_token_has_its_jobs_again_after_a_restart_and_another_one_has_not(tmp_path: Path) -> None:
    """The local user sees all of them."""
    async with shell(tmp_path) as person:
        mine = spawn(person.jobs, reading("%say mine"))
        async with serving(person, TOKEN) as url:
            spawned = await asked(url, TOKEN, "codex_spawn", prompt="%say over http")
            job_id = spawned["structuredContent"]["jobId"]
            waited = await asked(url, TOKEN, "codex_wait_all")
            assert [job["jobId"] for job in waited["structuredContent"]["ended"]] == [job_id]
            refused = await asked(url, TOKEN, "codex_status", jobId=mine.job_id)
            assert refused["isError"]
        async with serving(person, TOKEN) as url:
            result = await asked(url, TOKEN, "codex_result", jobId=job_id)
            assert result["structuredContent"]["lastMessage"] == "over http"
        async with serving(person, "other-token-0123456789") as url:
            refused = await asked(url, "other-token-0123456789", "codex_result", jobId=job_id)
            assert refused["isError"]
            listed = await asked(url, "other-token-0123456789", "codex_list")
            assert listed["structuredContent"]["jobs"] == []
        assert {job["jobId"] for job in (await person.data("list"))["jobs"]} == {mine.job_id, job_id}
        await person.here.ended(person.jobs, mine)
