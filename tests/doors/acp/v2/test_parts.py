"""The parts of protocol 2 that a real Codex seldom shows: late output, subagents, crashes, odd requests."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, cast

import msgspec
import pytest

from laneway.base.errors import RemoteError
from laneway.core.model import Accepted, Question, UserSaid
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.history.past_updates import CALL_BYTES, ReplayContext
from laneway.doors.acp.questions import permission_options
from laneway.doors.acp.updates.update_sink import UpdateListener
from laneway.doors.acp.v2 import calls, past_updates
from laneway.doors.acp.v2.pending_prompts import PendingPrompts
from laneway.doors.acp.v2.permission_request import PermissionRequestV2
from laneway.doors.acp.v2.session_state import ForegroundState
from laneway.doors.acp.v2.updates_v2 import UpdatesV2
from laneway.testing.clock import HandClock
from tests.doors.acp.asking import ITEM, TOOL
from tests.doors.acp.calls import CALL, CWD, THREAD, command, done
from tests.doors.acp.draft import DraftLint
from tests.doors.acp.hand import SESSION, Hand
from tests.doors.acp.questions.test_permission_options import asked, selected
from tests.doors.acp.questions.test_permission_options import command as asked_command

SCENE = ReplayContext(THREAD, EditorClient(), CWD)


def begun() -> DraftLint:
    lint = DraftLint()
    hello = {"protocolVersion": 2, "info": {"name": "t", "version": "1"}}
    greeted = {"protocolVersion": 2, "info": {"name": "l", "version": "1"}}
    opened = {"sessionId": SESSION, "configOptions": [], "availableCommands": []}
    for number, method, params, result in (
        (1, "initialize", hello, greeted),
        (2, "session/new", {"cwd": CWD}, opened),
    ):
        lint.check("client", {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        lint.check("agent", {"jsonrpc": "2.0", "id": number, "result": result})
    lint.assert_clean()
    return lint


def problems(*updates: Any) -> list[str]:
    """What the draft's schema and rules have against these updates of a session."""
    lint = begun()
    for update in updates:
        params = {"sessionId": SESSION, "update": update}
        lint.check("agent", {"jsonrpc": "2.0", "method": "session/update", "params": params})
    return [str(each) for each in lint.violations]


# ── calls and terminals ────────────────────────────────────────────────────


def test_what_came_late_takes_the_place_of_the_pieces() -> None:
    """A terminal can be told anew in protocol 2: nothing stands in the wrong place."""
    late = command(aggregatedOutput="one\ntwo\n", exitCode=0)
    update = calls.exited(late, THREAD, is_whole=True)
    assert base64.b64decode(update["output"]["data"]) == b"one\ntwo\n"
    assert "output" not in calls.exited(late, THREAD, is_whole=False)
    begin = calls.terminal(late, THREAD, cwd=CWD)
    assert problems(begin, calls.printed(CALL, "two\n"), update, calls.call(late, THREAD, cwd=CWD)) == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"status": "declined"}, "failed"),
        ({"status": "failed", "exitCode": 2}, "failed"),
        ({"status": "completed", "exitCode": 1}, "failed"),
        ({"status": "completed", "exitCode": 0}, "completed"),
    ],
)
def test_every_end_has_a_status_and_a_terminal_only_what_ran(fields: dict[str, Any], status: str) -> None:
    """A declined command never had anything to show."""
    ended = command(**fields)
    call = calls.call(ended, THREAD, cwd=CWD)
    assert call["status"] == status
    kinds = [part["type"] for part in call["content"]]
    assert kinds == (["content"] if fields["status"] == "declined" else ["terminal"])


def test_a_call_whose_end_nobody_tells_is_ended_with_a_reason() -> None:
    """Codex died: the terminal has exited, and the call says why."""
    left = command(ended=False)
    update = calls.ended_without(left, THREAD, "Codex ended unexpectedly.", cwd=CWD)
    assert (update["status"], update["content"][-1]["content"]["text"]) == (
        "failed",
        "Codex ended unexpectedly.",
    )
    exited = calls.exited(left, THREAD, is_whole=False)
    assert exited["exitStatus"] == {}
    assert problems(calls.terminal(left, THREAD, cwd=CWD), exited, update) == []


def test_an_older_call_is_told_within_its_budget() -> None:
    """Its terminal is cut, and says so; the newest is whole."""
    long = command(aggregatedOutput="x" * 100_000, exitCode=0)
    wide = done("fileChange", status="completed", changes=[_change(n) for n in range(200)])
    for activity in (long, wide):
        told = past_updates.updates(activity, SCENE, is_whole=False)
        assert problems(*told) == []
        assert all(len(msgspec.json.encode(update)) <= CALL_BYTES for update in told)
    shown: list[bytes] = []
    for is_whole in (True, False):
        terminal: Any = past_updates.updates(long, SCENE, is_whole=is_whole)[0]
        shown.append(base64.b64decode(terminal["output"]["data"]))
    assert shown[0] == b"x" * 100_000
    assert b"characters are left out here" in shown[1]


def _change(number: int) -> dict[str, Any]:
    return {"path": f"{CWD}/{number}.txt", "kind": {"type": "add"}, "diff": "y" * 500}


# ── states ─────────────────────────────────────────────────────────────────


def test_a_session_waits_for_a_person_only_when_nothing_else_runs() -> None:
    """Two calls, one of them asked about: it runs on; when the other ends, it waits; then it goes on."""
    told: list[Any] = []
    state = ForegroundState(told.append)
    state.become_idle("end_turn")
    state.run()
    state.add_question("q", "call-1")
    state.update(["call-1", "call-2"])
    state.update(["call-1"])
    state.remove_question("q")
    state.update([])
    state.become_idle("error", RemoteError(-32603, "Broken.", {"kind": "other"}))
    assert [each["state"] for each in told] == ["running", "requires_action", "running", "idle"]
    assert told[-1]["error"] == {"code": -32603, "message": "Broken.", "data": {"kind": "other"}}
    assert problems(*told) == []


def test_a_session_runs_again_when_its_question_is_gone_and_its_turn_is_not() -> None:
    """One question of two is no reason, nor is a call that changes; behind the turn nothing is."""
    told: list[Any] = []
    state = ForegroundState(told.append)
    state.begin_turn()
    state.add_question("q-1", None)
    state.add_question("q-2", None)
    state.become_idle("end_turn")
    state.remove_question("q-1")
    state.update(["call"])
    assert [each["state"] for each in told] == ["running", "idle"]
    state.remove_question("q-2")
    state.update(["call"])
    state.end_turn()
    state.become_idle("end_turn")
    state.update(["call"])
    assert [each["state"] for each in told] == ["running", "idle", "running", "idle"]
    assert problems(*told) == []


async def test_prompts_learn_their_ids_by_the_tickets_under_which_codex_records_them() -> None:
    """Whatever the order; what nobody of ours has sent is nobody's, and who was not taken is refused."""
    prompts = PendingPrompts()
    first = asyncio.get_running_loop().create_future()
    prompts.begin(first)
    prompts.on_turn("t-1")
    second, third, fourth = (prompts.add(ticket) for ticket in ("t-2", "t-3", "t-4"))
    second.cancel()
    recorded = (("t-1", "m-1"), ("other", "m-2"), ("t-3", "m-3"), ("t-2", "m-4"))
    assert all(prompts.is_shown(ticket) for ticket, _ in recorded)
    for ticket, message_id in recorded:
        prompts.on_recorded(ticket, message_id)
    assert (first.result(), third.result()) == ("m-1", "m-3")
    prompts.end(None)
    assert not fourth.done()
    prompts.end(RemoteError(-32603, "Too late."))
    assert isinstance(fourth.exception(), RemoteError)


async def test_prompts_learn_their_ids_in_order_from_a_codex_that_names_no_tickets() -> None:
    """One that nobody waits for any more keeps its place."""
    prompts = PendingPrompts()
    first = asyncio.get_running_loop().create_future()
    prompts.begin(first)
    prompts.on_turn("t-1")
    second, third = prompts.add("t-2"), prompts.add("t-3")
    second.cancel()
    for message_id in ("m-1", "m-2", "m-3"):
        assert prompts.is_shown(None)
        prompts.on_recorded(None, message_id)
    assert (first.result(), third.result()) == ("m-1", "m-3")


@pytest.mark.parametrize("tickets", [("t-1", "t-2"), (None, None)])
async def test_of_a_commands_turn_only_what_was_put_into_it_is_seen(tickets: tuple[str | None, ...]) -> None:
    """What the command has Codex told is no message of the user's."""
    prompts = PendingPrompts()
    prompts.begin(None)
    prompts.on_turn("t-1")
    steered = prompts.add("t-2")
    seen: list[bool] = []
    for ticket, message_id in zip((*tickets, None), ("m-1", "m-2", "m-3"), strict=True):
        seen.append(prompts.is_shown(ticket))
        prompts.on_recorded(ticket, message_id)
    assert (seen, steered.result()) == ([False, True, False], "m-2")


async def test_messages_may_begin_before_earlier_ones_are_recorded() -> None:
    """Each keeps its own id and its own ticket, also in the turn of a command."""
    sink = UpdatesV2(hand := DraftHand(), HandClock())
    sink.open(SESSION, THREAD, CWD, cast(UpdateListener, None))
    sink.pending_prompts.begin(None)
    sink.pending_prompts.on_turn("t-1")
    steered = sink.pending_prompts.add("t-2")
    for ticket, item in (("t-2", "m-2"), ("t-1", "m-1")):
        sink.push(UserSaid(turn_id="u", item_id=item, text=item, client_id=ticket))
    for ticket, item in (("t-2", "m-2"), ("t-1", "m-1")):
        sink.push(Accepted(turn_id="u", item_id=item, client_id=ticket))
    assert ([each.get("messageId") for each in hand.updates], steered.result()) == (["m-2"], "m-2")


async def test_a_turn_that_never_stopped_is_over_when_its_session_is() -> None:
    """No prompt waits for it that could tell; whoever was put into it is answered."""
    hand, nobody_listens = DraftHand(), cast(UpdateListener, None)
    sink = UpdatesV2(hand, HandClock())
    sink.open(SESSION, THREAD, CWD, nobody_listens)
    sink.state.begin_turn()
    steered = sink.pending_prompts.add("ticket")
    sink.close()
    assert [each["state"] for each in hand.updates] == ["running", "idle"]
    assert isinstance(steered.exception(), RemoteError)
    hand.lint.assert_clean()


# ── requests ───────────────────────────────────────────────────────────────


class DraftHand(Hand):
    def _greet(self, capabilities: dict[str, Any]) -> None:
        self.lint = begun()


async def request(question: Question, call_id: str | None, choice: str = "decline") -> tuple[Any, DraftHand]:
    """What a client is asked, after it has answered."""
    hand = DraftHand()
    if call_id is not None:
        hand.update(SESSION, {"sessionUpdate": "terminal_update", "terminalId": call_id})
        hand.update(SESSION, {"sessionUpdate": "tool_call_update", "toolCallId": call_id})
    permission = PermissionRequestV2(hand, SESSION, "t", "/work", call_id)
    offered = permission_options.options(question)
    asking = asyncio.ensure_future(permission.request_decision(question, offered))
    call = await hand.asked()
    call.reply.set_result(selected(choice))
    assert await asking == selected(choice)
    hand.lint.assert_clean()
    return call.params, hand


async def test_a_wish_for_a_host_says_which() -> None:
    """The words of a request are its own: the command stays as it is."""
    network = {"networkApprovalContext": {"host": "example.org", "protocol": "https"}}
    params, _ = await request(asked_command(["accept", "decline"], cwd="/work/sub", **network), ITEM)
    assert params["subject"] == {
        "type": "command",
        "command": "git pull",
        "cwd": "/work/sub",
        "toolCallId": ITEM,
        "terminalId": ITEM,
    }
    assert "example.org" in params["description"]


@pytest.mark.parametrize(("choice", "status"), [("accept", "completed"), ("decline", "failed")])
async def test_a_patch_of_which_no_call_is_known_gets_one_that_ends(choice: str, status: str) -> None:
    """The client made it from the request; it must not wait for ever."""
    question = asked(
        "item/fileChange/requestApproval",
        {"threadId": "t", "turnId": "u", "itemId": "i", "reason": "Why not."},
    )
    params, hand = await request(question, None, choice)
    assert params["description"] == "Reason: Why not.\n\nCodex did not tell which changes."
    (ended,) = hand.updates
    assert (ended["toolCallId"], ended["status"]) == (params["subject"]["toolCall"]["toolCallId"], status)


async def test_a_tool_of_a_server_is_asked_for_in_words() -> None:
    """About the call where it is known, about nothing where it is not."""
    for call_id in (ITEM, None):
        params, _ = await request(TOOL, call_id)
        assert params["title"] == "Allow the desk MCP server to run tool?"
        assert '"x": 1' in params["description"]
        assert ("subject" in params) == (call_id is not None)


# ── the lint ───────────────────────────────────────────────────────────────

STATE = {"sessionUpdate": "state_update"}
RUNNING = {**STATE, "state": "running"}
TERMINAL = {"sessionUpdate": "terminal_update", "terminalId": "t"}
CHUNK = {"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": "YQ=="}


@pytest.mark.parametrize(
    ("updates", "complaint"),
    [
        ([{"sessionUpdate": "tool_call", "toolCallId": "c"}], "no way fits"),
        ([{**RUNNING, "colour": "red"}], "no way fits"),
        ([RUNNING, RUNNING], "told twice"),
        ([RUNNING, {**STATE, "state": "idle"}], "without a stop reason"),
        ([RUNNING, {**STATE, "state": "idle", "stopReason": "error"}], "has its error"),
        ([{**STATE, "state": "requires_action"}], "nothing runs"),
        ([CHUNK], "is not there"),
        ([{**TERMINAL, "exitStatus": {}}, CHUNK], "has exited"),
        ([TERMINAL, {**CHUNK, "data": "?"}], "no base64"),
        ([{**TERMINAL, "cwd": "work"}], "relative"),
    ],
)
def test_the_lint_of_the_draft_can_fail(updates: list[Any], complaint: str) -> None:
    """What is wrong is named."""
    (found,) = problems(*updates)
    assert complaint in found
