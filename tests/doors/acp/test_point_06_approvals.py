"""Point 6: approvals show what they are about, and offer exactly what Codex takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.doors.acp.golden import golden
from tests.doors.acp.support import ZED, Client, Message, Refused, Stage, select, stage, text
from tests.doors.acp.witness import choose, enable

AFTER = "%say After."
REASON = "The rehearsal asks to leave the sandbox."
NO = {"optionId": "decline", "name": "Decline and go on", "kind": "reject_once"}
STOP = {"optionId": "cancel", "name": "Decline and stop", "kind": "reject_once"}


def outside(here: Stage) -> Path:
    """A file that no session may write by itself."""
    return here.home.parent / "outside"


def picks(client: Client, *wanted: str) -> None:
    """The person's answers, in order."""
    left = list(wanted)
    client.on_permission = lambda params: select(params, left.pop(0))


def last_request(client: Client) -> Message:
    params: Message = client.asked[-1]["params"]
    return params


def outputs(here: Stage) -> str:
    """What the model was told of its tool calls last."""
    items = here.requests[-1]["input"]
    return json.dumps([item for item in items if item["type"].endswith("_call_output")][-1:])


@pytest.mark.parametrize(("name", "capabilities"), [("bare", {}), ("zed", ZED)], ids=["bare", "zed"])
async def test_a_command_is_asked_for_with_all_that_it_takes_to_decide(
    tmp_path: Path, name: str, capabilities: Message
) -> None:
    """Allowed, it runs; declined, the turn goes on; stopped, it is over; by a rule, it is for good."""
    async with stage(tmp_path) as here, here.agent(capabilities=capabilities) as client:
        session = await client.new()
        touch = "touch ../outside"
        picks(client, "decline", "cancel", "accept", "amendment-1")
        ends = []
        for _ in range(3):
            ends.append((await client.prompt(session, f"%run! {touch}\n{AFTER}"))["stopReason"])
            assert outside(here).exists() == (len(ends) == 3)
        assert ends == ["end_turn", "cancelled", "end_turn"]
        for _ in range(2):
            outside(here).unlink()
            assert await client.prompt(session, f"%run! {touch}\n{AFTER}") == {"stopReason": "end_turn"}
            assert outside(here).exists()

    assert client.messages(session) == ["After."] * 4
    statuses = [call["status"] for call in client.tool_calls(session).values()]
    assert statuses == ["failed", "failed", "completed", "completed", "completed"]
    assert len(client.asked) == 4  # by the rule, the last one was not asked for
    request = client.asked[0]["params"]
    rule = {"optionId": "amendment-1", "kind": "allow_always"}
    rule["name"] = f"Always allow `{touch}` with anything after it"
    once = {"optionId": "accept", "name": "Allow once", "kind": "allow_once"}
    assert request["options"] == [once, rule, NO, STOP]
    call = request["toolCall"]
    shown = text(call["content"])
    assert touch in shown
    assert REASON in shown
    assert str(here.work) in shown
    assert (call["kind"], call["rawInput"]["cwd"]) == ("execute", str(here.work))
    assert call["toolCallId"] == next(iter(client.tool_calls(session)))
    golden(f"point-06-approvals-{name}", client.trace(without=("usage_update",)))


async def test_a_patch_is_asked_for_with_its_diff(tmp_path: Path) -> None:
    """And allowed once, declined, stopped, or allowed for these files and this session."""
    async with stage(tmp_path) as here, here.agent() as client:
        session = await client.new()
        await choose(client, session, "mode", "ask")
        file = here.work / "a.txt"
        picks(client, "decline", "accept", "cancel", "acceptForSession")
        await client.prompt(session, f"%patch a.txt x\\ny\n{AFTER}")
        assert not file.exists()
        await client.prompt(session, f"%patch a.txt x\\ny\n{AFTER}")
        assert file.read_text() == "x\ny\n"
        edit = f"%edit a.txt x => z\n{AFTER}"
        assert await client.prompt(session, edit) == {"stopReason": "cancelled"}
        assert file.read_text() == "x\ny\n"
        await client.prompt(session, edit)
        await client.prompt(session, f"%edit a.txt y => w\n{AFTER}")
        assert file.read_text() == "z\nw\n"

    assert len(client.asked) == 4  # for the session: the last was not asked for
    params = client.asked[2]["params"]
    assert [option["name"] for option in params["options"]] == [
        "Allow once",
        "Allow edits of these files for this session",
        "Decline and go on",
        "Decline and stop",
    ]
    (diff,) = [part for part in params["toolCall"]["content"] if part["type"] == "diff"]
    assert (diff["path"], diff["oldText"], diff["newText"]) == (str(file), "x\ny\n", "z\ny\n")
    assert params["toolCall"]["locations"] == [{"path": str(file), "line": 1}]
    golden("point-06-approvals-patch", client.trace(without=("usage_update",)))


async def test_a_wish_for_permissions_is_granted_for_a_turn_or_not_at_all(tmp_path: Path) -> None:
    """What is granted holds for real; what is declined is told to the model, and the turn goes on."""
    async with stage(tmp_path) as here:
        enable(here, "request_permissions_tool")
        folder = here.home.parent
        wish = {"reason": "To write there.", "permissions": {"file_system": {"write": [str(folder)]}}}
        touch = "touch ../outside 2>&- || echo refused"
        prompt = f"%tool request_permissions {json.dumps(wish)}\n%run {touch}\n{AFTER}"
        async with here.agent() as client:
            session = await client.new()
            await choose(client, session, "mode", "code")
            picks(client, "decline", "accept")
            assert await client.prompt(session, prompt) == {"stopReason": "end_turn"}
            assert not outside(here).exists()
            assert await client.prompt(session, prompt) == {"stopReason": "end_turn"}
            assert outside(here).exists()
    (first, second) = [each["params"] for each in client.asked]
    assert [option["optionId"] for option in first["options"]] == ["accept", "acceptForSession", "decline"]
    shown = text(first["toolCall"]["content"])
    assert "To write there." in shown
    assert str(folder) in shown
    assert client.open_tool_calls() == {}
    assert first["toolCall"]["toolCallId"] != second["toolCall"]["toolCallId"]
    golden("point-06-approvals-permissions", client.trace(without=("usage_update",)))


async def test_what_codex_does_not_list_is_not_offered(tmp_path: Path) -> None:
    """A command that wants more than its sandbox: once, or not; no rule and no session."""
    async with stage(tmp_path) as here:
        enable(here, "exec_permission_approvals")
        more = {"file_system": {"write": [str(here.home.parent)]}}
        words = {"cmd": "touch ../outside", "login": False, "justification": "To write there."}
        words |= {"sandbox_permissions": "with_additional_permissions", "additional_permissions": more}
        async with here.agent() as client:
            session = await client.new()
            await choose(client, session, "mode", "code")
            picks(client, "decline", "accept")
            for is_there in (False, True):
                await client.prompt(session, f"%tool exec_command {json.dumps(words)}\n{AFTER}")
                assert outside(here).exists() == is_there
    options = [[option["optionId"] for option in each["params"]["options"]] for each in client.asked]
    assert options == [["accept", "decline", "cancel"]] * 2


async def test_a_client_that_does_not_choose_has_not_allowed(tmp_path: Path) -> None:
    """Cancelled stops, an error and nonsense decline; each is told to the person who may not know."""
    async with stage(tmp_path) as here, here.agent() as client:
        session = await client.new()
        command = f"%run! touch ../outside\n{AFTER}"
        assert await client.prompt(session, command) == {"stopReason": "cancelled"}
        client.on_permission = lambda params: Refused({"code": -32603, "message": "Not today."})
        assert await client.prompt(session, command) == {"stopReason": "end_turn"}
        client.on_permission = lambda params: None
        going = client.start_prompt(session, command)
        asked = await client.wait_heard(lambda message: message in client.asked[2:])
        own = {"outcome": {"outcome": "selected", "optionId": "of my own"}}
        client.send({"jsonrpc": "2.0", "id": asked["id"], "result": own}, lint=False)
        assert await going == {"stopReason": "end_turn"}
        assert not outside(here).exists()
        assert "rejected" in outputs(here)
    assert client.messages(session, "agent_thought_chunk") == [
        "Nobody answered, so the command was declined.\n\n",
        "Your editor could not ask you, so the command was declined.\n\n",
        "Nobody answered, so the command was declined.\n\n",
    ]
