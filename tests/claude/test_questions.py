"""Claude Code's requests as questions, and every answer as a response. Without processes."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.claude.questions import question_of, reply
from laneway.core.model import DECLINE, Answer, Field, FieldOption, Question

YES, SESSION = Answer(choice_id="accept"), Answer(choice_id="acceptForSession")
RULE = {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "npm test:*"}], "behavior": "allow"}


def asks(tool: str, arguments: dict[str, Any], **fields: Any) -> dict[str, Any]:
    request = {"subtype": "can_use_tool", "tool_name": tool, "tool_use_id": "call-1", "input": arguments}
    return request | fields


def shown(request: dict[str, Any], cwd: str = "/work") -> Question:
    question = question_of(request, "q-1", "thread", "turn", cwd)
    assert question is not None
    return question


def elicitation(**fields: Any) -> dict[str, Any]:
    return {"subtype": "elicitation", "mcp_server_name": "shop", "message": "How many?"} | fields


def test_a_yes_for_the_session_sends_claude_codes_own_suggestion_for_the_session_only() -> None:
    """By itself it would write it into a file of the repository."""
    suggestions = [{**RULE, "destination": "localSettings"}]
    question = shown(asks("Bash", {"command": "npm test"}, permission_suggestions=suggestions))
    assert [choice.label for choice in question.choices][1] == "Allow `npm test:*` for this session"
    assert reply(question, SESSION) == {
        "behavior": "allow",
        "updatedInput": {"command": "npm test"},
        "updatedPermissions": [{**RULE, "destination": "session"}],
    }
    assert reply(question, YES) == {"behavior": "allow", "updatedInput": {"command": "npm test"}}


def test_without_a_suggestion_there_is_no_yes_for_the_session() -> None:
    """And one that comes nevertheless is a no."""
    question = shown(asks("Bash", {"command": "ls"}))
    assert [choice.grants for choice in question.choices] == ["once", "nothing", "stop"]
    assert reply(question, SESSION)["behavior"] == "deny"


@pytest.mark.parametrize(
    ("answer", "response"),
    [
        (DECLINE, {"behavior": "deny", "message": "The user declined this."}),
        (
            Answer(choice_id="decline", words=" not on main "),
            {"behavior": "deny", "message": "not on main"},
        ),
        (
            Answer(choice_id="cancel"),
            {"behavior": "deny", "message": "The user declined this.", "interrupt": True},
        ),
        (Answer(choice_id="whatever"), {"behavior": "deny", "message": "The user declined this."}),
    ],
)
def test_what_is_no_clear_yes_is_a_no(answer: Answer, response: dict[str, Any]) -> None:
    """With the words that were said; only the stop ends the turn."""
    assert reply(shown(asks("WebFetch", {"url": "http://x"})), answer) == response


def test_a_patch_is_shown_whatever_tool_makes_it() -> None:
    """Several edits of one file are one change; the cell of a notebook has its new source."""
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}]
    many = shown(asks("MultiEdit", {"file_path": "/work/x.py", "edits": edits}))
    cell = shown(asks("NotebookEdit", {"notebook_path": "/work/x.ipynb", "new_source": "print(1)\n"}))
    assert [(question.kind, question.changes[0].path) for question in (many, cell)] == [
        ("patch", "/work/x.py"),
        ("patch", "/work/x.ipynb"),
    ]
    assert many.changes[0].diff == "@@ -1,1 +1,1 @@\n-a\n+b\n@@ -1,1 +1,0 @@\n-c\n"
    assert cell.changes[0].diff == "@@ -1,0 +1,1 @@\n+print(1)\n"


def test_several_questions_with_several_choices_are_answered_by_their_texts() -> None:
    """With what each option means; what was not answered is left out."""
    options = [{"label": "red", "description": "warm"}, {"label": "blue"}]
    questions = [
        {"question": "Which?", "header": "Colours", "multiSelect": True, "options": options},
        {"question": "How?", "header": "Way", "options": options},
        {"question": "Why?", "header": "Reason", "options": []},
    ]
    question = shown(asks("AskUserQuestion", {"questions": questions}))
    assert question.fields[0] == Field(
        field_id="answer-1",
        header="Colours",
        text="Which?",
        options=(FieldOption(label="red", description="warm"), FieldOption(label="blue", description="")),
        allows_other=True,
        is_multiple=True,
    )
    assert [field.is_multiple for field in question.fields] == [True, False, False]
    values = {"answer-1": ["red", "blue", "or pink"], "answer-2": "slowly", "answer-3": ""}
    response = reply(question, Answer(choice_id="accept", values=values))
    assert response["updatedInput"] == {
        "questions": questions,
        "answers": {"Which?": "red, blue, or pink", "How?": "slowly"},
    }
    assert reply(question, YES) == {"behavior": "deny", "message": "The user did not answer."}


@pytest.mark.parametrize(
    ("schema", "answer", "response"),
    [
        (
            {"type": "object"},
            Answer(choice_id="accept", values={"n": 3}),
            {"action": "accept", "content": {"n": 3}},
        ),
        ({"type": "object"}, YES, {"action": "accept", "content": {}}),
        (None, YES, {"action": "accept", "content": None}),
        (None, DECLINE, {"action": "decline"}),
        (None, SESSION, {"action": "decline"}),
    ],
)
def test_a_question_of_an_mcp_server_is_passed_on(
    schema: dict[str, Any] | None, answer: Answer, response: dict[str, Any]
) -> None:
    """With its schema or its address; a person who gives no answer gives none."""
    question = shown(elicitation(requested_schema=schema, url=None if schema else "https://x"))
    assert (question.kind, question.message, question.schema) == ("elicitation", "How many?", schema)
    assert question.url == (None if schema else "https://x")
    assert reply(question, answer) == response


def test_what_asks_for_no_decision_is_no_question() -> None:
    """It is refused elsewhere."""
    assert question_of({"subtype": "hook_callback"}, "q-1", "thread", None, "/work") is None
