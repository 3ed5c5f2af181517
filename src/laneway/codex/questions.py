"""Converts Codex's requests for a decision to `Question`s, and answers to Codex's responses.

Pure. Every kind of question can be declined; an answer that does not clearly grant something declines.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from laneway.codex.items import file_changes, maybe, plain_command
from laneway.core.model import Answer, Choice, Field, FieldOption, FileChange, LastingRule, Question

ACCEPT = Choice(choice_id="accept", label="Allow once", grants="once")
FOR_SESSION = Choice(choice_id="acceptForSession", label="Allow for this session", grants="session")
ALWAYS = Choice(choice_id="acceptAlways", label="Always allow", grants="always")
NO = Choice(choice_id="decline", label="Decline and go on", grants="nothing")
STOP = Choice(choice_id="cancel", label="Decline and stop", grants="stop")

_TOOL_APPROVAL = "mcp_tool_call_approval"
"""The beginning of the ids of input questions that ask whether an MCP tool may run."""
NOTE = "user_note: "
"""The prefix by which Codex's own screen marks a remark that a user adds to an option."""
_CODEX_MARK = "codex_"
"""The beginning of Codex's own keys in an elicitation's `_meta`; elicitations of servers have none."""

_KNOWN = {choice.choice_id: choice for choice in (ACCEPT, FOR_SESSION, NO, STOP)}
_PATCH_CHOICES = (ACCEPT, FOR_SESSION, NO, STOP)


def question_of(
    method: str, params: dict[str, Any], question_id: str, item: dict[str, Any] | None
) -> Question | None:
    """The question in a server request; none if the method asks for no decision."""
    maker = _MAKERS.get(method)
    return maker(params, question_id, item) if maker else None


def reply(method: str, question: Question, answer: Answer) -> dict[str, Any]:
    """The result for Codex. An answer that the question does not offer declines."""
    choice = next((c for c in question.choices if c.choice_id == answer.choice_id), None)
    return _REPLIES[method](question, choice, answer)


# ── requests ────────────────────────────────────────────────────────────────


def _common(params: dict[str, Any], question_id: str) -> dict[str, Any]:
    return {
        "question_id": question_id,
        "thread_id": str(params.get("threadId") or params.get("conversationId") or ""),
        "turn_id": maybe(params.get("turnId"), str),
        "item_id": maybe(params.get("itemId") or params.get("callId"), str),
        "reason": maybe(params.get("reason"), str),
        "cwd": maybe(params.get("cwd"), str),
        "params": params,
    }


def _ask_command(params: dict[str, Any], question_id: str, item: dict[str, Any] | None) -> Question:
    command = params.get("command") or (item or {}).get("command")
    if isinstance(command, list):
        command = " ".join(str(part) for part in command)
    command_text = plain_command(str(command)) if command else None
    network = params.get("networkApprovalContext") or {}
    message = (
        f"Allow network access to {network.get('host')}?" if network.get("host") else "Run this command?"
    )
    return Question(
        kind="command",
        message=message,
        command=command_text,
        choices=_choices_of(params.get("availableDecisions"), command_text),
        **_common(params, question_id),
    )


def _choices_of(decisions: list[Any] | None, command: str | None) -> tuple[Choice, ...]:
    """The decisions that Codex accepts, and in every case a plain decline."""
    if decisions is None:
        return (ACCEPT, FOR_SESSION, NO, STOP)
    choices = []
    for index, decision in enumerate(decisions):
        if isinstance(decision, str):
            choice = _KNOWN.get(decision)
            if choice:
                choices.append(choice)
        elif isinstance(decision, dict) and decision:
            choices.append(_amendment(index, decision, command))
    if NO not in choices:
        choices.append(NO)
    return tuple(choices)


def _amendment(index: int, decision: dict[str, Any], command: str | None) -> Choice:
    name, details = next(iter(decision.items()))
    details = details if isinstance(details, dict) else {}
    prefix = details.get("execpolicy_amendment")
    rule = details.get("network_policy_amendment")
    label = f"Allow by a new rule ({name})"
    if isinstance(rule, dict):
        subject = f"connections to {rule.get('host')}"
        if rule.get("action") != "allow":
            # A rule that blocks, so choosing it declines.
            label = f"Decline and always block {subject}"
            return Choice(
                choice_id=f"amendment-{index}", label=label, grants="nothing", rule=_lasting_rule(decision)
            )
        label = f"Always allow {subject}"
    elif isinstance(prefix, list):
        label = _command_rule([str(word) for word in prefix], command)
    return Choice(choice_id=f"amendment-{index}", label=label, grants="always", rule=_lasting_rule(decision))


def _lasting_rule(decision: dict[str, Any]) -> LastingRule:
    """An empty rule where Codex does not say plainly what it would allow."""
    match decision:
        case {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": [*prefix]}}:
            return LastingRule(command=tuple(prefix) if all(isinstance(word, str) for word in prefix) else ())
        case {
            "applyNetworkPolicyAmendment": {
                "network_policy_amendment": {"host": str(host), "action": "allow" | "deny"}
            }
        }:
            return LastingRule(host=host)
        case _:
            return LastingRule()


def _command_rule(prefix: list[str], command: str | None) -> str:
    """A rule is the beginning of a command, so it allows any further arguments, too."""
    if len(prefix) == 3 and prefix[1] in ("-c", "-lc") and prefix[2] == command:
        return "Always allow this command"
    return f"Always allow {shlex.join(prefix)} with anything after it"


def _ask_patch(params: dict[str, Any], question_id: str, item: dict[str, Any] | None) -> Question:
    # Codex names only the item here; the changes came when it started.
    return Question(
        kind="patch",
        message="Apply these changes?",
        changes=_changes(params, item),
        choices=_PATCH_CHOICES,
        **_common(params, question_id),
    )


def _changes(params: dict[str, Any], item: dict[str, Any] | None) -> tuple[FileChange, ...]:
    if item:
        return file_changes(item.get("changes"))
    legacy = params.get("fileChanges") or {}
    return tuple(
        FileChange(
            path=str(path), kind="update", diff=str((change.get("update") or {}).get("unified_diff", ""))
        )
        for path, change in legacy.items()
        if isinstance(change, dict)
    )


def _ask_permissions(params: dict[str, Any], question_id: str, item: dict[str, Any] | None) -> Question:
    return Question(
        kind="permissions",
        message="Grant these permissions?",
        schema=params.get("permissions"),
        choices=(
            Choice(choice_id="accept", label="Grant for this turn", grants="once"),
            Choice(choice_id="acceptForSession", label="Grant for this session", grants="session"),
            NO,
        ),
        **_common(params, question_id),
    )


def _ask_input(params: dict[str, Any], question_id: str, item: dict[str, Any] | None) -> Question:
    fields = tuple(
        Field(
            field_id=str(question["id"]),
            header=str(question.get("header", "")),
            text=str(question.get("question", "")),
            options=tuple(_option(option) for option in question.get("options") or []),
            is_secret=bool(question.get("isSecret")),
            allows_other=bool(question.get("isOther")),
        )
        for question in params.get("questions") or []
    )
    message = fields[0].text if len(fields) == 1 else "Codex has questions."
    return Question(
        kind="input",
        message=message,
        fields=fields,
        choices=(Choice(choice_id="accept", label="Answer", grants="once"), NO),
        is_escalation=any(field.field_id.startswith(_TOOL_APPROVAL) for field in fields),
        **_common(params, question_id),
    )


def _option(option: dict[str, Any]) -> FieldOption:
    label, description = str(option.get("label", "")), maybe(option.get("description"), str) or ""
    return FieldOption(label=label, description="" if description == label else description)


def _ask_elicitation(params: dict[str, Any], question_id: str, item: dict[str, Any] | None) -> Question:
    server = params.get("serverName") or params.get("server") or "An MCP server"
    lasting_choices = _lasting_choices(params)
    accept = ACCEPT if lasting_choices else Choice(choice_id="accept", label="Accept", grants="once")
    return Question(
        kind="elicitation",
        message=str(params.get("message") or params.get("description") or f"{server} asks for input."),
        schema=params.get("requestedSchema"),
        url=maybe(params.get("url"), str),
        choices=(accept, *lasting_choices, NO, STOP),
        is_escalation=bool(lasting_choices) or _is_from_codex(params),
        **_common(params, question_id),
    )


def _is_from_codex(params: dict[str, Any]) -> bool:
    """Whether Codex itself asks, to run or install an MCP tool; otherwise an MCP server asks."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and any(str(key).startswith(_CODEX_MARK) for key in meta)


def _lasting_choices(params: dict[str, Any]) -> tuple[Choice, ...]:
    """The choices that hold for longer, if Codex offers them: so far for running an MCP tool."""
    meta = params.get("_meta")
    persist = meta.get("persist") if isinstance(meta, dict) else None
    scopes = persist if isinstance(persist, list) else [persist]
    return tuple(choice for choice in (FOR_SESSION, ALWAYS) if choice.grants in scopes)


_MAKERS: dict[str, Callable[[dict[str, Any], str, dict[str, Any] | None], Question]] = {
    "item/commandExecution/requestApproval": _ask_command,
    "execCommandApproval": _ask_command,
    "item/fileChange/requestApproval": _ask_patch,
    "applyPatchApproval": _ask_patch,
    "item/permissions/requestApproval": _ask_permissions,
    "item/tool/requestUserInput": _ask_input,
    "mcpServer/elicitation/request": _ask_elicitation,
}


# ── responses ─────────────────────────────────────────────────────────────


def _reply_decision(question: Question, choice: Choice | None, answer: Answer) -> dict[str, Any]:
    if choice is None:
        return {"decision": "decline"}
    if choice.choice_id.startswith("amendment-"):
        return {"decision": question.params["availableDecisions"][int(choice.choice_id[len("amendment-") :])]}
    return {"decision": choice.choice_id}


_LEGACY = {"once": "approved", "session": "approved_for_session", "stop": "abort"}


def _reply_legacy(question: Question, choice: Choice | None, answer: Answer) -> dict[str, Any]:
    grants = choice.grants if choice else "nothing"
    return {"decision": _LEGACY.get(grants, {"denied": {"rejection": "The user declined."}})}


def _reply_permissions(question: Question, choice: Choice | None, answer: Answer) -> dict[str, Any]:
    if choice is None or choice.grants not in ("once", "session"):
        return {"permissions": {}, "scope": "turn"}
    return {
        "permissions": question.schema or {},
        "scope": "session" if choice.grants == "session" else "turn",
    }


def _reply_input(question: Question, choice: Choice | None, answer: Answer) -> dict[str, Any]:
    if choice is None or choice.grants != "once":
        return {"answers": {}}
    answers = {}
    for field in question.fields:
        value = answer.values.get(field.field_id)
        if value is not None:
            answers[field.field_id] = {"answers": _marked(field, value)}
    return {"answers": answers}


def _marked(field: Field, value: Any) -> list[str]:
    """The answer to a field as Codex takes it: own words beside an option are marked."""
    texts = [str(each) for each in value] if isinstance(value, list) else [str(value)]
    labels = {option.label for option in field.options}
    if not labels.intersection(texts):
        return texts
    return [text if text in labels or text.startswith(NOTE) else NOTE + text for text in texts]


def _reply_elicitation(question: Question, choice: Choice | None, answer: Answer) -> dict[str, Any]:
    grants = choice.grants if choice else "nothing"
    if grants in ("once", "session", "always"):
        content = answer.values or ({} if question.schema else None)
        meta = {} if grants == "once" else {"_meta": {"persist": grants}}
        return {"action": "accept", "content": content, **meta}
    return {"action": "cancel" if grants == "stop" else "decline"}


_REPLIES: dict[str, Callable[[Question, Choice | None, Answer], dict[str, Any]]] = {
    "item/commandExecution/requestApproval": _reply_decision,
    "item/fileChange/requestApproval": _reply_decision,
    "execCommandApproval": _reply_legacy,
    "applyPatchApproval": _reply_legacy,
    "item/permissions/requestApproval": _reply_permissions,
    "item/tool/requestUserInput": _reply_input,
    "mcpServer/elicitation/request": _reply_elicitation,
}

assert _MAKERS.keys() == _REPLIES.keys()
