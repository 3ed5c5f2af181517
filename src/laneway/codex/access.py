"""Reads a Codex thread's access (approval policy, sandbox, profile) from Codex's answers and its config.

Pure but for `last_permit`. Permits are compared by the core (`laneway.core.access`). `sandbox` starts a
thread so that Codex does not trust its folder; `turn_settings` sets the access of a turn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laneway.codex import sandbox as sandbox_rules
from laneway.core.access import READ_ONLY, FolderConfig, Permit, whole
from laneway.core.offers import ThreadState

_READ_KEYS = (*sandbox_rules.DECIDES, "model_providers", "features")
"""Keys of the user's configuration that the engine reads when it opens a thread."""
_MODES = {
    "ask": ("untrusted", "workspace-write"),
    "code": ("on-request", "workspace-write"),
    "read-only": ("on-request", "read-only"),
    "full": ("never", "danger-full-access"),
}


def permit(answer: dict[str, Any]) -> Permit:
    """The access of a thread, from Codex's answer to `thread/start`, `resume` or `fork`."""
    active = answer.get("activePermissionProfile")
    profile = active.get("id") if isinstance(active, dict) else None
    approval = answer.get("approvalPolicy") or "on-request"
    return Permit(approval, whole(answer.get("sandbox")), sandbox_rules.own_profile(profile))


def thread_state(answer: dict[str, Any]) -> ThreadState:
    """Model, effort, access and plan mode of a thread, from the same answer."""
    return ThreadState(
        model=str(answer.get("model") or ""),
        effort=answer.get("reasoningEffort"),
        permit=permit(answer),
        is_planning=is_planning(answer),
    )


def is_planning(settings: Any) -> bool:
    """Whether a thread is in plan mode, from an answer or a notification that contains its settings."""
    mode = settings.get("collaborationMode") if isinstance(settings, dict) else None
    return isinstance(mode, dict) and mode.get("mode") == "plan"


def folder_config(config: dict[str, Any]) -> FolderConfig:
    """The answer to `config/read` for a folder, as the core's value."""
    mode = sandbox_rules.mode_of(config)
    servers = config.get("mcp_servers")
    return FolderConfig(
        approval=config.get("approval_policy"),
        sandbox=None if mode is None else _policy(mode, config),
        profile=sandbox_rules.own_profile(config.get("default_permissions")),
        modes={name: Permit(approval, _policy(mode, config)) for name, (approval, mode) in _MODES.items()},
        is_sandbox_set=bool(config.get("sandbox_mode") or config.get("default_permissions")),
        personality=_text(config.get("personality")),
        reasoning_summary=_text(config.get("model_reasoning_summary")),
        mcp_servers=frozenset(servers) if isinstance(servers, dict) else frozenset(),
        native={name: config[name] for name in _READ_KEYS if config.get(name) is not None},
    )


def last_permit(answer: dict[str, Any]) -> Permit:
    """The last access of another program's thread, from its record; if unknown, the narrowest. Blocking."""
    from laneway.codex.rollout import last_access  # for threads of others only

    thread = answer.get("thread")
    path = thread.get("path") if isinstance(thread, dict) else None
    return permit((last_access(Path(path)) if isinstance(path, str) else None) or {})


def _policy(mode: str, config: dict[str, Any]) -> dict[str, Any]:
    if mode in ("workspace-write", "danger-full-access"):
        return whole(sandbox_rules.policy(mode, config.get(sandbox_rules.TABLE), {}))
    return whole({"type": READ_ONLY})


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
