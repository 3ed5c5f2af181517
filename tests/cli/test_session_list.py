"""`laneway sessions` before a person: every session, from wherever it was started, on one line each."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from laneway.cli.session_list import KnownSession
from laneway.cli.session_names import short_id
from laneway.cli.session_table import table
from laneway.terminal import Style
from laneway.testing.terminal import Terminal, terminal
from tests.cli.ask.support import given
from tests.cli.support import LANEWAY, laneway
from tests.cli.watching import places, watching
from tests.doors.acp import support as acp
from tests.doors.mcp import support as mcp
from tests.doors.stage import Scene, scene


def own(here: Scene, run: Path) -> dict[str, str]:
    """Where servers and terminals of this test meet, and no others."""
    return {**places(run), "ATM_HOME": str(here.state), "CODEX_HOME": str(here.home), "TZ": "Asia/Tokyo"}


async def listed(env: dict[str, str], *words: str) -> list[dict[str, Any]]:
    ran = await laneway("sessions", "--json", *words, env=env)
    assert ran.code == 0, ran.err
    found: list[dict[str, Any]] = json.loads(ran.out)["sessions"]
    return found


@asynccontextmanager
async def on_screen(
    *words: str, env: dict[str, str], cwd: Path, columns: int = 160
) -> AsyncIterator[Terminal]:
    async with terminal([*LANEWAY, *words], env=given(**env), cwd=cwd, columns=columns) as screen:
        yield screen


async def test_sessions_of_servers_of_ask_and_of_editors_are_in_one_list(tmp_path: Path, run: Path) -> None:
    """With what was asked first, as Codex wrote it down; `--from` chooses."""
    async with scene(tmp_path) as parts:
        here = mcp.Stage(*parts)
        env = own(here, run)
        async with here.server("mcp", env=env) as client:
            await client.content("codex", identity="ann", prompt="%say from ann\nand\x1b[31m red")
        asked = await laneway("ask", "-C", str(here.work), "%say from ask", env=env)
        assert asked.code == 0, asked.err
        async with acp.Stage(*parts).agent(env=env) as editor:
            session = await editor.new()
            await editor.prompt(session, "%say from the editor")
        found = {each["source"]: each for each in await listed(env)}
        assert {name: (each["first_prompt"], each["turns"]) for name, each in found.items()} == {
            "mcp": ("%say from ann\nand\x1b[31m red", 1),
            "ask": ("%say from ask", 1),
            "editor": ("%say from the editor", 1),
        }
        assert found["editor"]["session_id"] == session
        assert {each["state"] for each in found.values()} == {"closed"}
        assert all(each["last_active"].endswith("Z") and each["tokens"] for each in found.values())
        assert [each["source"] for each in await listed(env, "--from", "ask")] == ["ask"]
        assert [each["source"] for each in await listed(env, "--identity", "ann")] == ["mcp"]
        async with on_screen("sessions", env=env, cwd=tmp_path) as screen:
            assert (await screen.wait_end()).code == 0
            rows = {row.split()[1]: row for row in screen.rows if row}
        assert "%say from ann and\\x1b[31m red" in rows["mcp"]
        assert rows["editor"].startswith(short_id(session))
        assert all("  closed  " in rows[source] and "  today " in rows[source] for source in found)


async def test_a_session_with_an_open_question_waits_for_you(tmp_path: Path, run: Path) -> None:
    """Another works meanwhile, and a third is idle: the processes themselves say so."""
    async with mcp.stage(tmp_path) as here:
        env = own(here, run)
        async with here.server("mcp", capabilities=mcp.FORMS, env=env) as client:
            client.on_ask = lambda message: None
            await client.content("codex", identity="idler", prompt="%say hi")
            asking = client.start("codex", identity="asker", sandbox="read-only", prompt="%run! touch x")
            await client.wait_heard(lambda message: message["method"] == "elicitation/create")
            working = client.start("codex", identity="worker", prompt="%hang")
            await client.wait_heard(
                lambda message: mcp.event_kind(message) == "user_message" and "%hang" in str(message)
            )
            states = {each["identity"]: each["state"] for each in await listed(env)}
            assert states == {"idler": "idle", "asker": "waits for you", "worker": "working"}
            async with on_screen("sessions", env=env, cwd=tmp_path) as screen:
                await screen.wait_end()
                assert "asker" in next(row for row in screen.rows if "waits for you" in row)
            async with watching("idler", env=env) as there:
                assert "idler  idle  1 turn  " in there.err
            for call in (asking, working):
                call.cancel()


async def test_the_list_fits_the_terminal_however_narrow(tmp_path: Path, run: Path) -> None:
    """One row each; state and time are always there."""
    async with mcp.stage(tmp_path) as here:
        env = own(here, run)
        async with here.server("mcp", env=env) as client:
            for name in ("ann", "a-name-that-is-as-long-as-a-name-may-be-without-being-cut"):
                await client.content("codex", identity=name, prompt="%say hi\n" + "世界 " * 100)
        for columns in (200, 80, 60, 40):
            async with on_screen("sessions", env=env, cwd=tmp_path, columns=columns) as screen:
                await screen.wait_end()
                rows = [row for row in screen.rows if row]
                assert len(rows) == 3, screen.text
                assert any("…" in row for row in rows[1:])
                assert all("closed" in row and "today " in row for row in rows[1:])


def test_namesakes_keep_their_ids_in_a_narrow_table() -> None:
    """What is shown can be typed."""
    now = datetime(2026, 11, 18, 9, 30).astimezone()
    known = [
        KnownSession(source="mcp", name="a-long-name", agent_id=f"agent-{end}", status="stale", state="stale")
        for end in ("0123456789abcdef", "0123456789abcd00")
    ]
    lines = table(known, now=now, columns=24, style=Style(io.StringIO()))
    assert [line.split()[-2] for line in lines[1:]] == ["89abcdef", "89abcd00"]
    assert all(len(line) <= 24 for line in lines)
