"""Point 7: an edit is shown while the model still writes it."""

from __future__ import annotations

from itertools import pairwise

from tests.doors.acp.answerers import odd_model
from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import Client, Message, text
from tests.doors.acp.telling import last_call, story, told

POEM = "!patch *** Begin Patch\\n*** Add File: poem.txt\\n" + "+once upon a time\\n" * 40 + "*** End Patch"
LINES = [f"line {number} of a poem that is long\n" for number in range(1, 21)]
DRAFT = "!draft *** Begin Patch\n*** Add File: draft.txt\n" + "".join(f"+{line}" for line in LINES)
DRAFT = DRAFT.replace("\n", "\\n")
MISFIT = "!patch *** Begin Patch\\n*** Update File: a.txt\\n@@\\n-not there\\n+new" + " words" * 60
MISFIT += "\\n*** End Patch"


def new_text(body: Message) -> str:
    """Of an update that shows an edit; empty for all others."""
    return "".join(part.get("newText", "") for part in body["content"]) if "toolCallId" in body else ""


async def edited(client: Client, prompt: str) -> tuple[Message, list[Message]]:
    """The call of an edit that nobody is asked about, and all that was said of it."""
    session = await client.new()
    await client.ask("session/set_mode", {"sessionId": session, "modeId": "code"})
    assert await client.prompt(session, prompt) == {"stopReason": "end_turn"}
    call = last_call(client, session)
    return call, told(client, call["toolCallId"])


async def test_a_patch_is_shown_as_it_grows_and_ends_whether_it_fits_or_not(shared: Shared) -> None:
    """Begun with its first lines, complete at the end; one that Codex never applies has failed."""
    async with shared.stage(answerer=odd_model()) as here:
        (here.work / "a.txt").write_text("old\n")
        async with here.agent() as client:
            call, updates = await edited(client, POEM)
            shown = [update["content"][0]["newText"] for update in updates if "content" in update]
            assert len(shown) > 1
            assert all(later.startswith(sooner) for sooner, later in pairwise(shown))
            assert shown[-1] == (here.work / "poem.txt").read_text()
            assert (call["title"], call["status"]) == ("Edit poem.txt (+40 −0)", "completed")

            call, _ = await edited(client, MISFIT)
            assert (call["status"], text(call["content"][-1])) == ("failed", "These changes were not made.")
            assert client.open_tool_calls() == {}
    golden("point-07-edits-live", story(client))


async def test_what_the_model_has_written_of_a_patch_is_shown_before_it_has_written_all(
    shared: Shared,
) -> None:
    """It never comes to the end, so nothing was told because of that; cancelled, the call ends."""
    async with shared.stage(answerer=odd_model()) as here, here.agent() as client:
        session = await client.new()
        going = client.start_prompt(session, DRAFT)
        begun = await client.wait_kind("tool_call", session)
        some = new_text(begun.body)
        more = await client.wait_update(lambda each: len(new_text(each.body)) > len(some))
        assert "".join(LINES).startswith(some)
        assert "".join(LINES).startswith(new_text(more.body))
        assert last_call(client, session)["status"] == "in_progress"
        assert not going.done()
        client.cancel(session)
        assert await going == {"stopReason": "cancelled"}
        assert client.open_tool_calls() == {}
        assert not (here.work / "draft.txt").exists()
