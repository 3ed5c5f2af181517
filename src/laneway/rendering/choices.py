"""The choices of a question for display: which are offered, in which order, with which labels. Pure.

Offers exactly what the engine accepts and a user can judge: a lasting rule that cannot be shown whole
and in plain characters is not offered. There is always a way to decline without ending the turn.
"""

from __future__ import annotations

import shlex
from typing import Any

from laneway.base.plain import is_plain_code, label, quoted
from laneway.core.model import DECLINE, Choice, LastingRule, Question

MAX_RULE_CHARS = 200
"""Of a lasting rule: more does not fit on a button, and nobody must grant a rule that is cut."""

_ORDER = ("once", "session", "always", "nothing", "stop")


def offered(question: Question) -> list[Choice]:
    """The choices to show, in the order: once, for longer, decline."""
    choices = [choice for choice in question.choices if _is_offered(question, choice)]
    return sorted(choices, key=lambda choice: _ORDER.index(choice.grants))


def _is_offered(question: Question, choice: Choice) -> bool:
    if question.kind == "elicitation":
        # For an MCP server, cancelling is declining by another name: it stops nothing.
        return choice.grants != "stop"
    if choice.rule is not None:
        return _rule_label(question, choice, choice.rule) is not None
    if choice.choice_id == DECLINE.choice_id:
        return True  # Codex accepts it even where it lists only the one that stops (measured, 0.163)
    decisions = _param(question, "availableDecisions")
    return not isinstance(decisions, list) or choice.choice_id in [d for d in decisions if isinstance(d, str)]


# ── labels ─────────────────────────────────────────────────────────────────


def name(question: Question, choice: Choice) -> str:
    """The label of a choice, for a button."""
    if choice.rule is not None:
        return _rule_label(question, choice, choice.rule) or label(choice.label)
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


def _rule_label(question: Question, choice: Choice, rule: LastingRule) -> str | None:
    """The label of a lasting rule; none if it cannot be shown whole and in plain characters."""
    if rule.command:
        return _command_rule(question, rule.command)
    verb = "block" if choice.grants == "nothing" else "allow"
    return f"Always {verb} connections to {quoted(rule.host)}" if _is_plain(rule.host) else None


def _command_rule(question: Question, prefix: tuple[str, ...]) -> str | None:
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


def _param(question: Question, name: str) -> Any:
    return question.params.get(name) if isinstance(question.params, dict) else None
