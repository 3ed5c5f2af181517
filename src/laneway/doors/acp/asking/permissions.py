"""A question as the options of `session/request_permission`, and what the client's reply means.

Pure. Offers exactly what Codex takes and a person can judge: a rule whose words cannot be shown
whole and plainly is not offered. There is always a no after which the turn goes on. Whatever is
not clearly one of the options shown is a no.
"""

from __future__ import annotations

import shlex
from typing import Any

from laneway.base.plain import is_plain_code, label, quoted
from laneway.core.model import DECLINE, Answer, Choice, Question

MAX_RULE_CHARS = 200
"""Of what is allowed for good: more does not fit a button, and nobody may be made to grant half of it."""

_KINDS = {
    "once": "allow_once",
    "session": "allow_always",
    "always": "allow_always",
    "nothing": "reject_once",
    "stop": "reject_once",
}
_ORDER = ("once", "session", "always", "nothing", "stop")


def options(question: Question) -> list[dict[str, Any]]:
    """The `PermissionOption`s, in the order: once, for longer, no. `optionId` is the choice's id."""
    shown = sorted(_shown(question), key=lambda choice: _ORDER.index(choice.grants))
    return [
        {"optionId": choice.choice_id, "name": _name(question, choice), "kind": _kind(choice)}
        for choice in shown
    ]


def answer(question: Question, reply: Any) -> Answer:
    """What was chosen. Cancelled by the client: stop, where that can be said; garbage: decline."""
    picked = chosen(reply, options(question))
    if picked is not None:
        return Answer(choice_id=picked["optionId"])
    return stopped(question) if _outcome(reply).get("outcome") == "cancelled" else DECLINE


def chosen(reply: Any, offered: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The option that was selected; none if that is no option of these."""
    outcome = _outcome(reply)
    if outcome.get("outcome") != "selected":
        return None
    return next((option for option in offered if option["optionId"] == outcome.get("optionId")), None)


def _outcome(reply: Any) -> dict[str, Any]:
    outcome = reply.get("outcome") if isinstance(reply, dict) else None
    return outcome if isinstance(outcome, dict) else {}


def stopped(question: Question) -> Answer:
    """Decline and end what was asked for, where the question offers that."""
    ending = next((choice for choice in question.choices if choice.grants == "stop"), None)
    return Answer(choice_id=ending.choice_id) if ending else DECLINE


# ── which ──────────────────────────────────────────────────────────────────


def _shown(question: Question) -> list[Choice]:
    return [choice for choice in question.choices if _is_offered(question, choice)]


def _is_offered(question: Question, choice: Choice) -> bool:
    if question.kind == "elicitation":
        # To an MCP server, cancelled is declined in another word: it stops nothing.
        return choice.grants != "stop"
    if choice.choice_id.startswith("amendment-"):
        return _rule(question, choice) is not None
    if choice.choice_id == DECLINE.choice_id:
        return True  # Codex takes it also where it lists only the no that stops (measured, 0.163)
    decisions = _param(question, "availableDecisions")
    return not isinstance(decisions, list) or choice.choice_id in [d for d in decisions if isinstance(d, str)]


def _kind(choice: Choice) -> str:
    is_rule = choice.choice_id.startswith("amendment-")
    return "reject_always" if is_rule and choice.grants == "nothing" else _KINDS[choice.grants]


# ── words ──────────────────────────────────────────────────────────────────


def _name(question: Question, choice: Choice) -> str:
    if choice.choice_id.startswith("amendment-"):
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
