"""The choices of a question for display: which are offered, in which order, with which labels. Pure.

Offers exactly what the engine accepts and a user can judge: a lasting rule that cannot be shown whole
and in plain characters is not offered. There is always a way to decline without ending the turn.
"""

from __future__ import annotations

import shlex
from typing import Any

from laneway.base.plain import is_plain_code, label, quoted
from laneway.core.model import DECLINE, Answer, Choice, Question

MAX_RULE_CHARS = 200
"""Of a lasting rule: more does not fit on a button, and nobody must grant a rule that is cut."""

_ORDER = ("once", "session", "always", "nothing", "stop")


def offered(question: Question) -> list[Choice]:
    """The choices to show, in the order: once, for longer, decline."""
    choices = [choice for choice in question.choices if _is_offered(question, choice)]
    return sorted(choices, key=lambda choice: _ORDER.index(choice.grants))


def is_rule(choice: Choice) -> bool:
    """Whether the choice is a lasting rule, for more than what the question asks."""
    return choice.choice_id.startswith("amendment-")


def answer_granting(question: Question, *scopes: str, values: dict[str, Any] | None = None) -> Answer:
    """The answer with the first of these scopes that the question offers, none wider; else a decline."""
    for scope in scopes:
        for choice in question.choices:
            if choice.grants == scope:
                return Answer(choice_id=choice.choice_id, values=values or {})
    return DECLINE


def stop_answer(question: Question) -> Answer:
    """The answer that declines and ends the turn, where the question offers that; else a decline."""
    return answer_granting(question, "stop")


def no_with_words(question: Question, words: str) -> Answer:
    """A decline with what the person says to it, where the engine takes that; else without."""
    choice = question.words_choice
    return Answer(choice_id=choice.choice_id, words=words.strip()) if choice else DECLINE


def _is_offered(question: Question, choice: Choice) -> bool:
    if question.kind == "elicitation":
        # For an MCP server, cancelling is declining by another name: it stops nothing.
        return choice.grants != "stop"
    if is_rule(choice):
        return _rule(question, choice) is not None
    if choice.choice_id == DECLINE.choice_id:
        return True  # Codex accepts it even where it lists only the one that stops (measured, 0.163)
    decisions = _param(question, "availableDecisions")
    return not isinstance(decisions, list) or choice.choice_id in [d for d in decisions if isinstance(d, str)]


# ── labels ─────────────────────────────────────────────────────────────────


def name(question: Question, choice: Choice) -> str:
    """The label of a choice, for a button."""
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
    """The label of a lasting rule; none if it cannot be shown whole and in plain characters."""
    match _decision(question, choice):
        case {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": [*prefix]}} if prefix:
            return _command_rule(question, prefix) if all(isinstance(word, str) for word in prefix) else None
        case {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": str(host), **rule}}}:
            verb = {"allow": "allow", "deny": "block"}.get(str(rule.get("action")))
            return f"Always {verb} connections to {quoted(host)}" if verb and _is_plain(host) else None
        case _:
            return None


def _command_rule(question: Question, prefix: list[str]) -> str | None:
    """The command comes early in the label: Qt Creator cuts buttons after some thirty letters."""
    subject = shlex.join(prefix)
    if not _is_plain(subject):
        return None
    match prefix:
        case [_, "-c" | "-lc", script] if script == question.command:
            return "Always allow this command"
        case _:
            return f"Always allow {quoted(subject)} with anything after it"


def _is_plain(subject: str) -> bool:
    # Line breaks, control characters and bidirectional marks would hide what is granted.
    return is_plain_code(subject) and 0 < len(subject) <= MAX_RULE_CHARS


def _decision(question: Question, choice: Choice) -> Any:
    decisions = _param(question, "availableDecisions")
    number = choice.choice_id.removeprefix("amendment-")
    if not isinstance(decisions, list) or not number.isdecimal() or int(number) >= len(decisions):
        return None
    return decisions[int(number)]


def _param(question: Question, name: str) -> Any:
    return question.params.get(name) if isinstance(question.params, dict) else None
