"""The lint that every message of the ACP tests goes through: it accepts what is right, and it can fail."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import pytest
from acp import schema as official
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doors.acp import examples
from tests.doors.acp.examples import (
    AGENT_ASKS,
    CALL,
    CLIENT_ASKS,
    OPTIONS,
    PARTS,
    SESSION,
    TEXT,
    UPDATES,
    conversation,
    request,
    result,
    update,
)
from tests.doors.acp.lint import SCHEMAS, Lint, Message, book

BARE: Message = {"protocolVersion": 1}


def begun(capabilities: Message | None = None) -> Lint:
    """A connection on which a session is open and no prompt has been answered."""
    lint = Lint()
    hello = (
        CLIENT_ASKS["initialize"][0] if capabilities is None else {**BARE, "clientCapabilities": capabilities}
    )
    lint.check("client", request(100, "initialize", hello))
    lint.check("agent", result(100, BARE))
    lint.check("client", request(101, "session/new", {"cwd": "/work", "mcpServers": []}))
    lint.check("agent", result(101, {"sessionId": SESSION}))
    lint.check("client", request(1, "session/prompt", {"sessionId": SESSION, "prompt": [TEXT]}))
    lint.assert_clean()
    return lint


@cache
def published() -> Any:
    """The schema as it is published, open."""
    return jsonschema.Draft202012Validator(json.loads((SCHEMAS / "schema.json").read_bytes()))


# ── what is right ──────────────────────────────────────────────────────────


def test_a_whole_conversation_of_right_messages_is_accepted() -> None:
    """Every method, every kind of update, every kind of content, both ways."""
    lint = Lint()
    for side, message in conversation():
        lint.check("agent" if side == "agent" else "client", message)
    lint.assert_clean()


def test_the_examples_leave_no_method_and_no_update_of_the_schema_out() -> None:
    """What nobody tries nobody knows."""
    requests = {method for _, is_request, method in book(frozenset()).params if is_request}
    kinds = json.loads((SCHEMAS / "schema.json").read_bytes())["$defs"]["SessionUpdate"]["oneOf"]
    assert {*CLIENT_ASKS, *AGENT_ASKS} == requests
    assert set(UPDATES) == {kind["properties"]["sessionUpdate"]["const"] for kind in kinds}


@pytest.mark.parametrize("at", range(len(conversation())))
def test_the_published_schema_accepts_the_examples_too(at: int) -> None:
    """The examples are the protocol's, not only what our closed reading of it takes."""
    published().validate(conversation()[at][1])


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        (
            "agent_message_chunk",
            official.AgentMessageChunk(
                session_update="agent_message_chunk",
                content=official.TextContentBlock(type="text", text="Hello."),
                message_id="m1",
            ),
        ),
        (
            "tool_call",
            official.ToolCallStart(
                session_update="tool_call",
                tool_call_id=CALL,
                title="Edit",
                kind="edit",
                status="pending",
                content=[official.FileEditToolCallContent(type="diff", path="/work/a", new_text="a")],
                locations=[official.ToolCallLocation(path="/work/a", line=1)],
            ),
        ),
        ("usage_update", official.UsageUpdate(session_update="usage_update", used=1, size=2)),
    ],
)
def test_what_the_official_python_sdk_writes_is_accepted(kind: str, made: Any) -> None:
    """An independent writer of the protocol."""
    body = made.model_dump(mode="json", by_alias=True, exclude_none=True)
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": SESSION, "update": body}}
    assert body["sessionUpdate"] == kind
    assert begun().check("agent", message) == []


# ── what is wrong with one message ─────────────────────────────────────────

WRONG: dict[str, tuple[Message, str]] = {
    "a kind that is not": (update("tool_call_progress"), "sessionUpdate is 'tool_call_progress'"),
    "a kind of the unstable schema": (update("plan_update", plan={}), "sessionUpdate is 'plan_update'"),
    "a field of nobody": (update("plan", models=[]), "'models' was unexpected"),
    "a field inside": (update("agent_message_chunk", content={**TEXT, "html": ""}), "'html' was unexpected"),
    "a missing field": (update("agent_message_chunk", content={"type": "text"}), "'text' is a required"),
    "a list for a block": (update("agent_message_chunk", content=[TEXT]), "is not of type 'object'"),
    "a null where none may be": (update("tool_call", kind=None), "None is not one of"),
    "a status that is not": (update("tool_call", status="cancelled"), "'cancelled' is not one of"),
    "a word without its mark": (
        update("config_option_update", configOptions=[{**OPTIONS[0], "category": "personality"}]),
        "'personality' does not match '^_'",
    ),
    "a notification of nobody": ({"jsonrpc": "2.0", "method": "_auth/x", "params": {}}, "no notification"),
    "a request of nobody": (request(1, "session/steer", {}), "session/steer is no request of the agent"),
    "a request of the other side": (request(1, "logout", {}), "logout is no request of the agent"),
    "a request told as a notification": (
        {"jsonrpc": "2.0", "method": "terminal/kill", "params": examples.TERMINAL},
        "terminal/kill is no notification",
    ),
    "no version": ({"method": "session/update", "params": update("plan")["params"]}, 'no "jsonrpc"'),
    "a field beside": ({**update("plan"), "extra": 1}, "the field extra"),
    "a result for the wrong method": (result(1, {}), "'stopReason' is a required"),
    "a result that is null": (result(1, None), "None is not of type 'object'"),
    "a stop reason that is not": (result(1, {"stopReason": "error"}), "'error' is not one of"),
    "usage where it is not asked for": (result(1, {"stopReason": "end_turn", "usage": {}}), "'usage' was"),
    "an answer to nothing": (result(77, {}), "nobody asked"),
    "an answer of both kinds": ({**result(1, {}), "error": {}}, "a result or an error"),
    "an error without a message": ({"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}, "'message' is a"),
    "a session that is not": (
        {**update("plan"), "params": {**update("plan")["params"], "sessionId": "sess_9"}},
        "knows no session sess_9",
    ),
    "an update of no call": (update("tool_call_update"), "call_1 was never announced"),
    "a terminal of nobody": (
        update("tool_call", content=[{"type": "terminal", "terminalId": CALL}]),
        "no terminal call_1",
    ),
    "a relative path": (update("tool_call", locations=[{"path": "a.py"}]), "the path a.py is relative"),
    "a relative diff": (update("tool_call", content=[{**PARTS[1], "path": "a"}]), "the path a is relative"),
    "line nought": (update("tool_call", locations=[{"path": "/a", "line": 0}]), "counted from one"),
    "a value that is no choice": (
        update("config_option_update", configOptions=[{**OPTIONS[0], "currentValue": "huge"}]),
        "model is huge",
    ),
    "an option twice": (
        update("config_option_update", configOptions=[OPTIONS[2]] * 2),
        "network is there twice",
    ),
    "an elicitation of nobody": (
        {"jsonrpc": "2.0", "method": "elicitation/complete", "params": {"elicitationId": "e"}},
        "no elicitation e",
    ),
    "a cancelled request of nobody": (
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 5}},
        "no open request 5",
    ),
    "a form of no scope": (
        request(1, "elicitation/create", {"mode": "form", "message": "", "requestedSchema": {}}),
        "'sessionId' is a required property | 'requestId' is a required property",
    ),
    "a mode of nobody": (
        request(1, "elicitation/create", {"mode": "voice", "message": "", "sessionId": SESSION}),
        "mode is 'voice'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_message_of_the_agent_is_caught(name: str) -> None:
    """And the complaint says what is wrong."""
    message, complaint = WRONG[name]
    lint = begun()
    (problem,) = lint.check("agent", message)
    assert complaint in problem
    assert [each.message for each in lint.violations] == [message]
    with pytest.raises(AssertionError, match="agent: "):
        lint.assert_clean()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/new", {"cwd": "/work"}),
        ("session/prompt", {"sessionId": SESSION, "prompt": "Hello."}),
        ("session/set_config_option", {"sessionId": SESSION, "configId": "network", "value": True}),
        ("session/set_model", {"sessionId": SESSION, "modelId": "m"}),
    ],
)
def test_a_wrong_message_of_the_client_is_caught(method: str, params: Message) -> None:
    """A test that says nonsense by mistake proves nothing."""
    assert len(begun().check("client", request(2, method, params))) == 1


# ── what is wrong with one message after another ───────────────────────────


def test_a_tool_call_is_announced_once_and_its_end_is_the_end() -> None:
    """Clients keep a call by its id."""
    lint = begun()
    assert lint.check("agent", update("tool_call")) == []
    assert lint.check("agent", update("tool_call")) == ["the tool call call_1 is announced twice"]
    assert lint.check("agent", update("tool_call_update", status="failed")) == []
    again = lint.check("agent", update("tool_call_update", status="in_progress"))
    assert again == ["the tool call call_1 was failed and is in_progress again"]


def test_a_load_tells_the_same_calls_anew() -> None:
    """History is replayed from its start."""
    lint = begun()
    lint.check("agent", update("tool_call"))
    lint.check("client", request(2, "session/load", {"sessionId": SESSION, "cwd": "/work", "mcpServers": []}))
    lint.check("agent", update("tool_call"))
    lint.assert_clean()


def test_a_request_is_answered_once() -> None:
    """The second answer is one to nothing."""
    lint = begun()
    assert lint.check("agent", result(1, {"stopReason": "cancelled"})) == []
    assert lint.check("agent", result(1, {"stopReason": "cancelled"})) == ["nobody asked for an answer to 1"]


def test_only_an_unreadable_message_is_answered_without_an_id() -> None:
    """JSON-RPC's null id is for errors alone."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}
    assert begun().check("agent", error) == []
    assert begun().check("agent", result(None, {})) != []  # type: ignore[arg-type]


def test_what_a_test_says_wrongly_on_purpose_is_unjudged_and_its_answer_is_not() -> None:
    """An unknown method must be refused."""
    lint = begun()
    lint.note("client", request(2, "session/dance", {}))
    error = {"code": -32601, "message": "Method not found"}
    assert lint.check("agent", {"jsonrpc": "2.0", "id": 2, "error": error}) == []
    lint.note("client", request(3, "session/dance", {}))
    assert lint.check("agent", result(3, {})) == ["a result for session/dance, which the agent has not"]


URL: Message = {
    "mode": "url",
    "sessionId": SESSION,
    "message": "",
    "elicitationId": "e",
    "url": "https://a.b/c",
}


@pytest.mark.parametrize(
    ("message", "capability"),
    [
        (update("notice"), "session.notices"),
        (update("compaction_update"), "session.compaction"),
        (update("compaction_summary_chunk"), "session.compaction"),
        (update("config_option_update"), "session.configOptions.boolean"),
        (request(9, "elicitation/create", AGENT_ASKS["elicitation/create"][0]), "elicitation.form"),
        (request(9, "elicitation/create", URL), "elicitation.url"),
        (request(9, "terminal/create", AGENT_ASKS["terminal/create"][0]), "terminal"),
        (request(9, "fs/read_text_file", AGENT_ASKS["fs/read_text_file"][0]), "fs.readTextFile"),
    ],
)
def test_what_a_client_did_not_declare_is_not_used_on_it(message: Message, capability: str) -> None:
    """The same message is right for a client that did."""
    assert begun().check("agent", message) == []
    (problem,) = begun({}).check("agent", message)
    assert problem.endswith(f"needs the client's capability {capability}")


def test_a_login_by_terminal_is_offered_only_to_a_client_with_terminals() -> None:
    """The protocol says MUST."""
    lint = Lint()
    lint.check("client", request(0, "initialize", BARE))
    (problem,) = lint.check("agent", result(0, CLIENT_ASKS["initialize"][1]))
    assert problem == "terminal auth needs the client's capability auth.terminal"


def test_a_client_chooses_what_it_was_offered() -> None:
    """A handler that answers with an option of another request tests nothing."""
    lint = begun()
    lint.check("agent", request(9, "session/request_permission", AGENT_ASKS["session/request_permission"][0]))
    answer = result(9, {"outcome": {"outcome": "selected", "optionId": "maybe"}})
    assert lint.check("client", answer) == ["maybe was not offered"]


def test_zeds_terminals_may_be_shown_to_a_client_that_declares_them() -> None:
    """The extension makes the terminal at the client, by `_meta`."""
    shown = {
        "content": [{"type": "terminal", "terminalId": CALL}],
        "_meta": {"terminal_info": {"terminal_id": CALL, "cwd": "/work"}},
    }
    assert begun({"_meta": {"terminal_output": True}}).check("agent", update("tool_call", **shown)) == []
    assert begun({}).check("agent", update("tool_call", **shown)) == ["the client has no terminal call_1"]


def test_the_unstable_schema_is_open_by_name_only() -> None:
    """Each name lets in what it stands for and nothing else."""
    lint = Lint(unstable=["session/fork", "usage"])
    fork = {"sessionId": SESSION, "cwd": "/work"}
    assert lint.check("client", request(1, "session/fork", fork)) == []
    assert lint.check("agent", result(1, {"sessionId": "sess_2"})) == []
    assert lint.check("client", request(2, "session/set_title", {"sessionId": SESSION, "title": "a"})) != []
    assert Lint().check("client", request(1, "session/fork", fork)) != []
    lint.check("client", request(3, "session/prompt", {"sessionId": SESSION, "prompt": []}))
    usage = {"totalTokens": 3, "inputTokens": 2, "outputTokens": 1}
    assert lint.check("agent", result(3, {"stopReason": "end_turn", "usage": usage})) == []
    assert lint.check("agent", update("plan_update", plan={})) != []


# ── the closed schema and the published one ────────────────────────────────


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place inside a value."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*path, key))


def damaged(message: Message, path: tuple[Any, ...], damage: Any) -> Message:
    """A copy with one place replaced, or removed where the damage is `...`."""
    made = copy.deepcopy(message)
    at: Any = made
    for step in path[:-1]:
        at = at[step]
    if damage is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = damage
    return made


EVERY = [(kind, update(kind)["params"]) for kind in UPDATES]
"""The kinds of update: where our writer says most."""


@settings(max_examples=300)
@given(st.data())
def test_whatever_the_lint_accepts_the_published_schema_accepts(data: st.DataObject) -> None:
    """Closing takes away; it must never let something in. One place of a right update is damaged."""
    _, params = data.draw(st.sampled_from(EVERY))
    path = data.draw(st.sampled_from(list(places(params))))
    damage = data.draw(st.sampled_from([..., None, 0, -1, 1.5, True, "", "text", [], {}, TEXT, [TEXT]]))
    broken = damaged(params, path, damage)
    if not list(book(frozenset()).judge("SessionNotification", broken)):
        validator = published().evolve(schema={"$ref": "#/$defs/SessionNotification", **_definitions()})
        assert validator.is_valid(broken)


@cache
def _definitions() -> Message:
    return {"$defs": json.loads((SCHEMAS / "schema.json").read_bytes())["$defs"]}


@pytest.mark.parametrize("kind", UPDATES)
def test_a_field_of_nobody_is_caught_at_every_depth(kind: str) -> None:
    """Outside `_meta` and what is raw, no object takes a field that the schema does not name."""
    params = update(kind)["params"]
    objects = [(), *(path for path in places(params) if isinstance(_at(params, path), dict))]
    for path in objects:
        if {"_meta", "rawInput", "rawOutput"} & set(path):
            continue
        stray = copy.deepcopy(params)
        _at(stray, path)["stray"] = 1
        assert list(book(frozenset()).judge("SessionNotification", stray)), path


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value
