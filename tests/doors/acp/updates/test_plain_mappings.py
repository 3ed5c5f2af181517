"""What a turn is made of, as updates: messages, thoughts, plans, usage, compactions, images, subagents."""

from __future__ import annotations

import base64
import json
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.doors.acp import mcp_tools
from tests.doors.acp.answerers import odd_model
from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, Message, Stage, stage, text
from tests.doors.acp.telling import Gates, last_call, story
from tests.doors.acp.test_point_09_mcp_results import show_all_tools
from tests.doors.acp.witness import configure, refused

PIXEL = mcp_tools.PIXEL
SEE: Message = {"type": "text", "text": "%say I see."}
CLIENTS = pytest.mark.parametrize(
    ("name", "capabilities"), [("bare", {}), ("full", FULL)], ids=["bare", "full"]
)


async def test_messages_thoughts_plans_and_usage_come_in_order_and_nothing_is_asked_of_the_model_besides(
    shared: Shared,
) -> None:
    """Each message under an id of its own; the title is the first prompt's, told once, and costs no call."""
    async with shared.stage() as here:
        async with here.agent() as client:
            session = await client.new()
            await client.prompt(session, "%think Hm.\n%say One.\n%think Well.\n%say Two.")
            await client.prompt(session, "%plan Look; Leap\n%say Planned.")
            await client.prompt(session, "%usage 5000\n%say Used.")
        assert len(here.requests) == 4  # one for each answer, two for the plan; none for a title or an end
    assert client.messages(session) == ["One.", "Two.", "Planned.", "Used."]
    assert client.messages(session, "agent_thought_chunk") == ["Hm.", "Well."]
    assert client.of("plan", session) == [
        {
            "entries": [
                {"content": "Look", "priority": "medium", "status": "in_progress"},
                {"content": "Leap", "priority": "medium", "status": "pending"},
            ]
        }
    ]
    assert client.of("usage_update", session)[-1]["used"] == 5001
    (title,) = client.of("session_info_update", session)
    assert title == {"title": "%think Hm. %say One. %think Well. %say Two."}
    golden("plain-messages", story(client, ()))


@CLIENTS
async def test_a_compaction_is_told_and_ends_also_when_it_is_cancelled(
    shared: Shared, name: str, capabilities: Message
) -> None:
    """As a compaction where the client takes them, else as a tool call."""
    kind = "compaction_update" if name == "full" else "tool_call"
    async with (
        shared.stage(answerer=odd_model()) as here,
        here.agent(capabilities=capabilities) as client,
    ):
        session = await client.new()
        await client.prompt(session, "%say Something to shorten.")
        assert await client.prompt(session, "/compact") == {"stopReason": "end_turn"}
        before = len(client.of(kind, session))
        await client.prompt(session, "!forget\n%say I shall.")
        going = client.start_prompt(session, "/compact")
        await client.wait_update(lambda each: each.kind == kind and len(client.of(kind, session)) > before)
        client.cancel(session)
        assert await going == {"stopReason": "cancelled"}
        statuses = [update["status"] for update in client.of("compaction_update", session)]
        calls = [call["status"] for call in client.tool_calls(session).values()]
    if name == "full":
        assert (statuses, calls) == (["in_progress", "completed", "in_progress", "cancelled"], [])
    else:
        assert (statuses, calls) == ([], ["completed", "failed"])
    golden(f"plain-compaction-{name}", story(client))


async def test_images_and_resources_go_to_the_model_and_images_and_searches_come_back(shared: Shared) -> None:
    """In the order of the blocks; what the model looks at is a link that an editor can open."""
    prompt: list[Message] = [
        SEE,
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}},
        {"type": "resource_link", "uri": "file:///b.txt", "name": "b"},
    ]
    async with shared.stage(answerer=odd_model()) as here, here.agent() as client:
        (here.work / "dot.png").write_bytes(base64.b64decode(PIXEL))
        session = await client.new()
        assert await client.prompt(session, prompt) == {"stopReason": "end_turn"}
        sent = here.requests[-1]["input"][-1]["content"]
        assert [part["type"] for part in sent] == ["input_text", "input_image", "input_text", "input_text"]
        assert sent[1]["image_url"] == f"data:image/png;base64,{PIXEL}"
        assert sent[2]["text"] == '[ACP_RESOURCE uri="file:///a.txt"]\ninside\n[/ACP_RESOURCE]'

        await client.prompt(session, '%tool view_image {"path": "dot.png"}\n%say Seen.')
        call, place = last_call(client, session), str(here.work / "dot.png")
        assert (call["title"], call["kind"], call["locations"]) == ("View dot.png", "read", [{"path": place}])
        assert call["content"][0]["content"]["uri"] == f"file://{place}"

        await client.prompt(session, "!search cats")
        call = last_call(client, session)
        assert (call["title"], call["kind"]) == ("Search the web for “cats”", "search")
        assert client.open_tool_calls() == {}
    golden("plain-images", story(client))


def blind(here: Stage) -> None:
    """Have Codex know one model only, which takes no images."""
    codex = here.environment["LANEWAY_CODEX_BIN"]
    listed = subprocess.run([codex, "debug", "models"], env=here.environment, capture_output=True, check=True)
    (model,) = [each for each in json.loads(listed.stdout)["models"] if each["slug"] == "gpt-5.5"]
    catalogue = here.home / "models.json"
    catalogue.write_text(json.dumps({"models": [{**model, "input_modalities": ["text"]}]}))
    configure(here, f'model_catalog_json = "{catalogue}"')


async def test_what_the_model_cannot_take_is_refused_and_never_reaches_it(tmp_path: Path) -> None:
    """Images of a model without eyes; binary files from anywhere, but a name for those that it can open."""
    image: Message = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    paper = {"blob": PIXEL, "mimeType": "application/pdf"}
    here_it_is: Message = {"type": "resource", "resource": {"uri": "file:///work/b.pdf", **paper}}
    elsewhere: Message = {"type": "resource", "resource": {"uri": "git:b.pdf", **paper}}
    hidden: Message = {
        "type": "resource",
        "resource": {"uri": "file:///a.png", "blob": PIXEL, "mimeType": "image/png"},
    }
    async with stage(tmp_path) as here:
        blind(here)
        async with here.agent() as client:
            session = await client.new()
            for block, words in (
                (image, "takes no images"),
                (hidden, "takes no images"),
                (elsewhere, "neither text nor an image"),
            ):
                error = await refused(client.start_prompt(session, [SEE, block]))
                assert error["code"] == -32602
                assert words in error["message"]
            assert here.requests == []
            assert await client.prompt(session, [SEE, here_it_is]) == {"stopReason": "end_turn"}
        assert 'uri="file:///work/b.pdf"' in str(here.requests)
        assert PIXEL not in str(here.requests)


@pytest.mark.needs("subagents")
async def test_what_a_subagent_does_is_shown_under_its_own_thread(shared: Shared) -> None:
    """Its commands are tool calls of the session; what it says is for its parent."""
    below = "%run read x < gate-0; echo from below\\n%say Said below."
    prompt = f'%tool spawn_agent {{"message": "{below}"}}\n%run read x < gate-1\n%say Said above.'
    async with shared.stage(show_all_tools) as here:
        with closing(Gates(here.work)) as gates:
            its_own, ours = gates.new(), gates.new()
            async with here.agent() as client:
                session = await client.new()
                going = client.start_prompt(session, prompt)
                begun = await client.wait_update(
                    lambda each: each.kind == "tool_call" and "from below" in each.body["title"]
                )
                its_own.go()
                done = await client.wait_update(
                    lambda each: (
                        each.body.get("toolCallId") == begun.body["toolCallId"]
                        and each.body.get("status") == "completed"
                    )
                )
                ours.go()
                assert await going == {"stopReason": "end_turn"}
                assert client.open_tool_calls() == {}
    assert text(done.body["content"]) == "```\nfrom below\n```"
    calls = client.tool_calls(session)
    threads = [call_id.split(":")[1] for call_id in calls]
    (started,) = [call for call in calls.values() if call.get("name") == "spawn_agent"]
    assert started["rawInput"]["receiverThreadIds"] == [begun.body["toolCallId"].split(":")[1]]
    assert len(set(threads)) == 2
    assert "Said below." not in client.text(session)
