"""The argument `engine` of `codex`: who works, what is refused, and what the lists tell of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import BinaryError, RemoteError
from laneway.core.engines import MakeEngine
from laneway.core.offers import Offers
from laneway.doors.mcp.definitions import definitions
from laneway.doors.mcp.names import AGENTS
from laneway.doors.mcp.presets import Preset
from laneway.testing.engine import HandEngine, HandThread
from tests.core.support import until
from tests.doors.mcp.hand import Client, Message, Place, place

CLAUDE = Offers(steering=True, images=True, forks=True, sandboxes=("read-only",), approvals=("on-request",))


class Scene:
    """A server with two engines, and a client of it."""

    def __init__(self, home: Place, client: Client, claude: HandEngine) -> None:
        self.home = home
        self.client = client
        self.claude = claude

    async def begin(self, **arguments: Any) -> tuple[HandThread, Any]:
        """A call that runs on Claude: its thread, and its answer to come."""
        call = self.client.start("codex", prompt="hello", engine="claude", **arguments)
        await until(lambda: any(thread.turn_id for thread in self.claude.threads.values()))
        (thread,) = [thread for thread in self.claude.threads.values() if thread.turn_id]
        return thread, call

    async def session(self) -> tuple[str, HandThread]:
        thread, call = await self.begin()
        thread.end(text="hi")
        result = await call
        return result["agent_id"], thread

    async def refusal(self, **arguments: Any) -> RemoteError:
        with pytest.raises(RemoteError) as refused:
            await self.client.tool("codex", **{"prompt": "hello", "engine": "claude", **arguments})
        return refused.value


@asynccontextmanager
async def scene(tmp_path: Path, make: MakeEngine | None = None, **options: Any) -> AsyncIterator[Scene]:
    claude = HandEngine(backend="claude", shares_process=False)
    claude.offers = CLAUDE
    async with place(tmp_path, others={"claude": make or (lambda: claude)}, **options) as home:
        yield Scene(home, await home.client(), claude)


def test_the_argument_is_offered_only_where_there_is_a_choice() -> None:
    """One engine leaves every word of the tool as it was."""

    def properties(*backends: str) -> Message:
        listed = definitions(AGENTS, ("codex",), backends)
        (codex,) = [tool for tool in listed if tool["name"] == "codex"]
        schema: Message = codex["inputSchema"]["properties"]
        return schema

    assert properties("codex", "claude")["engine"]["enum"] == ["codex", "claude"]
    assert properties("codex") == properties()
    assert "engine" not in properties()


async def test_a_session_runs_on_the_engine_that_its_call_names(tmp_path: Path) -> None:
    """With an identity of its own, a reply, a place in the list, and a mark in its record."""
    async with scene(tmp_path) as here:
        agent_id, thread = await here.session()
        reply = here.client.start("codex-reply", prompt="more", agent_id=agent_id)
        await until(lambda: thread.turn_id)
        thread.end(text="done")
        assert (await reply)["content"] == "done"
        await here.home.session(here.client)
        rows = (await here.client.tool("agent_sessions"))["sessions"]
        assert {row["agent_id"]: row["backend"] for row in rows}[agent_id] == "claude"
        assert sorted(row["backend"] for row in rows) == ["claude", "codex"]
        assert sorted(row["identity"] for row in rows) == ["codex", "codex-2"]
        written = here.home.here.entries("codex")[0]
        assert (written["agent_id"], written["backend"]) == (agent_id, "claude")
        status = await here.client.tool("agent_status")
        assert status["engines"] == [{"backend": "claude", "alive": True, "ended": None, "active": 1}]


async def test_a_closed_session_is_resumed_on_its_own_engine(tmp_path: Path) -> None:
    """Also in another process, which has the record only; and on no other one."""
    async with scene(tmp_path) as here:
        agent_id, thread = await here.session()
        await here.client.tool("agent_close", agent_id=agent_id)
    async with scene(tmp_path) as here:
        refused = await here.refusal(agent_id=agent_id, engine="codex")
        assert "runs on Claude" in refused.message
        call = here.client.start("codex", prompt="again", agent_id=agent_id)
        await until(lambda: here.claude.threads and here.claude.threads[thread.info.thread_id].turn_id)
        here.claude.threads[thread.info.thread_id].end(text="back")
        assert (await call)["content"] == "back"
        assert [thread_id for thread_id, _ in here.claude.resumed] == [thread.info.thread_id]
        assert here.home.here.engine.resumed == []


async def test_the_setting_decides_for_calls_that_name_none(tmp_path: Path) -> None:
    """And a call may still name the other one."""
    async with scene(tmp_path, backend="claude") as here:
        call = here.client.start("codex", prompt="hello")
        await until(lambda: here.claude.threads)
        (thread,) = here.claude.threads.values()
        await until(lambda: thread.turn_id)
        thread.end(text="hi")
        await call
        other = here.client.start("codex", prompt="hello", engine="codex")
        await until(lambda: here.home.here.engine.threads)
        (thread,) = here.home.here.engine.threads.values()
        await until(lambda: thread.turn_id)
        thread.end(text="ho")
        assert (await other)["content"] == "ho"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"config": {"model": "x"}}, "Claude cannot take `config`, which is Codex's own. Leave it out."),
        ({"base-instructions": "x"}, "Claude cannot take `base-instructions`, which is Codex's own."),
        ({"profile": "x"}, "Claude cannot take `profile`, which is Codex's own."),
        (
            {"sandbox": "workspace-write"},
            "Claude cannot enforce the sandbox workspace-write. Take read-only, or name no sandbox.",
        ),
        (
            {"approval-policy": "never"},
            "Claude cannot keep to the approval policy never. Take on-request, or name no approval policy.",
        ),
        ({"role": "dev"}, "Claude cannot enforce the sandbox workspace-write."),
        ({"engine": "gemini"}, "There is no engine gemini here: take one of codex, claude."),
    ],
    ids=repr,
)
async def test_what_the_engine_cannot_do_is_refused_in_a_sentence(
    tmp_path: Path, arguments: dict[str, Any], sentence: str
) -> None:
    """Before anything is started, and no name stays taken."""
    async with scene(tmp_path, roles={"dev": Preset(sandbox="workspace-write", model="gpt")}) as here:
        refused = await here.refusal(**arguments)
        assert (refused.code, refused.message.startswith(sentence)) == (-32007, True), refused.message
        assert here.claude.specs == []
        assert (await here.client.tool("agent_sessions"))["sessions"] == []


async def test_an_effort_means_the_same_to_every_engine(tmp_path: Path) -> None:
    """The one key of Codex's config that a call may bring."""
    async with scene(tmp_path) as here:
        thread, call = await here.begin(config={"model_reasoning_effort": "low"})
        (spec,) = here.claude.specs
        assert spec.config == {"model_reasoning_effort": "low"}
        thread.end()
        await call


async def test_what_is_meant_for_codex_does_not_reach_the_other_engine(tmp_path: Path) -> None:
    """Models, config and instructions of the server's own settings; what means the same everywhere does."""
    extra = tmp_path / "extra.md"
    extra.write_text("Be kind.")
    defaults: dict[str, Any] = {
        "model": "gpt-5",
        "config": {"features": {"x": True}},
        "reasoning_effort": "high",
        "native": {"experimentalRawEvents": True},
        "sandbox": "read-only",
        "extra_instructions_file": extra,
    }
    async with scene(tmp_path, **defaults) as here:
        thread, call = await here.begin(**{"developer-instructions": "Be brief."})
        (spec,) = here.claude.specs
        assert (spec.model, spec.config, spec.native) == (None, {}, {})
        assert (spec.sandbox, spec.developer_instructions) == ("read-only", "Be brief.\n\nBe kind.")
        thread.end()
        await call


async def test_a_program_that_is_missing_is_told_as_such(tmp_path: Path) -> None:
    """The engine is made when it is first asked for."""

    def missing() -> HandEngine:
        raise BinaryError("Claude Code was not found: install it.")

    async with scene(tmp_path, missing) as here:
        refused = await here.refusal()
        assert (refused.code, refused.message) == (-32005, "Claude Code was not found: install it.")


async def test_the_death_of_its_process_is_told_and_the_next_reply_goes_on(tmp_path: Path) -> None:
    """No reconnecting: it was this session's own process. Others do not notice."""
    async with scene(tmp_path) as here:
        agent_id, thread = await here.session()
        _, codex = await here.home.session(here.client)
        call = here.client.start("codex-reply", prompt="more", agent_id=agent_id)
        await until(lambda: thread.turn_id)
        thread.die("killed by SIGKILL")
        with pytest.raises(RemoteError) as lost:
            await call
        assert lost.value.code == -32005
        assert lost.value.message.startswith(
            "Claude ended unexpectedly: killed by SIGKILL. Call codex-reply:"
        )
        assert "Reconnect" not in lost.value.message
        assert here.home.here.sessions.find("me", thread_id=codex.info.thread_id).state == "idle"
        again = here.client.start("codex-reply", prompt="again", agent_id=agent_id)
        await until(lambda: here.claude.threads[thread.info.thread_id].turn_id)
        here.claude.threads[thread.info.thread_id].end(text="back")
        assert (await again)["content"] == "back"
