"""The choices of a question as a person is offered them: which, in which order, in which words. Pure.

Offers exactly what the engine takes and a person can judge: a rule whose words cannot be shown
whole and plainly is not offered. There is always a no after which the turn goes on.
"""

from __future__ import annotations

import shlex
from typing import Any

from laneway.base.plain import is_plain_code, label, quoted
from laneway.core.model import DECLINE, Answer, Choice, Question

MAX_RULE_CHARS = 200
"""Of what is allowed for good: more does not fit a button, and nobody may be made to grant half of it."""

_ORDER = ("once", "session", "always", "nothing", "stop")


def offered(question: Question) -> list[Choice]:
    """In the order: once, for longer, no."""
    shown = [choice for choice in question.choices if _is_offered(question, choice)]
    return sorted(shown, key=lambda choice: _ORDER.index(choice.grants))


def is_rule(choice: Choice) -> bool:
    """Whether it holds from then on, for more than what is asked."""
    return choice.choice_id.startswith("amendment-")


def granting(question: Question, *reaches: str, values: dict[str, Any] | None = None) -> Answer:
    """The first choice that reaches just so far, in the order given; never further: else a decline."""
    for reach in reaches:
        for choice in question.choices:
            if choice.grants == reach:
                return Answer(choice_id=choice.choice_id, values=values or {})
    return DECLINE


def stopped(question: Question) -> Answer:
    """Decline and end what was asked for, where the question offers that."""
    return granting(question, "stop")


def _is_offered(question: Question, choice: Choice) -> bool:
    if question.kind == "elicitation":
        # To an MCP server, cancelled is declined in another word: it stops nothing.
        return choice.grants != "stop"
    if is_rule(choice):
        return _rule(question, choice) is not None
    if choice.choice_id == DECLINE.choice_id:
        return True  # Codex takes it also where it lists only the no that stops (measured, 0.163)
    decisions = _param(question, "availableDecisions")
    return not isinstance(decisions, list) or choice.choice_id in [d for d in decisions if isinstance(d, str)]


# ── words ──────────────────────────────────────────────────────────────────


def name(question: Question, choice: Choice) -> str:
    """What a button says."""
    if is_rule(choice):
        return _rule(question, choice) or label(choice.label)
    if choice.grants != "session":
        return label(choice.label)
    if question.kind == "patch":
        return "Allow edits of these files for this session"
    if question.kind != "command":
        return label(choice.label)
    if _param(question, "networkApprovalContext"):
        return "Allow this host for this session"
    if _param(question, "additionalPermissions"):
        return "Allow these permissions for this session"
    return "Allow this command for this session"


def _rule(question: Question, choice: Choice) -> str | None:
    """What a lasting rule says, for people; none if it cannot be shown whole and plainly."""
    match _decision(question, choice):
        case {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": [*words]}} if words:
            return _command_rule(question, words) if all(isinstance(word, str) for word in words) else None
        case {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": str(host), **rule}}}:
            verb = {"allow": "allow", "deny": "block"}.get(str(rule.get("action")))
            return f"Always {verb} connections to {quoted(host)}" if verb and _is_plain(host) else None
        case _:
            return None


def _command_rule(question: Question, words: list[str]) -> str | None:
    """Which commands come first: buttons are narrow, and Qt Creator cuts them after some thirty letters."""
    subject = shlex.join(words)
    if not _is_plain(subject):
        return None
    match words:
        case [_, "-c" | "-lc", script] if script == question.command:
            return "Always allow this command"
        case _:
            return f"Always allow {quoted(subject)} with anything after it"


def _is_plain(subject: str) -> bool:
    # Line breaks, control signs and marks that turn the direction of writing would hide what is granted.
    return is_plain_code(subject) and 0 < len(subject) <= MAX_RULE_CHARS


def _decision(question: Question, choice: Choice) -> Any:
    decisions = _param(question, "availableDecisions")
    number = choice.choice_id.removeprefix("amendment-")
    if not isinstance(decisions, list) or not number.isdecimal() or int(number) >= len(decisions):
        return None
    return decisions[int(number)]


def _param(question: Question, name: str) -> Any:
    return question.params.get(name) if isinstance(question.params, dict) else None
