"""The official Python client over HTTP: both eras, questions, progress, several clients on one hub."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from laneway.base.clock import LoopClock
from laneway.core.hub import Hub
from laneway.testing.rehearse import rehearsal
from tests.doors.mcp.http_support import OTHER_TOKEN, TOKEN, Bench, Place, dropin, serving

ERAS = pytest.mark.parametrize("era", ["legacy", "auto", "2026-07-28"])


@asynccontextmanager
async def client(place: Place, era: str, token: str = TOKEN, **more: Any) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as web:
        transport = streamable_http_client(place.url, http_client=web)
        async with Client(transport, mode=era, **more) as connected:
            yield connected


@ERAS
async def test_the_official_client_lists_and_calls(era: str) -> None:
    """In the era that it was told, or that it chose."""
    async with serving(Bench().server) as place, client(place, era) as peer:
        assert peer.protocol_version == ("2025-11-25" if era == "legacy" else "2026-07-28")
        assert "echo" in [tool.name for tool in (await peer.list_tools()).tools]
        result = await peer.call_tool("echo", {"ü": "世界"})
        assert isinstance(result.content[0], mcp_types.TextContent)
        assert json.loads(result.content[0].text) == {"ü": "世界"}


async def test_the_official_client_comes_back_for_an_answer_after_a_lost_connection() -> None:
    """By itself, because our streams have event ids."""
    bench = Bench()
    async with serving(bench.server) as place:
        lost = asyncio.Event()

        class Losing(httpx2.AsyncHTTPTransport):
            """Breaks the response of the call after its first event."""

            async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
                response = await super().handle_async_request(request)
                if b"tools/call" in request.content if request.method == "POST" else False:
                    return httpx2.Response(200, headers=response.headers, stream=Broken(response, lost))
                return response

        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30, transport=Losing()) as web:
            transport = streamable_http_client(place.url, http_client=web)
            async with Client(transport, mode="legacy") as peer, asyncio.TaskGroup() as group:
                calling = group.create_task(peer.call_tool("wait", {"aloud": True}))
                await lost.wait()
                bench.release.set()
                result = await calling
        assert isinstance(result.content[0], mcp_types.TextContent)
        assert result.content[0].text == "released"


class Broken(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response, lost: asyncio.Event) -> None:
        self._response = response
        self._lost = lost

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = b""
        async for chunk in self._response.stream:  # type: ignore[union-attr]
            yield chunk
            seen += chunk
            if b"test/event" in seen:
                break
        await self._response.aclose()
        self._lost.set()
        raise httpx2.ReadError("the connection was lost")

    async def aclose(self) -> None:
        await self._response.aclose()


@ERAS
async def test_codex_works_over_http_with_progress_and_a_question(era: str) -> None:
    """The real Codex behind the door, a scripted model behind it; the answer to its question counts."""
    asked: list[Any] = []
    steps: list[str | None] = []

    async def elicit(context: Any, params: Any) -> mcp_types.ElicitResult:
        asked.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={})

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async with rehearsal() as stage, Hub(stage.engine, LoopClock()) as hub:
        server = dropin(hub, LoopClock(), stage.work, approval_policy="on-request", sandbox="read-only")
        async with serving(server, clock=LoopClock()) as place:
            async with client(place, era, elicitation_callback=elicit) as peer:
                prompt = "%run! touch made.txt\n%say all done"
                result = await peer.call_tool("codex", {"prompt": prompt}, progress_callback=on_progress)
                assert isinstance(result.structured_content, dict)
                thread_id = result.structured_content["threadId"]
            assert len(asked) == 1
            assert "touch made.txt" in asked[0]
            assert (stage.work / "made.txt").exists()
            assert "Codex has begun." in steps
            async with client(place, era) as again:
                reply = await again.call_tool(
                    "codex-reply", {"threadId": thread_id, "prompt": "%say still here"}
                )
                assert isinstance(reply.structured_content, dict)
                assert reply.structured_content == {"threadId": thread_id, "content": "still here"}
            async with client(place, era, OTHER_TOKEN) as stranger:
                refused = await stranger.call_tool("codex-reply", {"threadId": thread_id, "prompt": "hello"})
                assert refused.is_error
