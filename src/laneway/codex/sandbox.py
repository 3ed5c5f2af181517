"""Starts a thread with a writable sandbox without making Codex trust its folder.

`thread/start` with such a sandbox, requested by us or by the user's `config.toml`, makes Codex record
the project there as trusted (0.163), and from then on a repository's own config is loaded. Nobody
asked for that, so the thread is started read-only, and its first turn sets its access, which then stays.
Every front end starts its threads this way; `first_settings` decides it.

Pure: from the mode and the user's config to the policy that Codex would have derived from them. A
`config` here is nested, as `laneway.core.overrides` makes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TABLE = "sandbox_workspace_write"
ROOTS = "writable_roots"
DECIDES = (TABLE, "sandbox_mode", "default_permissions", "projects")
"""Keys of the user's configuration that are read here."""
START = "read-only"
"""The sandbox of a thread until its first turn: Codex trusts no folder for it."""
_PROFILES = {
    ":read-only": "read-only",
    ":workspace": "workspace-write",
    ":danger-full-access": "danger-full-access",
}
"""Codex's built-in permission profiles, each the same as a mode."""
_NAMES = {
    "writable_roots": "writableRoots",
    "network_access": "networkAccess",
    "exclude_tmpdir_env_var": "excludeTmpdirEnvVar",
    "exclude_slash_tmp": "excludeSlashTmp",
}


def trusting_mode(sandbox: str | None, config: dict[str, Any]) -> str | None:
    """The requested mode, if Codex would trust the folder for it; else none."""
    mode = sandbox or config.get("sandbox_mode")
    return mode if mode in ("workspace-write", "danger-full-access") else None


def mode_of(config: Mapping[str, Any]) -> str | None:
    """The mode in config.toml, by itself or by a built-in profile."""
    mode = config.get("sandbox_mode") or _PROFILES.get(str(config.get("default_permissions")))
    return None if mode is None else str(mode)


def own_profile(profile: Any) -> str | None:
    """The profile, if the user defined it; built-in ones begin with a colon and are only a sandbox."""
    return profile if isinstance(profile, str) and not profile.startswith(":") else None


def first_settings(
    mode: str | None, user_config: Mapping[str, Any], cwd: str, config: dict[str, Any]
) -> dict[str, Any] | None:
    """The settings of the first turn of a thread that is started read-only; none: it starts as requested.

    `mode` is the requested one. Without it config.toml may by itself set a mode for which Codex would
    trust the folder, unless the user has decided about the folder.
    """
    if mode is None and not _is_decided(user_config, cwd):
        mode = trusting_mode(mode_of(user_config), {})
        profile = own_profile(user_config.get("default_permissions"))
        if mode is None and mode_of(user_config) is None and profile and "default_permissions" not in config:
            return {"permissions": profile}
    return None if mode is None else {"sandboxPolicy": policy(mode, user_config.get(TABLE), config)}


def _is_decided(user_config: Mapping[str, Any], cwd: str) -> bool:
    projects = user_config.get("projects")
    project = projects.get(cwd) if isinstance(projects, dict) else None
    return isinstance(project, dict) and bool(project.get("trust_level"))


def with_first_settings(answer: dict[str, Any], first_settings: dict[str, Any] | None) -> dict[str, Any]:
    """Codex's answer to `thread/start`, with the settings of the first turn already applied."""
    if first_settings is None:
        return answer
    if "permissions" in first_settings:
        # Codex does not report the sandbox of a profile before it applies.
        return {**answer, "sandbox": None, "activePermissionProfile": {"id": first_settings["permissions"]}}
    return {**answer, "sandbox": first_settings["sandboxPolicy"], "activePermissionProfile": None}


def without_mode(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != "sandbox_mode"}


def roots(user_config: Any, config: dict[str, Any]) -> list[str]:
    """The folders that may be written to beside the thread's own: those of `config`, else the user's."""
    for table in (config, user_config):
        inner = table.get(TABLE) if isinstance(table, dict) else None
        folders = inner.get(ROOTS) if isinstance(inner, dict) else None
        if isinstance(folders, list):
            return [str(root) for root in folders]
    return []


def policy(mode: str, user_config: Any, config: dict[str, Any]) -> dict[str, Any]:
    """The `sandboxPolicy` of `turn/start`: the user's settings of the mode, overridden by `config`."""
    if mode == "danger-full-access":
        return {"type": "dangerFullAccess"}
    table = dict(user_config) if isinstance(user_config, dict) else {}
    overrides = config.get(TABLE)
    table |= overrides if isinstance(overrides, dict) else {}
    renamed = {_NAMES[key]: value for key, value in table.items() if key in _NAMES and value is not None}
    return {"type": "workspaceWrite", **renamed}
