"""Approvals as permission options, and what a client's reply to them means."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.codex import questions
from laneway.core.model import Answer, Question
from laneway.doors.acp.questions import permission_options

COMMAND = "item/commandExecution/requestApproval"
EXEC = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", "pull", "a b"]}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def command(decisions: list[Any] | None = None, **more: Any) -> Question:
    params = {"threadId": "t", "turnId": "u", "itemId": "i", "command": "git pull", **more}
    return asked(COMMAND, params | ({} if decisions is None else {"availableDecisions": decisions}))


def asked(method: str, params: dict[str, Any]) -> Question:
    question = questions.question_of(method, params, "q-1", None)
    assert question is not None
    return question


def network(action: str, host: str = "example.org") -> dict[str, Any]:
    return {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"action": action, "host": host}}}


def shown(question: Question) -> list[tuple[str, str, str]]:
    return [(o["optionId"], o["name"], o["kind"]) for o in permission_options.options(question)]


def selected(option: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option}}


# ── what is offered ────────────────────────────────────────────────────────


def test_a_command_offers_exactly_the_decisions_that_codex_takes() -> None:
    """And a plain decline, which it takes though it lists only the one that stops."""
    assert shown(command(["accept", EXEC, "cancel"])) == [
        ("accept", "Allow once", "allow_once"),
        ("amendment-1", "Always allow `git pull 'a b'` with anything after it", "allow_always"),
        ("decline", "Decline and go on", "reject_once"),
        ("cancel", "Decline and stop", "reject_once"),
    ]


@pytest.mark.parametrize("flag", ["-c", "-lc"])
def test_a_rule_for_the_very_script_says_so_in_a_few_words(flag: str) -> None:
    """Its shell and its quotes would fill a button; another script, or words behind it, are spelt out."""
    for words, name in (
        (["/bin/bash", flag, "git pull"], "Always allow this command"),
        (["bash", flag, "git push"], f"Always allow `bash {flag} 'git push'` with anything after it"),
        (["git", "pull"], "Always allow `git pull` with anything after it"),
    ):
        rule = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}}
        assert shown(command(["accept", rule]))[1] == ("amendment-1", name, "allow_always")


def test_declining_and_stopping_are_two_options() -> None:
    """As Codex takes them where it lists nothing."""
    assert shown(command()) == [
        ("accept", "Allow once", "allow_once"),
        ("acceptForSession", "Allow this command for this session", "allow_always"),
        ("decline", "Decline and go on", "reject_once"),
        ("cancel", "Decline and stop", "reject_once"),
    ]


def test_a_rule_for_a_host_says_which_and_whether_it_blocks() -> None:
    """A rule that blocks is a lasting no, and stands with the others."""
    listed = [network("deny"), network("allow"), "accept", "acceptForSession", "cancel"]
    question = command(listed, networkApprovalContext={"host": "example.org", "protocol": "https"})
    assert shown(question) == [
        ("accept", "Allow once", "allow_once"),
        ("acceptForSession", "Allow this host for this session", "allow_always"),
        ("amendment-1", "Always allow connections to `example.org`", "allow_always"),
        ("amendment-0", "Always block connections to `example.org`", "reject_always"),
        ("decline", "Decline and go on", "reject_once"),
        ("cancel", "Decline and stop", "reject_once"),
    ]


@pytest.mark.parametrize(
    "decision",
    [
        {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["sh", "-c", "true\nrm -rf ~"]}},
        {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["echo", "\x1b[2K"]}},
        {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["echo", "\u202e"]}},
        {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["x" * 1000]}},
        {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": []}},
        {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", 1]}},
        {"acceptWithExecpolicyAmendment": None},
        network("allow", "a\nb"),
        network("allow", ""),
        network("perhaps"),
        {"acceptWithSomethingNew": {"for": "ever"}},
    ],
    ids=repr,
)
def test_a_rule_that_cannot_be_shown_whole_is_not_offered(decision: Any) -> None:
    """Nobody is made to grant for good what they cannot read; the reply cannot name it either."""
    question = command(["accept", decision, "cancel"])
    assert [option for option, _, _ in shown(question)] == ["accept", "decline", "cancel"]
    assert permission_options.answer(question, selected("amendment-1")) == Answer(choice_id="decline")


@pytest.mark.parametrize("decisions", [[], ["accept"], [EXEC], ["somethingNew"]], ids=repr)
def test_there_is_always_a_no(decisions: list[Any]) -> None:
    """Even where Codex lists none, or nothing at all that we know."""
    assert ("decline", "Decline and go on", "reject_once") in shown(command(decisions))


def test_a_patch_offers_its_files_for_the_session() -> None:
    """The words say how far a yes reaches."""
    question = asked("item/fileChange/requestApproval", {"threadId": "t", "turnId": "u", "itemId": "i"})
    assert [name for _, name, _ in shown(question)] == [
        "Allow once",
        "Allow edits of these files for this session",
        "Decline and go on",
        "Decline and stop",
    ]


def test_further_permissions_are_granted_for_the_turn_or_the_session() -> None:
    """There is no stop: Codex takes none for these."""
    params = {"threadId": "t", "turnId": "u", "itemId": "i", "permissions": {"network": {"enabled": True}}}
    assert shown(asked("item/permissions/requestApproval", params)) == [
        ("accept", "Grant for this turn", "allow_once"),
        ("acceptForSession", "Grant for this session", "allow_always"),
        ("decline", "Decline and go on", "reject_once"),
    ]


@pytest.mark.parametrize(
    ("persist", "lasting"),
    [
        (["session", "always"], ["acceptForSession", "acceptAlways"]),
        ("session", ["acceptForSession"]),
        (["always"], ["acceptAlways"]),
        (None, []),
        ("whatever", []),
    ],
    ids=repr,
)
def test_an_mcp_tool_is_allowed_for_as_long_as_codex_offers(persist: Any, lasting: list[str]) -> None:
    """And declined in one way: to Codex, a cancelled one is a declined one."""
    meta = {"codex_approval_kind": "mcp_tool_call", "persist": persist}
    params = {"threadId": "t", "turnId": "u", "serverName": "s", "message": "Allow it?", "_meta": meta}
    offered = [option for option, _, _ in shown(asked("mcpServer/elicitation/request", params))]
    assert offered == ["accept", *lasting, "decline"]


# ── what is answered ───────────────────────────────────────────────────────


@pytest.mark.parametrize("option", ["accept", "amendment-1", "decline", "cancel"])
def test_the_option_that_was_selected_is_the_answer(option: str) -> None:
    """Under the id of the choice."""
    question = command(["accept", EXEC, "cancel"])
    assert permission_options.answer(question, selected(option)) == Answer(choice_id=option)


def test_a_cancelled_request_stops_where_it_can_and_declines_where_it_cannot() -> None:
    """The client's person ended the prompt."""
    cancelled = {"outcome": {"outcome": "cancelled"}}
    assert permission_options.answer(command(), cancelled) == Answer(choice_id="cancel")
    assert permission_options.answer(command(["accept"]), cancelled) == Answer(choice_id="decline")


@given(JSON | st.fixed_dictionaries({"outcome": JSON}) | st.builds(selected, st.text()))
def test_no_reply_but_an_option_that_was_shown_grants_anything(reply: Any) -> None:
    """Whatever a client sends, what does not clearly grant is a no."""
    question = command(["accept", EXEC, "cancel"])
    if reply not in (selected("accept"), selected("amendment-1")):
        assert permission_options.answer(question, reply).choice_id in ("decline", "cancel")


@pytest.mark.parametrize(
    "outcome",
    [
        {"outcome": "cancelled", "optionId": "accept"},
        {"optionId": "accept"},
        {"outcome": "new", "optionId": "accept"},
    ],
    ids=repr,
)
def test_an_option_counts_only_if_it_was_selected(outcome: dict[str, Any]) -> None:
    """Half a yes is a no."""
    assert permission_options.answer(command(), {"outcome": outcome}).choice_id in ("decline", "cancel")


def test_an_option_that_the_question_has_not_is_a_decline() -> None:
    """Codex did not list it."""
    assert permission_options.answer(command(["accept"]), selected("acceptForSession")).choice_id == "decline"
