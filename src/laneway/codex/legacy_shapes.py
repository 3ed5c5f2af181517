"""Words and shapes that `codex mcp-server` 0.153.4 used in its events: names, settings, edits, questions.

Pure: records of app-server in, records of the old server out, as the traces under
`tests/golden/mcp-server-0.153.4` show them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any

from laneway.core.model import FileChange, Question, Tokens

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
"""What `compact` tells."""
UNTOLD = frozenset(
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
"""Notifications that the old server had no event for and whose news it told otherwise, or not at all."""
LIMITS = "account/rateLimits/updated"
"""Told by the old server inside each count of tokens, by app-server right behind it."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
PROTECTED = (".git", ".agents", ".codex")
"""Folders that Codex keeps read-only in a writable root."""


def snake(name: str) -> str:
    """`camelCase` and `some/methodName` as the old server spelled them."""
    return _HUMP.sub("_", name).replace("/", "_").lower()


def snaked(value: Any) -> Any:
    """A record with all its field names in snake_case."""
    match value:
        case dict():
            return {snake(key): snaked(inner) for key, inner in value.items()}
        case list():
            return [snaked(inner) for inner in value]
        case _:
            return value


def given(record: Message) -> Message:
    """Without the fields that nobody set: the old server left them out."""
    return {key: value for key, value in record.items() if value is not None}


def duration(milliseconds: Any) -> Message:
    whole = milliseconds if isinstance(milliseconds, int) else 0
    return {"secs": whole // 1000, "nanos": whole % 1000 * 1_000_000}


# ── a thread's settings ────────────────────────────────────────────────────


def session_configured(started: Message) -> Message:
    """From the answer to `thread/start`, or to `thread/resume`."""
    thread = started.get("thread") or started
    profile = started.get("activePermissionProfile")
    cwd = str(started.get("cwd") or thread.get("cwd") or "")
    told = {
        "type": "session_configured",
        "session_id": thread.get("sessionId") or thread.get("id"),
        "forked_from_id": thread.get("forkedFromId"),
        "thread_id": thread.get("id"),
        "thread_name": thread.get("name"),
        "model": started.get("model"),
        "model_provider_id": started.get("modelProvider") or thread.get("modelProvider"),
        "service_tier": started.get("serviceTier"),
        "approval_policy": started.get("approvalPolicy"),
        "approvals_reviewer": started.get("approvalsReviewer"),
        "permission_profile": permission_profile(started.get("sandbox") or {}, cwd),
        "active_permission_profile": given(profile) if isinstance(profile, dict) else None,
        "cwd": cwd,
        "reasoning_effort": started.get("reasoningEffort"),
        "rollout_path": thread.get("path"),
    }
    return given(told)


def permission_profile(sandbox: Message, cwd: str) -> Message | None:
    """The old server told a sandbox as the list of what may be read and written."""
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
    """One part of what a person said."""
    kind, fields = snake(str(part["type"])), {key: value for key, value in part.items() if key != "type"}
    if kind == "image" and "url" in fields:
        fields = {"image_url": fields["url"]}
    return {"type": kind, **fields}


def token_counts(tokens: Tokens, counts: Any) -> Message:
    """Codex's own record of them, where there is one, tells more."""
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
    """Codex's word for the kind of an error: a word, or a word with details."""
    return snake(info) if isinstance(info, str) else snaked(info)


# ── commands and edits ─────────────────────────────────────────────────────


def argv(command: Any) -> list[str]:
    """The old server told the words of a command; app-server joins and quotes them."""
    if isinstance(command, list):
        return [str(word) for word in command]
    try:
        return shlex.split(str(command or ""))
    except ValueError:
        return [str(command)]


def parsed(actions: Any) -> list[Message]:
    return [
        {
            ("cmd" if key == "command" else key): snake(value) if key == "type" else value
            for key, value in a.items()
        }
        for a in actions or []
        if isinstance(a, dict)
    ]


def file_url(path: str) -> str:
    if path.isalnum() or not path.startswith("/"):
        return path
    from urllib.parse import quote  # not on the way to the first answer

    return "file://" + quote(path)


def changed(changes: Iterable[FileChange]) -> Message:
    """Edits by path, as approvals and patches told them."""
    told: Message = {}
    for change in changes:
        if change.kind == "update":
            diff = change.diff.removesuffix(f"\n\nMoved to: {change.move_path}")
            told[change.path] = {"type": "update", "unified_diff": diff, "move_path": change.move_path}
        else:
            told[change.path] = {"type": change.kind, "content": change.diff}
    return told


# ── questions ──────────────────────────────────────────────────────────────


def asked(question: Question, at_ms: int) -> list[Message]:
    """The event that came before an approval was asked for."""
    maker = _QUESTIONS.get(question.kind)
    if maker is None:
        return []
    params = question.params if isinstance(question.params, dict) else {}
    return [maker(question, params, at_ms)]


def _ask_command(question: Question, params: Message, at_ms: int) -> Message:
    told = {
        "type": "exec_approval_request",
        "kind": params.get("kind"),
        "call_id": question.item_id,
        "approval_id": params.get("approvalId"),
        "turn_id": question.turn_id,
        "environmentId": params.get("environmentId"),
        "started_at_ms": at_ms,
        "command": argv(params.get("command")),
        "cwd": question.cwd,
        "reason": question.reason,
        "network_approval_context": snaked(params.get("networkApprovalContext")),
        "proposed_execpolicy_amendment": params.get("proposedExecpolicyAmendment"),
        "available_decisions": [decision(one) for one in params.get("availableDecisions") or []] or None,
        "parsed_cmd": parsed(params.get("commandActions")),
    }
    return given(told)


_DECISIONS = {
    "accept": "approved",
    "acceptForSession": "approved_for_session",
    "decline": "denied",
    "cancel": "abort",
}


def decision(offered: Any) -> Any:
    """A decision of today in the old server's words."""
    if isinstance(offered, str):
        return _DECISIONS.get(offered, offered)
    rule = offered.get("acceptWithExecpolicyAmendment") if isinstance(offered, dict) else None
    if isinstance(rule, dict):
        words = rule.get("execpolicy_amendment")
        return {"approved_execpolicy_amendment": {"proposed_execpolicy_amendment": words}}
    return offered


def _ask_patch(question: Question, params: Message, at_ms: int) -> Message:
    told = {
        "type": "apply_patch_approval_request",
        "call_id": question.item_id,
        "turn_id": question.turn_id,
        "started_at_ms": at_ms,
        "changes": changed(question.changes),
        "reason": question.reason,
        "grant_root": params.get("grantRoot"),
    }
    return given(told)


def _ask_input(question: Question, params: Message, at_ms: int) -> Message:
    return {
        "type": "request_user_input",
        "call_id": question.item_id,
        "turn_id": question.turn_id,
        "questions": params.get("questions") or [],
        "isBlocking": bool(params.get("isBlocking")),
    }


def _ask_permissions(question: Question, params: Message, at_ms: int) -> Message:
    told = {
        "type": "request_permissions",
        "call_id": question.item_id,
        "turn_id": question.turn_id,
        "started_at_ms": at_ms,
        "reason": question.reason,
        "permissions": snaked(question.schema),
        "cwd": question.cwd,
    }
    return given(told)


def _ask_elicitation(question: Question, params: Message, at_ms: int) -> Message:
    form = {"mode": "form", "message": question.message, "requested_schema": question.schema}
    page = {"mode": "url", "message": question.message, "url": question.url}
    told = {
        "type": "elicitation_request",
        "turn_id": question.turn_id,
        "server_name": params.get("serverName"),
        "id": question.question_id,
        "request": page if question.url else form,
    }
    return given(told)


_QUESTIONS: dict[str, Callable[[Question, Message, int], Message]] = {
    "command": _ask_command,
    "patch": _ask_patch,
    "input": _ask_input,
    "permissions": _ask_permissions,
    "elicitation": _ask_elicitation,
}
