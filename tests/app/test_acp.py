"""What `laneway acp` stands on, as it ends while its Codex is still on its way."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from laneway.app.acp import AcpService
from laneway.app.options import CodexChoice
from laneway.base.errors import EngineClosed
from laneway.base.settings import load
from laneway.codex.engine import CodexEngine
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.handshake import Greeting
from laneway.wire.peer import Peer, Raw
from tests.core.support import until

DEADLINE_S = 30


def mute_codex(folder: Path) -> tuple[Path, Path]:
    """An executable that says nothing, and the file in which it notes how it was started."""
    mute, starts = folder / "codex", folder / "starts"
    mute.write_text(f'#!/bin/sh\necho "$1" >> {starts}\nexec cat > /dev/null\n')
    mute.chmod(0o755)
    return mute, starts


def service_of(codex: Path) -> AcpService:
    settings = load({}, os.environ, codex.parent, codex.parent)
    return AcpService(CodexChoice(str(codex)), settings, Greeting("0", ("laneway",), {}), steers=False)


def nobody() -> Peer:
    """A client that says nothing and reads nothing."""

    async def serve(method: str, params: Raw, request_id: bytes) -> None: ...

    return Peer(lambda data: None, on_request=serve, on_notification=lambda method, params, frame: None)


@pytest.mark.parametrize("waits_for_codex", [True, False])
async def test_requests_that_wait_for_codex_at_the_end_start_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits_for_codex: bool
) -> None:
    """Getting ready for the first session ends with the rest, and not before: else a request that
    waits for the same Codex would start one of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    mute, starts = mute_codex(tmp_path)
    keeper = service_of(mute)
    async with asyncio.timeout(DEADLINE_S):
        agent = await keeper.engage(EditorClient(), nobody())
        engine = agent._shared.engine
        assert isinstance(engine, CodexEngine)
        if waits_for_codex:
            await until(starts.exists)
        waiting = [asyncio.ensure_future(engine.link()) for _ in range(2)]
        closing = asyncio.ensure_future(keeper.aclose())
        while not closing.done():
            waiting.append(asyncio.ensure_future(engine.call("config/read")))
            await asyncio.sleep(0)
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(each) for each in outcomes} == {EngineClosed}
    assert (starts.read_text().split() if starts.exists() else []).count("app-server") <= 1
