"""Which sessions there are, and what becomes of one that its client closes or deletes."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from pathlib import Path

from laneway.doors.acp.history.listing import SESSIONS_A_PAGE
from laneway.doors.acp.ids import session_id, thread_id
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import Client, Stage, stage
from tests.doors.acp.test_point_03_reopened import exec_codex

NOT_FOUND = -32002


async def listed(client: Client, here: Stage) -> list[str]:
    answer = await client.ask("session/list", {"cwd": str(here.work)})
    return [each["sessionId"] for each in answer["sessions"]]


async def test_a_session_that_is_deleted_is_gone_from_every_list_and_cannot_be_loaded(
    shared: Shared,
) -> None:
    """Here, and for an adapter that starts later; one that is only closed stays."""
    async with shared.stage() as here:
        async with here.agent() as client:
            kept, deleted = await client.new(), await client.new()
            for session in (kept, deleted):
                await client.prompt(session, "%say Hello.")
            assert set(await listed(client, here)) == {kept, deleted}
            assert await client.ask("session/close", {"sessionId": kept}) == {}
            assert await client.ask("session/delete", {"sessionId": deleted}) == {}
            assert await listed(client, here) == [kept]
            assert list(here.home.rglob(f"*{thread_id(deleted)}*")) == []
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


async def test_a_session_that_is_closed_is_given_up_and_resumed_without_being_told_again(
    shared: Shared,
) -> None:
    """Its turn ends, its id means nothing any more; another adapter goes on with what was said."""
    async with shared.stage() as here, here.agent() as one, here.agent() as other:
        session = await one.new()
        await one.prompt(session, "%say Remember me.")
        running = one.start_prompt(session, "%think Hm.\n%hang")
        await one.wait_kind("agent_thought_chunk", session)
        assert await one.ask("session/close", {"sessionId": session}) == {}
        assert await running == {"stopReason": "cancelled"}
        words = {"sessionId": session, "prompt": [{"type": "text", "text": "Hello?"}]}
        assert (await one.refusal("session/prompt", words))["code"] == NOT_FOUND

        assert (await other.resume(session))["modes"]["currentModeId"] == "config"
        assert await other.prompt(session, "%say Still here.") == {"stopReason": "end_turn"}
        assert other.messages(session) == ["Still here."]
        assert other.of("user_message_chunk", session) == []
        assert "Remember me." in str(here.requests[-1]["input"])


def copy_record(here: Stage, session: str, cwd: Path, number: int) -> str:
    """The same conversation under another id and in another folder, begun as many seconds later."""
    thread = thread_id(session)
    assert thread is not None
    (path,) = here.home.glob(f"sessions/**/rollout-*{thread}.jsonl")
    text = path.read_text()
    begun = datetime.fromisoformat(json.loads(text.partition("\n")[0])["payload"]["timestamp"])
    later = begun + timedelta(seconds=number)
    copy = str(uuid.UUID(int=uuid.UUID(thread).int ^ number))
    for old, new in ((thread, copy), (str(here.work), str(cwd)), (_stamp(begun), _stamp(later))):
        text = text.replace(old, new)
    path.with_name(f"rollout-{later:%Y-%m-%dT%H-%M-%S}-{copy}.jsonl").write_text(text)
    return session_id(copy)


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}"


async def test_a_client_that_keeps_its_history_is_told_nothing_of_it_and_the_model_knows_it(
    tmp_path: Path,
) -> None:
    """JupyterLab drops what a load tells, but shows what its SDK delivers too late a second time."""
    async with stage(tmp_path) as here:
        async with here.agent() as one:
            session = await one.new()
            await one.prompt(session, "%say Remember me.")
        async with here.agent(greet=False) as again:
            await again.initialize(name="Jupyter AI")
            assert "configOptions" in await again.load(session)
            await again.prompt(session, "%say Here.")
            assert again.text(session) == "Here."
        assert "Remember me." in json.dumps(here.requests[-1]["input"])


async def test_all_threads_are_listed_and_those_of_a_folder_on_its_first_page(tmp_path: Path) -> None:
    """Whoever started them; here it is the oldest, behind more than a page of others."""
    async with stage(tmp_path) as here:
        mine = await exec_codex(here)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        others = [copy_record(here, mine, elsewhere, number) for number in range(1, SESSIONS_A_PAGE + 5)]
        async with here.agent() as client:
            assert await listed(client, here) == [mine]
            first = await client.ask("session/list", {})
            second = await client.ask("session/list", {"cursor": first["nextCursor"]})
            told = [each["sessionId"] for each in (*first["sessions"], *second["sessions"])]
            assert (len(first["sessions"]), "nextCursor" in second) == (SESSIONS_A_PAGE, False)
            assert told[-1] == mine
            assert sorted(told) == sorted((mine, *others))
