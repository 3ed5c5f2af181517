"""Field names and shapes of the old `codex mcp-server`'s events: settings, commands, edits, questions.

Pure: records of app-server in, records of the old server (0.153.4) out, as the traces under
`tests/golden/mcp-server-0.153.4` show them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from laneway.core.model import Field, FileChange, Question, Tokens

Message = dict[str, Any]

COMPACT = frozenset(
    {
        "session_configured",
        "task_started",
        "agent_message",
        "agent_reasoning",
        "plan_update",
        "exec_command_begin",
        "exec_command_end",
        "patch_apply_begin",
        "patch_apply_end",
        "mcp_tool_call_begin",
        "mcp_tool_call_end",
        "web_search_begin",
        "web_search_end",
        "view_image_tool_call",
        "exec_approval_request",
        "apply_patch_approval_request",
        "request_user_input",
        "request_permissions",
        "elicitation_request",
        "token_count",
        "context_compacted",
        "error",
        "stream_error",
        "warning",
        "turn_aborted",
        "task_complete",
    }
)
"""The message types of the level `compact`."""
OMITTED = frozenset(
    {
        "account/updated",
        "app/list/updated",
        "item/mcpToolCall/progress",
        "remoteControl/status/changed",
        "skills/changed",
        "thread/archived",
        "thread/closed",
        "thread/compacted",
        "thread/readState/changed",
        "thread/started",
        "thread/status/changed",
        "thread/unarchived",
    }
)
"""Notifications that the old server had no event for: it reported them otherwise, or not at all."""
LIMITS = "account/rateLimits/updated"
"""Part of each token count in the old server; app-server sends it right after the count."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
PROTECTED = (".git", ".agents", ".codex")
"""Folders that Codex keeps read-only in a writable root."""


def frame_params(frame: bytes) -> Message:
    """The parameters of the notification that an event came from; none where another engine sent it."""
    message = msgspec.json.decode(frame) if frame else None
    params = message.get("params") if isinstance(message, dict) else None
    return params if isinstance(params, dict) else {}


def snake(name: str) -> str:
    """`camelCase` and `some/methodName` in snake_case, as the old server wrote them."""
    return _HUMP.sub("_", name).replace("/", "_").lower()


def snake_keys(value: Any) -> Any:
    """A record with all its field names in snake_case, at every depth."""
    match value:
        case dict():
            return {snake(key): snake_keys(inner) for key, inner in value.items()}
        case list():
            return [snake_keys(inner) for inner in value]
        case _:
            return value


def without_none(record: Message) -> Message:
    """The record without fields that are None: the old server left them out."""
    return {key: value for key, value in record.items() if value is not None}


def duration(milliseconds: Any) -> Message:
    whole = milliseconds if isinstance(milliseconds, int) else 0
    return {"secs": whole // 1000, "nanos": whole % 1000 * 1_000_000}


# ── a thread's settings ────────────────────────────────────────────────────


def session_configured(answer: Message) -> Message:
    """The first event of a thread, from the answer to `thread/start` or `thread/resume`."""
    thread = answer.get("thread") or answer
    profile = answer.get("activePermissionProfile")
    cwd = str(answer.get("cwd") or thread.get("cwd") or "")
    fields = {
        "type": "session_configured",
        "session_id": thread.get("sessionId") or thread.get("id"),
        "forked_from_id": thread.get("forkedFromId"),
        "thread_id": thread.get("id"),
        "thread_name": thread.get("name"),
        "model": answer.get("model"),
        "model_provider_id": answer.get("modelProvider") or thread.get("modelProvider"),
        "service_tier": answer.get("serviceTier"),
        "approval_policy": answer.get("approvalPolicy"),
        "approvals_reviewer": answer.get("approvalsReviewer"),
        "permission_profile": permission_profile(answer.get("sandbox") or {}, cwd),
        "active_permission_profile": without_none(profile) if isinstance(profile, dict) else None,
        "cwd": cwd,
        "reasoning_effort": answer.get("reasoningEffort"),
        "rollout_path": thread.get("path"),
    }
    return without_none(fields)


def permission_profile(sandbox: Message, cwd: str) -> Message | None:
    """A sandbox as the old server described it: a list of paths that may be read or written."""
    kind = sandbox.get("type")
    if kind == "dangerFullAccess":
        return {"type": "disabled"}
    if kind not in ("readOnly", "workspaceWrite"):
        return None
    entries: list[Message] = [_special("root", "read")]
    if kind == "workspaceWrite":
        roots = [cwd, *(str(root) for root in sandbox.get("writableRoots") or [])]
        entries += [_path(root, "write") for root in roots]
        if not sandbox.get("excludeSlashTmp"):
            entries.append(_special("slash_tmp", "write"))
        if not sandbox.get("excludeTmpdirEnvVar"):
            entries.append(_special("tmpdir", "write"))
        entries += [
            {**_path(f"{root}/{name}", "read"), "missing_path_behavior": "skip"}
            for name in PROTECTED
            for root in roots
        ]
    network = "enabled" if sandbox.get("networkAccess") else "restricted"
    return {
        "type": "managed",
        "file_system": {"type": "restricted", "entries": entries},
        "network": network,
    }


def _special(kind: str, access: str) -> Message:
    return {"path": {"type": "special", "value": {"kind": kind}}, "access": access}


def _path(path: str, access: str) -> Message:
    return {"path": {"type": "path", "path": path}, "access": access}


def user_input(part: Any) -> Message:
    """One part of a user's input."""
    kind, fields = snake(str(part["type"])), {key: value for key, value in part.items() if key != "type"}
    if kind == "image" and "url" in fields:
        fields = {"image_url": fields["url"]}
    return {"type": kind, **fields}


def token_counts(tokens: Tokens, counts: Any) -> Message:
    """Token counts; `counts`, Codex's own record, has more fields, if there is one."""
    counts = counts if isinstance(counts, dict) else {}
    return {
        "input_tokens": counts.get("inputTokens", tokens.input),
        "cached_input_tokens": counts.get("cachedInputTokens", tokens.cached_input),
        "cache_write_input_tokens": counts.get("cacheWriteInputTokens", 0),
        "output_tokens": counts.get("outputTokens", tokens.output),
        "reasoning_output_tokens": counts.get("reasoningOutputTokens", tokens.reasoning),
        "total_tokens": counts.get("totalTokens", tokens.total),
    }


def error_info(info: Any) -> Any:
    """The kind of an error: a word, or a word with details."""
    return snake(info) if isinstance(info, str) else snake_keys(info)


# ── commands and edits ─────────────────────────────────────────────────────


def argv(command: Any) -> list[str]:
    """The arguments of a command as a list; app-server sends them joined and quoted."""
    if isinstance(command, list):
        return [str(argument) for argument in command]
    try:
        return shlex.split(str(command or ""))
    except ValueError:
        return [str(command)]


def parsed_commands(actions: Any) -> list[Message]:
    return [
        {
            ("cmd" if key == "command" else key): snake(value) if key == "type" else value
            for key, value in action.items()
        }
        for action in actions or []
        if isinstance(action, dict)
    ]


def file_url(path: str) -> str:
    if path.isalnum() or not path.startswith("/"):
        return path
    from urllib.parse import quote  # imported late: not needed for the first answer

    return "file://" + quote(path)


def changes_json(changes: Iterable[FileChange]) -> Message:
    """Edits by path, as in approvals and patch events."""
    by_path: Message = {}
    for change in changes:
        if change.kind == "update":
            diff = change.diff.removesuffix(f"\n\nMoved to: {change.move_path}")
            by_path[change.path] = {"type": "update", "unified_diff": diff, "move_path": change.move_path}
        else:
            by_path[change.path] = {"type": change.kind, "content": change.diff}
    return by_path


# ── questions ──────────────────────────────────────────────────────────────


def question_messages(question: Question, at_ms: int) -> list[Message]:
    """The event that the old server sent before it asked for an approval."""
    maker = _QUESTIONS.get(question.kind)
    if maker is None:
        return []
    params = question.params if isinstance(question.params, dict) else {}
    return [maker(question, params, at_ms)]


def _ask_command(question: Question, params: Message, at_ms: int) -> Message:
    fields = {
        "type": "exec_approval_request",
        "kind": params.get("kind"),
        "call_id": question.item_id,
        "approval_id": params.get("approvalId"),
        "turn_id": question.turn_id,
        "environmentId": params.get("environmentId"),
        "started_at_ms": at_ms,
        "command": argv(params.get("command") or question.command),
        "cwd": question.cwd,
        "reason": question.reason,
        "network_approval_context": snake_keys(params.get("networkApprovalContext")),
        "proposed_execpolicy_amendment": params.get("proposedExecpolicyAmendment"),
        "available_decisions": [decision(each) for each in params.get("availableDecisions") or []] or None,
        "parsed_cmd": parsed_commands(params.get("commandActions")),
    }
    return without_none(fields)


_DECISIONS = {
    "accept": "approved",
    "acceptForSession": "approved_for_session",
    "decline": "denied",
    "cancel": "abort",
}


def decision(decision_json: Any) -> Any:
    """A decision of app-server in the old server's terms."""
    if isinstance(decision_json, str):
        return _DECISIONS.get(decision_json, decision_json)
    rule = decision_json.get("acceptWithExecpolicyAmendment") if isinstance(decision_json, dict) else None
    if isinstance(rule, dict):
        prefix = rule.get("execpolicy_amendment")
        return {"approved_execpolicy_amendment": {"proposed_execpolicy_amendment": prefix}}
    return decision_json


def _ask_patch(question: Question, params: Message, at_ms: int) -> Message:
    fields = {
        "type": "apply_patch_approval_request",
        "call_id": question.item_id,
        "turn_id": question.turn_id,
        "started_at_ms": at_ms,
        "changes": changes_json(question.changes),
        "reason": question.reason,
        "grant_root": params.get("grantRoot"),
    }
    return without_none(fields)


def _ask_input(question: Question, params: Message, at_ms: int) -> Message:
    return {
        "type": "request_user_input",
        "call_id": question.item_id,
        "turn_id": question.turn_id,
        "questions": params.get("questions") or [_field(field) for field in question.fields],
        "isBlocking": bool(params.get("isBlocking")),
    }


def _field(field: Field) -> Message:
    options = [{"label": option.label, "description": option.description} for option in field.options]
    return {
        "id": field.field_id,
        "header": field.header,
        "question": field.text,
        "isOther": field.allows_other,
        "isSecret": field.is_secret,
        "options": options or None,
    }


def _ask_permissions(question: Question, params: Message, at_ms: int) -> Message:
    fields = {
        "type": "request_permissions",
        "call_id": question.item_id,
        "turn_id": question.turn_id,
        "started_at_ms": at_ms,
        "reason": question.reason,
        "permissions": snake_keys(question.schema),
        "cwd": question.cwd,
    }
    return without_none(fields)


def _ask_elicitation(question: Question, params: Message, at_ms: int) -> Message:
    form = {"mode": "form", "message": question.message, "requested_schema": question.schema}
    link = {"mode": "url", "message": question.message, "url": question.url}
    fields = {
        "type": "elicitation_request",
        "turn_id": question.turn_id,
        "server_name": params.get("serverName"),
        "id": question.question_id,
        "request": link if question.url else form,
    }
    return without_none(fields)


_QUESTIONS: dict[str, Callable[[Question, Message, int], Message]] = {
    "command": _ask_command,
    "patch": _ask_patch,
    "input": _ask_input,
    "permissions": _ask_permissions,
    "elicitation": _ask_elicitation,
}
