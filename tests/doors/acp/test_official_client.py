"""The official Python SDK's client against `laneway acp`: somebody else's reading of the protocol."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    CreateElicitationResponse,
    DeniedOutcome,
    Implementation,
    RequestPermissionResponse,
)

from tests.doors.acp.support import DEADLINE_S, Stage, stage


class Editor:
    """A client as the SDK wants one."""

    def __init__(self, allows: bool) -> None:
        self.allows = allows
        self.updates: list[Any] = []
        self.asked: list[Any] = []

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **kwargs: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        wanted = "allow_once" if self.allows else "reject_once"
        option = next((option for option in options if option.kind == wanted), None)
        if option is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=option.option_id)
        )

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)

    async def create_elicitation(self, message: str, mode: Any, **kwargs: Any) -> CreateElicitationResponse:
        raise RequestError.method_not_found("elicitation/create")

    async def complete_elicitation(self, elicitation_id: str, **kwargs: Any) -> None:
        raise AssertionError("nothing was elicited")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        raise AssertionError(f"an unsolicited {method}")

    def on_connect(self, conn: Any) -> None:
        pass

    def text(self) -> str:
        chunks = [each for each in self.updates if each.session_update == "agent_message_chunk"]
        return "".join(chunk.content.text for chunk in chunks)

    def kinds(self) -> set[str]:
        return {each.session_update for each in self.updates}


@asynccontextmanager
async def connected(here: Stage, editor: Editor) -> AsyncIterator[ClientSideConnection]:
    """The SDK starts us, as an editor would."""
    words = (sys.executable, "-m", "laneway", "acp")
    spawned = spawn_agent_process(
        editor,  # type: ignore[arg-type]  # it offers neither files nor terminals, and says so
        *words,
        env=here.environment,
        cwd=here.work,
        use_unstable_protocol=True,
    )
    async with asyncio.timeout(DEADLINE_S), spawned as (connection, _):
        hello = await connection.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(),
            client_info=Implementation(name="sdk", version="0"),
        )
        assert hello.protocol_version == 1
        assert hello.agent_capabilities is not None
        assert hello.agent_capabilities.load_session
        assert hello.auth_methods
        yield connection


async def test_the_official_client_talks_and_sees_output_and_edits(tmp_path: Path) -> None:
    """Its own models accept all that we send: text, thoughts, plans, commands, edits, usage."""
    editor = Editor(allows=True)
    async with stage(tmp_path) as here, connected(here, editor) as agent:
        session = await agent.new_session(cwd=str(here.work), mcp_servers=[])
        assert session.config_options
        await agent.set_session_mode(session_id=session.session_id, mode_id="code")
        lines = ("%think Hm.", "%run echo visible", "%patch new.txt hello", "%say Done.")
        answer = await agent.prompt(session_id=session.session_id, prompt=[text_block("\n".join(lines))])
        assert answer.stop_reason == "end_turn"
        assert editor.text() == "Done."
        assert (here.work / "new.txt").read_text() == "hello\n"
        shown = "".join(each.model_dump_json() for each in editor.updates)
        assert "visible" in shown
        assert {"tool_call", "tool_call_update", "agent_thought_chunk", "usage_update"} <= editor.kinds()


async def test_the_official_client_is_asked_and_its_no_is_a_no(tmp_path: Path) -> None:
    """A command that wants out of the sandbox, granted by one editor and declined by another."""
    async with stage(tmp_path) as here:
        for allows in (True, False):
            editor = Editor(allows)
            async with connected(here, editor) as agent:
                session = await agent.new_session(cwd=str(here.work), mcp_servers=[])
                target = here.work / f"allowed-{allows}"
                words = text_block(f"%run! touch {target}\n%say On we go.")
                answer = await agent.prompt(session_id=session.session_id, prompt=[words])
                assert answer.stop_reason == "end_turn"
                assert target.exists() is allows
                assert editor.asked


async def test_the_official_client_cancels_loads_lists_resumes_and_closes(tmp_path: Path) -> None:
    """A session outlives the process that it was made in."""
    async with stage(tmp_path) as here:
        async with connected(here, Editor(allows=True)) as agent:
            session = (await agent.new_session(cwd=str(here.work), mcp_servers=[])).session_id
            await agent.prompt(session_id=session, prompt=[text_block("%say Remember me.")])
            running = asyncio.ensure_future(
                agent.prompt(session_id=session, prompt=[text_block("%say Working.\n%hang")])
            )
            while len(here.requests) < 2:
                await asyncio.sleep(0)
            await agent.cancel(session_id=session)
            assert (await running).stop_reason == "cancelled"
            await agent.close_session(session_id=session)
        editor = Editor(allows=True)
        async with connected(here, editor) as agent:
            listed = await agent.list_sessions(cwd=str(here.work))
            assert session in [each.session_id for each in listed.sessions]
            await agent.load_session(cwd=str(here.work), session_id=session, mcp_servers=[])
            assert "Remember me." in editor.text()
            await agent.prompt(session_id=session, prompt=[text_block("%say Still here.")])
            assert editor.text().endswith("Still here.")
            await agent.close_session(session_id=session)
            await agent.resume_session(cwd=str(here.work), session_id=session, mcp_servers=[])
