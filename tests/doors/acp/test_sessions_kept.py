"""What becomes of a session that its client closes or deletes."""

from __future__ import annotations

from pathlib import Path

from tests.doors.acp.support import Client, Stage, stage

NOT_FOUND = -32002


async def listed(client: Client, here: Stage) -> list[str]:
    answer = await client.ask("session/list", {"cwd": str(here.work)})
    return [each["sessionId"] for each in answer["sessions"]]


async def test_a_session_that_is_deleted_is_gone_from_every_list_and_cannot_be_loaded(
    tmp_path: Path,
) -> None:
    """Here, and for an adapter that starts later; one that is only closed stays."""
    async with stage(tmp_path) as here:
        async with here.agent() as client:
            kept, deleted = await client.new(), await client.new()
            for session in (kept, deleted):
                await client.prompt(session, "%say Hello.")
            assert set(await listed(client, here)) == {kept, deleted}
            assert await client.ask("session/close", {"sessionId": kept}) == {}
            assert await client.ask("session/delete", {"sessionId": deleted}) == {}
            assert await listed(client, here) == [kept]
            for method in ("session/prompt", "session/close"):
                params = {"sessionId": deleted, "prompt": [{"type": "text", "text": "Hello?"}]}
                error = await client.refusal(method, params, lint=False)
                assert error["code"] == NOT_FOUND
        async with here.agent() as client:
            assert await listed(client, here) == [kept]
            params = {"sessionId": deleted, "cwd": str(here.work), "mcpServers": []}
            assert (await client.refusal("session/load", params))["code"] == NOT_FOUND
            await client.load(kept)
            assert client.text(kept) == "Hello."
