"""Requests for a decision: choices, and the response for each answer."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.codex import questions
from laneway.codex.protocol.methods import SERVER_REQUESTS
from laneway.core.model import DECLINE, Answer, FieldOption, Question

YES = Answer(choice_id="accept")
AMENDMENT = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", "pull"]}}
COMMAND = {
    "threadId": "t",
    "turnId": "u",
    "itemId": "i",
    "command": "/bin/bash -lc 'git pull'",
    "cwd": "/w",
    "reason": "to be up to date",
    "availableDecisions": ["accept", AMENDMENT, "cancel"],
}


def ask(method: str, params: dict[str, Any], item: dict[str, Any] | None = None) -> Question:
    question = questions.question_of(method, params, "q", item)
    assert question is not None
    return question


def test_a_command_offers_exactly_what_codex_takes_and_a_decline() -> None:
    """Codex takes a decline even where it does not list one."""
    question = ask("item/commandExecution/requestApproval", COMMAND)
    assert (question.command, question.cwd, question.reason) == ("git pull", "/w", "to be up to date")
    assert [(c.choice_id, c.label, c.grants) for c in question.choices] == [
        ("accept", "Allow once", "once"),
        ("amendment-1", "Always allow git pull with anything after it", "always"),
        ("cancel", "Decline and stop", "stop"),
        ("decline", "Decline and go on", "nothing"),
    ]


@pytest.mark.parametrize(
    ("choice", "decision"),
    [
        ("accept", "accept"),
        ("amendment-1", AMENDMENT),
        ("cancel", "cancel"),
        ("decline", "decline"),
        ("acceptForSession", "decline"),
        ("anything", "decline"),
    ],
)
def test_what_was_not_offered_is_a_decline(choice: str, decision: Any) -> None:
    """Approvals fail closed."""
    method = "item/commandExecution/requestApproval"
    assert questions.reply(method, ask(method, COMMAND), Answer(choice_id=choice)) == {"decision": decision}


def test_permissions_are_granted_as_asked_or_not_at_all() -> None:
    """A decline grants the empty set."""
    method = "item/permissions/requestApproval"
    wanted = {"network": {"enabled": True}}
    question = ask(method, {"threadId": "t", "permissions": wanted})
    assert questions.reply(method, question, YES) == {"permissions": wanted, "scope": "turn"}
    session = Answer(choice_id="acceptForSession")
    assert questions.reply(method, question, session) == {"permissions": wanted, "scope": "session"}
    assert questions.reply(method, question, DECLINE) == {"permissions": {}, "scope": "turn"}


def test_answers_of_a_person_go_to_the_fields_that_asked() -> None:
    """What was not asked is not passed on."""
    method = "item/tool/requestUserInput"
    asked = [
        {"id": "a", "header": "A", "question": "A?", "options": [{"label": "x"}]},
        {"id": "b", "question": "B?"},
    ]
    question = ask(method, {"threadId": "t", "questions": asked})
    assert [field.field_id for field in question.fields] == ["a", "b"]
    answer = Answer(choice_id="accept", values={"a": ["x"], "b": "typed", "c": "extra"})
    assert questions.reply(method, question, answer) == {
        "answers": {"a": {"answers": ["x"]}, "b": {"answers": ["typed"]}}
    }
    assert questions.reply(method, question, DECLINE) == {"answers": {}}


def test_own_words_beside_an_option_are_marked_as_codex_marks_them() -> None:
    """A text that stands alone is the answer itself; one that is marked is not marked again."""
    method = "item/tool/requestUserInput"
    options = [{"label": "x", "description": "the first"}, {"label": "y"}]
    question = ask(
        method, {"threadId": "t", "questions": [{"id": "a", "question": "A?", "options": options}]}
    )
    assert question.fields[0].options == (
        FieldOption(label="x", description="the first"),
        FieldOption(label="y"),
    )
    for value, texts in [
        (["x", "soon"], ["x", "user_note: soon"]),
        (["x", "user_note: soon"], ["x", "user_note: soon"]),
        ("soon", ["soon"]),
        (["x"], ["x"]),
    ]:
        answer = Answer(choice_id="accept", values={"a": value})
        assert questions.reply(method, question, answer) == {"answers": {"a": {"answers": texts}}}


def test_an_elicitation_can_be_accepted_declined_or_stopped() -> None:
    """With the content that its schema asked for."""
    method = "mcpServer/elicitation/request"
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    question = ask(method, {"threadId": "t", "message": "Who?", "mode": "form", "requestedSchema": schema})
    assert (question.message, question.schema) == ("Who?", schema)
    named = Answer(choice_id="accept", values={"name": "Ann"})
    assert questions.reply(method, question, named) == {"action": "accept", "content": {"name": "Ann"}}
    assert questions.reply(method, question, DECLINE) == {"action": "decline"}
    assert questions.reply(method, question, Answer(choice_id="cancel")) == {"action": "cancel"}


def test_a_tool_of_an_mcp_server_can_be_allowed_for_longer_where_codex_offers_it() -> None:
    """Codex reads how long from the answer's `_meta`; without an offer such an answer is a decline."""
    method = "mcpServer/elicitation/request"
    schema = {"type": "object", "properties": {}}
    params = {"threadId": "t", "serverName": "s", "message": "Run it?", "requestedSchema": schema}
    question = ask(method, {**params, "_meta": {"persist": ["session", "always"]}})
    assert [choice.grants for choice in question.choices] == ["once", "session", "always", "nothing", "stop"]
    assert questions.reply(method, question, YES) == {"action": "accept", "content": {}}
    for choice, reach in (("acceptForSession", "session"), ("acceptAlways", "always")):
        reply = questions.reply(method, question, Answer(choice_id=choice))
        assert reply == {"action": "accept", "content": {}, "_meta": {"persist": reach}}
        assert questions.reply(method, ask(method, params), Answer(choice_id=choice)) == {"action": "decline"}


@pytest.mark.parametrize(
    ("method", "params", "is_escalation"),
    [
        ("item/commandExecution/requestApproval", {"command": "ls"}, True),
        ("item/fileChange/requestApproval", {}, True),
        ("item/permissions/requestApproval", {"permissions": {}}, True),
        ("execCommandApproval", {"command": ["ls"]}, True),
        ("applyPatchApproval", {}, True),
        ("item/tool/requestUserInput", {"questions": [{"id": "colour", "question": "Which?"}]}, False),
        ("item/tool/requestUserInput", {"questions": [{"id": "mcp_tool_call_approval_call_1"}]}, True),
        ("mcpServer/elicitation/request", {"message": "Who?", "requestedSchema": {}}, False),
        ("mcpServer/elicitation/request", {"message": "Who?", "_meta": {"theirs": 1}}, False),
        ("mcpServer/elicitation/request", {"_meta": {"codex_approval_kind": "mcp_tool_call"}}, True),
        ("mcpServer/elicitation/request", {"_meta": {"persist": "session"}}, True),
    ],
)
def test_what_a_yes_would_widen_is_told_from_what_somebody_only_wants_to_know(
    method: str, params: dict[str, Any], is_escalation: bool
) -> None:
    """Codex asks to run an MCP tool by a form or by a choice; a read-only session must know."""
    assert ask(method, {"threadId": "t", **params}).is_escalation is is_escalation


def test_a_rule_that_blocks_a_host_grants_nothing() -> None:
    """It is a no that lasts; one that allows it is a yes that lasts."""
    method = "item/commandExecution/requestApproval"
    rules = [
        {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "a.org", "action": action}}}
        for action in ("allow", "deny")
    ]
    question = ask(method, {**COMMAND, "availableDecisions": ["accept", *rules]})
    assert [(choice.label, choice.grants) for choice in question.choices[1:3]] == [
        ("Always allow connections to a.org", "always"),
        ("Decline and always block connections to a.org", "nothing"),
    ]
    assert questions.reply(method, question, Answer(choice_id="amendment-2")) == {"decision": rules[1]}


def test_the_old_approval_requests_get_answers_in_their_own_words() -> None:
    """Codex 0.104 still sends them."""
    params = {"conversationId": "t", "callId": "c", "command": ["ls", "-l"], "cwd": "/w"}
    question = ask("execCommandApproval", params)
    assert (question.command, question.thread_id) == ("ls -l", "t")
    assert questions.reply("execCommandApproval", question, YES) == {"decision": "approved"}
    assert questions.reply("execCommandApproval", question, Answer(choice_id="cancel")) == {
        "decision": "abort"
    }
    denied = questions.reply("execCommandApproval", question, DECLINE)
    assert denied == {"decision": {"denied": {"rejection": "The user declined."}}}
    patch = {"conversationId": "t", "fileChanges": {"/w/a": {"update": {"unified_diff": "@@"}}}}
    assert [c.path for c in ask("applyPatchApproval", patch).changes] == ["/w/a"]


@pytest.mark.parametrize("method", sorted(set(questions._MAKERS) & SERVER_REQUESTS))
def test_every_question_can_be_declined_from_nothing_but_a_thread(method: str) -> None:
    """Whatever a future Codex leaves out, the answer is no and no crash."""
    question = ask(method, {"threadId": "t"})
    assert any(choice.choice_id == "decline" for choice in question.choices)
    assert questions.reply(method, question, DECLINE)


def test_what_is_no_question_is_left_to_others() -> None:
    """A tool call, or something brand new."""
    assert questions.question_of("item/tool/call", {}, "q", None) is None
