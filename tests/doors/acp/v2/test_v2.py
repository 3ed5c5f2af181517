"""The draft of ACP 2, behind its flag: the real Codex, and every message held against the draft's schema."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from tests.doors.acp.draft import FULL, DraftClient, draft
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import Message, Refused, Stage, select, stage
from tests.doors.acp.witness import codex_of, refused
from tests.wire.support import linux_only

AFTER = "%say After."
ASK = "%ask Which colour? Red | Green\n%say Thanks."


def answers(here: Stage) -> Any:
    """What the model was told."""
    outputs = [item for item in here.requests[-1]["input"] if item["type"] == "function_call_output"]
    return json.loads(outputs[-1]["output"])["answers"]


def option(options: list[Message], config_id: str) -> Message:
    (found,) = [each for each in options if each["configId"] == config_id]
    return found


# ── the handshake ──────────────────────────────────────────────────────────


async def test_an_offer_of_two_is_taken_only_with_the_flag(tmp_path: Path) -> None:
    """Without it the answer is protocol 1, in its own words, and its sessions work; with it, a 3 gets 2."""
    async with stage(tmp_path) as here:
        async with here.agent(greet=False) as plain:
            hello = await plain.initialize(version=2)
            assert (hello["protocolVersion"], "agentCapabilities" in hello) == (1, True)
            assert await plain.prompt(await plain.new(), "%say Hi.") == {"stopReason": "end_turn"}
        async with here.agent("--v2") as older:
            assert older.hello["protocolVersion"] == 1
            assert await older.prompt(await older.new(), "%say Hi.") == {"stopReason": "end_turn"}
        async with here.agent("--v2", greet=False, kind=DraftClient) as newer:
            assert isinstance(newer, DraftClient)
            hello = await newer.initialize(FULL, version=3)
    assert hello["protocolVersion"] == 2
    assert hello["info"]["name"] == "laneway"
    assert set(hello["capabilities"]["session"]) == {"prompt", "mcp", "delete", "additionalDirectories"}
    assert [each["type"] for each in hello["authMethods"]] == ["agent", "agent", "agent", "terminal"]


async def test_methods_of_protocol_1_are_not_there(shared: Shared) -> None:
    """Neither are those of the draft that Codex cannot honour."""
    async with shared.stage() as here, draft(here) as client:
        session = await client.open()
        for method in ("session/load", "session/set_mode", "session/fork", "authenticate", "logout"):
            error = await client.refusal(method, {"sessionId": session}, lint=False)
            assert error["code"] == -32601
        for method, what in (("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")):
            error = await client.refusal(method, {"sessionId": session, what: "x"})
            assert error["code"] == -32601


# ── prompts ────────────────────────────────────────────────────────────────


async def test_a_prompt_is_accepted_then_running_then_idle_with_its_reason(shared: Shared) -> None:
    """The answer names the message, which is echoed; thoughts and text come as chunks."""
    async with shared.stage() as here, draft(here) as client:
        session = await client.open()
        assert [each["type"] for each in client.opened["new"]["availableCommands"]][:1] == ["command"]
        assert await client.turn(session, "%think Hm.\n%say Hello.") == {
            "state": "idle",
            "stopReason": "end_turn",
        }
        (message_id,) = client.whole("user_message")
        accepted = await client.prompt(session, "%say Again.")
        await client.wait_state("idle", 1)
    assert client.whole("user_message")[accepted["messageId"]] == "%say Again."
    assert accepted["messageId"] != message_id
    assert client.messages(session) == ["Hello.", "Again."]
    assert "Hm." in client.text(session, "agent_thought_chunk")
    assert [each["state"] for each in client.states()] == ["running", "idle"] * 2


async def test_a_prompt_that_must_wait_is_accepted_when_its_turn_comes(shared: Shared) -> None:
    """In order, each with its own end; withdrawn before that, it is in no conversation."""
    async with shared.stage() as here, draft(here) as client:
        session = await client.open()
        await client.prompt(session, "%hang")
        await client.wait_state("running")
        second = client.start_prompt(session, "%say Second.")
        third = client.start_prompt(session, "%say Third.")
        client.cancel_request(client.last_id)
        assert (await refused(third))["code"] == -32800
        assert not second.done()
        client.cancel(session)
        assert (await refused(second))["code"] == -32800
        assert await client.wait_state("idle") == {"state": "idle", "stopReason": "cancelled"}
        assert (await client.turn(session, "%say Fine."))["stopReason"] == "end_turn"
    assert list(client.whole("user_message").values()) == ["%hang", "%say Fine."]
    assert client.messages(session) == ["Fine."]


async def test_by_setting_a_prompt_goes_into_the_running_turn(shared: Shared) -> None:
    """And is accepted when the turn has taken it: one turn, one end."""
    async with shared.stage() as here, draft(here, "--steer") as client:
        session = await client.open()
        gate = here.work / "gate"
        first = client.start_prompt(session, f"%run while [ ! -e {gate} ]; do sleep 0.05; done\n{AFTER}")
        await client.wait_kind("tool_call_update")
        second = client.start_prompt(session, "%say Steered.")
        await first
        gate.touch()
        accepted = await second
        await client.wait_state("idle")
    assert client.whole("user_message")[accepted["messageId"]] == "%say Steered."
    assert [each["state"] for each in client.states()] == ["running", "idle"]


async def test_a_failure_is_an_error_stop_and_the_session_goes_on(shared: Shared) -> None:
    """The prompt was accepted all the same; what went wrong is told with the state."""
    async with shared.stage() as here, draft(here) as client:
        session = await client.open()
        ended = await client.turn(session, "%fail 400 No such thing.")
        assert ended["stopReason"] == "error"
        assert ended["error"]["data"]["source"] == "codex"
        assert "No such thing." in ended["error"]["message"]
        assert (await client.turn(session, "%say Fine."))["stopReason"] == "end_turn"
        wrong = [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]
        params = {"sessionId": session, "prompt": wrong}
        assert (await client.refusal("session/prompt", params))["code"] == -32602
    assert [each["state"] for each in client.states()] == ["running", "idle"] * 2


async def test_a_command_is_a_message_of_its_own(shared: Shared) -> None:
    """It never reaches the model, and its answer is a message in one piece."""
    async with shared.stage() as here, draft(here) as client:
        session = await client.open()
        assert (await client.turn(session, "/help"))["stopReason"] == "end_turn"
        assert here.requests == []
        assert (await client.turn(session, "/plan %say Planned."))["stopReason"] == "end_turn"
    assert list(client.whole("user_message").values()) == ["/help", "/plan %say Planned."]
    assert "/compact" in next(iter(client.whole("agent_message").values()))
    assert client.messages(session) == ["Planned."]


# ── what Codex does ────────────────────────────────────────────────────────


async def test_what_a_command_prints_is_in_its_terminal_to_the_byte(shared: Shared) -> None:
    """The terminal is the agent's; it ends with the exit code, and so does the call."""
    script = "import sys; sys.stdout.write(''.join(f'{n} é€\\\\n' for n in range(5000))); sys.exit(3)"
    async with shared.stage() as here, draft(here) as client:
        session = await client.open()
        await client.turn(session, f'%run python3 -c "{script}"\n{AFTER}')
        ((terminal_id, terminal),) = client.terminals().items()
    assert terminal["shown"].decode() == "".join(f"{n} é€\n" for n in range(5000))
    assert (terminal["exitStatus"], terminal["cwd"]) == ({"exitCode": 3}, str(here.work))
    assert "python3" in terminal["command"]
    call = client.the_call()
    assert (call["kind"], call["status"]) == ("execute", "failed")
    assert call["content"] == [{"type": "terminal", "terminalId": terminal_id}]


async def test_an_edit_is_a_structured_change_with_a_git_patch(shared: Shared) -> None:
    """Absolute paths, one section for each file; allowed, it is done."""
    async with shared.stage() as here, draft(here) as client:
        session = await client.open()
        file = here.work / "a.txt"
        file.write_text("one\ntwo\n")
        client.on_permission = lambda params: select(params, "accept")
        await client.turn(session, f"%edit {file.name} two => 2\n{AFTER}")
        assert file.read_text() == "one\n2\n"
    call = client.the_call()
    assert call["status"] == "completed"
    (diff,) = call["content"]
    assert diff["changes"] == [{"operation": "modify", "path": str(file)}]
    assert diff["patch"] == {
        "format": "git_patch",
        "text": f"diff --git {file} {file}\n--- {file}\n+++ {file}\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
    }
    request = client.asked[0]["params"]
    assert (request["title"], request["subject"]["type"]) == ("Allow these changes?", "tool_call")
    assert request["subject"]["toolCall"]["content"] == [diff]
    assert request["subject"]["toolCall"]["toolCallId"] == call["toolCallId"]


async def test_an_approval_names_the_command_and_the_session_waits(shared: Shared) -> None:
    """Declined, the turn goes on without; allowed, it runs; meanwhile the state says who is waited for."""
    async with shared.stage() as here, draft(here) as client:
        session = await client.open()
        outside = here.home.parent / "outside"
        left = ["decline", "accept"]
        client.on_permission = lambda params: select(params, left.pop(0))
        for has_run in (False, True):
            await client.turn(session, f"%run! touch {outside}\n{AFTER}")
            assert outside.exists() == has_run
    request = client.asked[0]["params"]
    first, second = client.tool_calls().items()
    assert request["title"] == "Allow this command?"
    assert "The rehearsal asks to leave the sandbox." in request["description"]
    assert request["subject"] == {
        "type": "command",
        "command": f"touch {outside}",
        "cwd": str(here.work),
        "toolCallId": first[0],
        "terminalId": first[0],
    }
    assert (first[1]["status"], second[1]["status"]) == ("failed", "completed")
    states = ["running", "requires_action", "running", "idle"]
    assert [each["state"] for each in client.states()] == states * 2


async def test_a_question_is_a_form_or_options_or_the_next_prompt(shared: Shared) -> None:
    """The same ladder as in protocol 1, without a tool call made up for it."""
    async with shared.stage() as here:
        async with draft(here, capabilities=FULL) as client:
            client.on_elicitation = lambda params: {
                "action": "accept",
                "content": {next(iter(params["requestedSchema"]["properties"])): "Green"},
            }
            await client.turn(await client.open(), ASK)
            assert list(answers(here).values()) == [{"answers": ["Green"]}]
        async with draft(here) as client:
            client.on_permission = lambda params: select(params, "0")
            await client.turn(await client.open(), ASK)
            assert list(answers(here).values()) == [{"answers": ["Red"]}]
        assert "subject" not in client.asked[0]["params"]
        assert client.tool_calls() == {}
        async with draft(here) as client:
            client.on_permission = lambda params: Refused({"code": -32601, "message": "Method not found"})
            session = await client.open()
            assert (await client.turn(session, ASK))["stopReason"] == "end_turn"
            assert "Which colour?" in "".join(client.whole("agent_message").values())
            assert (await client.turn(session, "Green"))["stopReason"] == "end_turn"
            assert list(answers(here).values()) == [{"answers": ["Green"]}]
        assert client.messages(session) == ["Thanks."]
        assert list(client.whole("user_message").values()) == [ASK, "Green"]


async def test_a_cancel_ends_the_call_its_terminal_and_the_turn(shared: Shared) -> None:
    """Nothing stays in progress."""
    async with shared.stage() as here, draft(here) as client:
        session = await client.open()
        await client.prompt(session, "%run sleep 600")
        await client.wait_kind("tool_call_update")
        client.cancel(session)
        assert (await client.wait_state("idle"))["stopReason"] == "cancelled"
        (terminal,) = client.terminals().values()
    assert "exitStatus" in terminal
    assert client.the_call()["status"] in ("cancelled", "failed")


async def test_a_plan_has_an_id(shared: Shared) -> None:
    """It is one plan that Codex replaces."""
    async with shared.stage() as here, draft(here) as client:
        await client.turn(await client.open(), f"%plan First; Second\n{AFTER}")
    (update,) = client.of("plan_update")
    assert (update["plan"]["type"], update["plan"]["planId"]) == ("items", "plan")
    assert [(each["content"], each["status"]) for each in update["plan"]["entries"]] == [
        ("First", "in_progress"),
        ("Second", "pending"),
    ]


# ── sessions ───────────────────────────────────────────────────────────────


async def test_a_session_is_resumed_with_its_history_or_without(shared: Shared) -> None:
    """Messages keep their ids; the state comes before the answer; another cursor is refused."""
    async with shared.stage() as here:
        async with draft(here) as client:
            session = await client.open()
            accepted = await client.prompt(session, "%run echo out\n%say Said.")
            await client.wait_state("idle")
            before = client.the_call()
        async with draft(here) as later:
            await later.again(session, replayFrom={"type": "start"})
            assert later.whole("user_message") == {accepted["messageId"]: "%run echo out\n%say Said."}
            assert list(later.whole("agent_message").values()) == ["Said."]
            assert later.the_call()["toolCallId"] == before["toolCallId"]
            assert later.terminals()[before["toolCallId"]]["shown"] == b"out\n"
            assert later.states() == [{"state": "idle"}]
            assert (await later.turn(session, "%say More."))["stopReason"] == "end_turn"
        async with draft(here) as silent:
            opened = await silent.again(session)
            assert silent.states() == [{"state": "idle"}]
            assert silent.of("user_message") == silent.of("agent_message") == []
            assert option(opened["configOptions"], "mode")["currentValue"] == "config"
            where = {"sessionId": session, "cwd": str(here.work), "replayFrom": {"type": "middle"}}
            error = await silent.refusal("session/resume", where, lint=False)
            assert error["code"] == -32602


async def test_options_are_set_by_type_and_told_in_full(shared: Shared) -> None:
    """A switch is a boolean for everybody; a wrong type changes nothing."""
    async with shared.stage() as here, draft(here) as client:
        session = await client.open()
        assert option(client.opened["new"]["configOptions"], "network")["type"] == "boolean"
        mode = {"sessionId": session, "configId": "mode", "type": "id", "value": "code"}
        result = await client.ask("session/set_config_option", mode)
        assert option(result["configOptions"], "mode")["currentValue"] == "code"
        network = {"sessionId": session, "configId": "network", "type": "boolean", "value": True}
        result = await client.ask("session/set_config_option", network)
        assert option(result["configOptions"], "network")["currentValue"] is True
        types: list[Any] = ["boolean", "number", ["id"], {}, None]
        for wrong in (*({"type": each} for each in types), {"value": "none"}, {"configId": "none"}):
            error = await client.refusal("session/set_config_option", {**mode, **wrong}, lint=False)
            assert error["code"] == -32602
        await client.turn(session, "%run touch made\n%say Done.")
        assert (here.work / "made").exists()


async def test_sessions_are_listed_closed_and_deleted(tmp_path: Path) -> None:
    """Closing ends what runs before it is answered; what is not open is closed already."""
    async with stage(tmp_path) as here, draft(here) as client:
        session = await client.open()
        await client.turn(session, "%say Hello.")
        await client.prompt(session, "%hang")
        await client.wait_state("running", 1)
        held = client.start_prompt(session, "%say Held.")
        assert await client.ask("session/close", {"sessionId": session}) == {}
        assert client.states()[-1] == {"state": "idle", "stopReason": "cancelled"}
        assert (await refused(held))["code"] == -32800
        assert await client.ask("session/close", {"sessionId": session}) == {}
        error = await client.refusal("session/prompt", {"sessionId": session, "prompt": []}, lint=False)
        assert (error["code"], error["data"]["sessionId"]) == (-32002, session)
        listed = await client.ask("session/list", {})
        assert [each["sessionId"] for each in listed["sessions"]] == [session]
        assert await client.ask("session/delete", {"sessionId": session}) == {}
        assert (await client.ask("session/list", {}))["sessions"] == []


async def test_a_login_and_a_logout_go_through_auth(shared: Shared) -> None:
    """By the draft's own names; the ways are those of the handshake."""
    async with shared.stage() as here, draft(here) as client:
        assert "api-key" in [each["methodId"] for each in client.hello["authMethods"]]
        assert (await client.refusal("auth/login", {"methodId": "nonsense"}))["code"] == -32602
        assert await client.ask("auth/logout", {}) == {}


@linux_only
async def test_a_codex_that_dies_ends_the_turn_with_an_error_and_the_next_prompt_goes_on(
    shared: Shared,
) -> None:
    """Its call and its terminal have an end, too."""
    async with shared.stage() as here, draft(here) as client:
        session = await client.open()
        await client.turn(session, "%say Remember this.")
        await client.prompt(session, "%run sleep 600")
        await client.wait_kind("tool_call_update")
        os.kill(codex_of(client), signal.SIGKILL)
        ended = await client.wait_state("idle", 1)
        assert (ended["stopReason"], ended["error"]["data"]["kind"]) == ("error", "engine_lost")
        assert client.the_call()["status"] == "cancelled"
        assert all("exitStatus" in terminal for terminal in client.terminals().values())
        assert (await client.turn(session, "%say Again."))["stopReason"] == "end_turn"
    assert client.messages(session) == ["Remember this.", "Again."]
