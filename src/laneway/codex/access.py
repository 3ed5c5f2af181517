"""How far a Codex thread may go: what Codex answers, and what config.toml means.

Pure but for `last_permit`. The rules by which permits are compared are the core's
(`laneway.core.access`); how a thread is started without being trusted for it is in `sandbox`, and how a
turn says it in `turn_settings`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laneway.codex import sandbox as start
from laneway.core.access import READ_ONLY, FolderConfig, Permit, whole
from laneway.core.offers import ThreadState

_READ_BY_US = (*start.DECIDES, "model_providers", "features")
"""Of the user's configuration, what the engine looks at when it opens a thread."""
_MODES = {
    "ask": ("untrusted", "workspace-write"),
    "code": ("on-request", "workspace-write"),
    "read-only": ("on-request", "read-only"),
    "full": ("never", "danger-full-access"),
}


def permit(answer: dict[str, Any]) -> Permit:
    """What Codex says that a thread may do, in its answer to `thread/start`, `resume` or `fork`."""
    active = answer.get("activePermissionProfile")
    profile = active.get("id") if isinstance(active, dict) else None
    approval = answer.get("approvalPolicy") or "on-request"
    return Permit(approval, whole(answer.get("sandbox")), start.own_profile(profile))


def thread_state(answer: dict[str, Any]) -> ThreadState:
    """How a thread runs, by the same answer."""
    return ThreadState(
        model=str(answer.get("model") or ""),
        effort=answer.get("reasoningEffort"),
        permit=permit(answer),
        is_planning=is_planning(answer),
    )


def is_planning(settings: Any) -> bool:
    """Whether a thread is in plan mode, by whatever Codex tells of its settings."""
    mode = settings.get("collaborationMode") if isinstance(settings, dict) else None
    return isinstance(mode, dict) and mode.get("mode") == "plan"


def folder_config(config: dict[str, Any]) -> FolderConfig:
    """What `config/read` answered for a folder."""
    mode = start.mode_of(config)
    servers = config.get("mcp_servers")
    return FolderConfig(
        approval=config.get("approval_policy"),
        sandbox=None if mode is None else _policy(mode, config),
        profile=start.own_profile(config.get("default_permissions")),
        modes={name: Permit(asks, _policy(mode, config)) for name, (asks, mode) in _MODES.items()},
        is_sandbox_set=bool(config.get("sandbox_mode") or config.get("default_permissions")),
        personality=_text(config.get("personality")),
        reasoning_summary=_text(config.get("model_reasoning_summary")),
        mcp_servers=frozenset(servers) if isinstance(servers, dict) else frozenset(),
        native={name: config[name] for name in _READ_BY_US if config.get(name) is not None},
    )


def last_permit(answer: dict[str, Any]) -> Permit:
    """Of a thread that others ran, by its record; if that does not tell, as narrow as can be. Blocking."""
    from laneway.codex.rollout import last_access  # for threads of others only

    thread = answer.get("thread")
    path = thread.get("path") if isinstance(thread, dict) else None
    return permit((last_access(Path(path)) if isinstance(path, str) else None) or {})


def _policy(mode: str, config: dict[str, Any]) -> dict[str, Any]:
    if mode in ("workspace-write", "danger-full-access"):
        return whole(start.policy(mode, config.get(start.TABLE), {}))
    return whole({"type": READ_ONLY})


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
