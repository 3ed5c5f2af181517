"""A console in a terminal, beside servers, jobs and mail of the same user: real processes and real files."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from laneway.base.ids import new_id
from tests.cli.support import in_terminal
from tests.cli.watching import places
from tests.core.support import LOOK_S
from tests.doors.mcp.support import FORMS, Client, Stage, stage

WORK = {"sandbox": "read-only", "approval-policy": "on-request"}
"""Arguments of a call of which each command with `%run!` needs a person's word."""
DEADLINE_S = 45.0


class Reply:
    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.data: Any = json.loads(body)


class LiveConsole:
    """A `laneway console` that serves, and what its page asks of it."""

    def __init__(self, address: str) -> None:
        self.address = address
        split = urlsplit(address)
        self.host = split.netloc
        self._token = split.fragment.removeprefix("token=").partition("&")[0]

    async def get(self, path: str) -> Reply:
        return await asyncio.to_thread(self._ask, "GET", path, None)

    async def data(self, path: str) -> Any:
        """Of an answer that is no refusal."""
        reply = await self.get(path)
        assert reply.status == 200, reply.data
        return reply.data

    async def post(self, path: str, **body: Any) -> Reply:
        return await asyncio.to_thread(self._ask, "POST", path, json.dumps(body).encode())

    async def until(self, path: str, holds: Callable[[Any], object]) -> Any:
        """Ask until the answer is as it should be."""
        deadline = asyncio.get_running_loop().time() + DEADLINE_S
        while True:
            reply = await self.get(path)
            if reply.status == 200 and holds(reply.data):
                return reply.data
            assert asyncio.get_running_loop().time() < deadline, reply.data
            await asyncio.sleep(LOOK_S)

    def _ask(self, method: str, path: str, body: bytes | None) -> Reply:
        connection = http.client.HTTPConnection(self.host, timeout=DEADLINE_S)
        headers = {"Authorization": f"Bearer {self._token}", "Origin": f"http://{self.host}"}
        if method == "POST":
            headers["Idempotency-Key"] = new_id("key")
        try:
            connection.request(method, f"/api/{path}", body, headers)
            response = connection.getresponse()
            return Reply(response.status, response.read())
        finally:
            connection.close()


class Desk:
    """One user's desk: a stage with servers and jobs, and terminals that find them."""

    def __init__(self, here: Stage, run: Path) -> None:
        self.here = here
        self.places = places(run)
        self.has_jobs = False
        here.environment.update(self.places)

    @property
    def work(self) -> Path:
        return self.here.work

    @asynccontextmanager
    async def server(self, *words: str, env: dict[str, str] | None = None) -> AsyncIterator[Client]:
        """An MCP server whose client leaves every question open."""
        async with self.here.server("mcp", *words, capabilities=FORMS, env=env) as client:
            client.on_ask = lambda message: None
            yield client

    @asynccontextmanager
    async def console(
        self, *, is_foreground: bool = True, env: dict[str, str] | None = None
    ) -> AsyncIterator[LiveConsole]:
        """As a person starts one: in the foreground of a terminal. Else as an agent does, on pipes."""
        names = ("CODEX_HOME", "ATM_HOME", "LANEWAY_CODEX_BIN", *self.places)
        environment = {name: self.here.environment[name] for name in names} | (env or {})
        if not is_foreground:
            process = await self.here.spawn("-m", "laneway", "console", env=env)
            try:
                assert process.stdout is not None
                async with asyncio.timeout(DEADLINE_S):
                    yield LiveConsole(address_in((await process.stdout.readline()).decode()))
            finally:
                process.terminate()
                await process.wait()
            return
        async with in_terminal("console", env=environment, cwd=self.work) as screen:
            await screen.wait_for("Ctrl-C ends it")
            yield LiveConsole(address_in(screen.text))

    def make_repository(self) -> None:
        """Make the work folder a repository with a menu in it."""
        (self.work / "menu.txt").write_text("soup\nbread\ncheese\n")
        for words in (
            ("init", "--quiet", "--initial-branch=main"),
            ("add", "."),
            ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "--quiet", "-m", "menu"),
        ):
            subprocess.run(["git", *words], cwd=self.work, check=True)

    async def disputed_run(self, client: Client) -> tuple[str, list[str]]:
        """Two jobs at once that change the same line of the menu; their run and their ids."""
        oven = self.here.state / "oven-is-hot"
        # Codex waits ten seconds for each command.
        wait = "\n".join([f"%run until test -e {oven}; do sleep 0.05; done"] * 6)
        first = await self.spawned(client, f"%edit menu.txt soup => tomato soup\n{wait}")
        await self._wait_waiting(client, first)
        second = await self.spawned(client, f"%edit menu.txt tomato soup => onion soup\n{wait}")
        await self._wait_waiting(client, second)
        oven.touch()
        ended = await client.content("codex_wait_all", jobIds=[first, second])
        assert [each["status"] for each in ended["ended"]] == ["succeeded"] * 2, ended
        run: str = (await client.content("codex_result", jobId=first))["run"]
        return run, [first, second]

    async def spawned(self, client: Client, prompt: str) -> str:
        self.has_jobs = True
        spawned = await client.content(
            "codex_spawn", prompt=prompt, cwd=str(self.work), sandbox="workspace-write"
        )
        job_id: str = spawned["jobId"]
        return job_id

    async def _wait_waiting(self, client: Client, job_id: str) -> None:
        """Until the job has made its edit, and looks at the oven."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                status = await client.content("codex_status", jobId=job_id)
                assert status["status"] in ("queued", "starting", "running"), status
                if "until test" in status.get("activity", ""):
                    return
                await asyncio.sleep(LOOK_S)

    @property
    def menu(self) -> list[str]:
        return (self.work / "menu.txt").read_text().splitlines()


def address_in(printed: str) -> str:
    found = re.search(r"http://\S+", printed)
    assert found is not None, printed
    return found[0]


@asynccontextmanager
async def desk(state: Path, run: Path) -> AsyncIterator[Desk]:
    """Nothing that a test has started is left at its end."""
    async with stage(state) as here:
        at = Desk(here, run)
        await asyncio.to_thread(at.make_repository)
        try:
            yield at
        finally:
            if at.has_jobs:
                await _end_jobs(at)


async def _end_jobs(at: Desk) -> None:
    async with at.here.server("mcp") as client:
        left = await client.content("codex_list", status="unfinished")
        for job in left["jobs"]:
            await client.content("codex_cancel", jobId=job["jobId"], force=True)
        if left["jobs"]:
            await client.content("codex_wait_all")
