"""`laneway sessions watch` answers what the session asks; whoever is first decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.testing.terminal import Terminal, terminal
from tests.cli.ask.support import given, wait_asked
from tests.cli.support import LANEWAY
from tests.cli.watching import places
from tests.doors.mcp.support import FORMS, Client, Stage, stage

WORK = {"sandbox": "read-only", "approval-policy": "on-request"}


class Server:
    """A server whose client can be asked and leaves the question open."""

    def __init__(self, here: Stage, client: Client, run: Path) -> None:
        self.client = client
        self.marker = here.work / "marker"
        self._environment = given(**places(run), ATM_HOME=str(here.state))
        self._here = here

    def ask(self) -> asyncio.Future[dict[str, Any]]:
        """A call that needs somebody's word."""
        return self.client.start(
            "codex", identity="ann", prompt=f"%run! touch {self.marker}\n%say on", **WORK
        )

    async def wait_asked(self) -> dict[str, Any]:
        """The question to the client."""
        return await self.client.wait_heard(lambda message: message["method"] == "elicitation/create")

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[Terminal]:
        """A second terminal."""
        words = [*LANEWAY, "sessions", "watch", "ann"]
        async with terminal(words, env=self._environment, cwd=self._here.state) as screen:
            await screen.wait_for("process ")
            yield screen


@asynccontextmanager
async def server(state: Path, run: Path) -> AsyncIterator[Server]:
    async with (
        stage(state) as here,
        here.server("mcp", capabilities=FORMS, env=places(run)) as client,
    ):
        client.on_ask = lambda message: None
        yield Server(here, client, run)


async def test_a_person_at_a_second_terminal_decides(tmp_path: Path, run: Path) -> None:
    """The client's own question is taken back, and its call goes on."""
    async with server(tmp_path, run) as here:
        call = here.ask()
        asked = await here.wait_asked()
        async with here.watch() as screen:
            await wait_asked(screen)
            assert f"? Run this command?\n  │ touch {here.marker}\n" in screen.text
            screen.type("y\n")
            result = (await call)["result"]
            assert (result["content"][0]["text"], here.marker.exists()) == ("on", True)
            is_cancelled = "notifications/cancelled"
            taken_back = await here.client.wait_heard(lambda message: message["method"] == is_cancelled)
            assert taken_back["params"]["requestId"] == asked["id"]
            await screen.wait_for("the turn is completed")
            screen.press("ctrl-c")
            await screen.wait_for("the session goes on")


async def test_where_the_client_is_first_the_question_leaves_the_terminal(tmp_path: Path, run: Path) -> None:
    """Half an answer there counts for nothing."""
    async with server(tmp_path, run) as here:
        call = here.ask()
        asked = await here.wait_asked()
        async with here.watch() as screen:
            await wait_asked(screen)
            screen.type("y")
            here.client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})
            await screen.wait_for("No answer is needed any more.")
            assert (await call)["result"]["content"][0]["text"] == "on"
            await screen.wait_for("the turn is completed")
        assert not here.marker.exists()


async def test_who_does_not_want_to_answer_leaves_the_question_open(tmp_path: Path, run: Path) -> None:
    """Ctrl-D, or Ctrl-C: whoever was asked first still is."""
    async with server(tmp_path, run) as here:
        call = here.ask()
        asked = await here.wait_asked()
        async with here.watch() as screen:
            await wait_asked(screen)
            screen.press("ctrl-d")
            await screen.wait_for("The question waits for an answer where the session was started.")
            screen.press("ctrl-c")
            assert (await screen.wait_end()).code == 130
        async with here.watch() as screen:
            await wait_asked(screen)
            screen.press("ctrl-c")
            assert (await screen.wait_end()).code == 130
        here.client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})
        assert (await call)["result"]["content"][0]["text"] == "on"
        assert here.marker.exists()
