"""One order for every question: the same key means the same everywhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.codex.questions import question_of
from laneway.core.model import Question
from laneway.terminal.prompting.menu import KEYS, MenuItem, menu, pick

NETWORK = {"network_policy_amendment": {"host": "a.org", "action": "deny"}}
RULE = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", "pull"]}}
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "command": ("item/commandExecution/requestApproval", {"availableDecisions": ["accept", RULE, "cancel"]}),
    "network": (
        "item/commandExecution/requestApproval",
        {
            "availableDecisions": [
                "cancel",
                "acceptForSession",
                "accept",
                {"applyNetworkPolicyAmendment": NETWORK},
            ]
        },
    ),
    "patch": ("item/fileChange/requestApproval", {}),
    "permissions": ("item/permissions/requestApproval", {"permissions": {}}),
    "tool": ("mcpServer/elicitation/request", {"_meta": {"persist": ["session", "always"]}}),
}


def asked(kind: str) -> Question:
    method, params = ASKED[kind]
    question = question_of(method, params, "q", None)
    assert question is not None
    return question


@pytest.mark.parametrize(
    ("kind", "keys"),
    [("command", "1345"), ("network", "12456"), ("patch", "1245"), ("permissions", "124"), ("tool", "1234")],
)
def test_every_kind_of_question_has_its_choices_under_the_same_keys(kind: str, keys: str) -> None:
    """1 once, 2 for the session, 3 for good, 4 no, 5 no and stop; a rule that blocks comes behind them."""
    items = menu(asked(kind))
    assert "".join(item.key for item in items) == keys
    by_key = {key: grants for grants, key in KEYS.items()}
    assert all(by_key.get(item.key, "nothing") == item.choice.grants for item in items)
    declines = pick(items, "")
    assert isinstance(declines, MenuItem)
    assert declines.choice.choice_id == "decline"


@given(st.text())
def test_only_a_clear_yes_grants(typed: str) -> None:
    """Of all that could be typed."""
    picked = pick(menu(asked("tool")), typed)
    if isinstance(picked, MenuItem) and picked.choice.grants not in ("nothing", "stop"):
        assert typed.strip().casefold() in ("1", "2", "3", "y", "yes")


def test_a_rule_that_cannot_be_shown_whole_is_not_offered() -> None:
    """Nobody grants for good what nobody has read."""
    for words in (["x" * 300], ["git", "pull\n  4  Decline"], ["git", "\u202epull"]):
        rule = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}}
        question = question_of("execCommandApproval", {"availableDecisions": ["accept", rule]}, "q", None)
        assert question is not None
        assert [item.key for item in menu(question)] == ["1", "4"]
