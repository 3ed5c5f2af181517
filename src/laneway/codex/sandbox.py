"""A sandbox that lets a session write, asked for without making Codex trust the folder.

`thread/start` with such a sandbox, asked for by us or by the user's `config.toml`, makes Codex write
the project down there as trusted (0.163), and from then on a repository's own config is loaded.
Nobody asked for that, so the thread is started without and the first turn brings the policy, which
then stays.

Pure: from the mode and the user's config to the policy that Codex would have made of them. A `config`
here is nested, as `laneway.codex.overrides` makes it.
"""

from __future__ import annotations

from typing import Any

TABLE = "sandbox_workspace_write"
ROOTS = "writable_roots"
DECIDES = (TABLE, "sandbox_mode", "default_permissions", "projects")
"""Of the user's configuration, what is looked at here."""
START = "read-only"
"""What a thread begins with, until its first turn brings what it may do: never trusted for that."""
_PROFILES = {":workspace": "workspace-write", ":danger-full-access": "danger-full-access"}
"""Codex's own permission profiles, each the same as a mode."""
_NAMES = {
    "writable_roots": "writableRoots",
    "network_access": "networkAccess",
    "exclude_tmpdir_env_var": "excludeTmpdirEnvVar",
    "exclude_slash_tmp": "excludeSlashTmp",
}


def asked(sandbox: str | None, config: dict[str, Any]) -> str | None:
    """The mode that trust would come with; none if nobody asked for such a one."""
    mode = sandbox or config.get("sandbox_mode")
    return mode if mode in ("workspace-write", "danger-full-access") else None


def configured(config: Any, cwd: str) -> str | None:
    """The mode that config.toml allows by itself, where Codex would trust the folder for that, too."""
    if not isinstance(config, dict):
        return None
    projects = config.get("projects")
    project = projects.get(cwd) if isinstance(projects, dict) else None
    if isinstance(project, dict) and project.get("trust_level"):
        return None  # somebody has decided
    return asked(config.get("sandbox_mode") or _PROFILES.get(str(config.get("default_permissions"))), {})


def without(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != "sandbox_mode"}


def roots(users: Any, config: dict[str, Any]) -> list[str]:
    """The folders that may be written to beside the thread's own: those that came along, else the user's."""
    for table in (config, users):
        inner = table.get(TABLE) if isinstance(table, dict) else None
        named = inner.get(ROOTS) if isinstance(inner, dict) else None
        if isinstance(named, list):
            return [str(root) for root in named]
    return []


def policy(mode: str, users: Any, config: dict[str, Any]) -> dict[str, Any]:
    """What `turn/start` takes: the user's own settings of the mode, under those that came along."""
    if mode == "danger-full-access":
        return {"type": "dangerFullAccess"}
    given = dict(users) if isinstance(users, dict) else {}
    table = config.get(TABLE)
    given |= table if isinstance(table, dict) else {}
    settings = {_NAMES[key]: value for key, value in given.items() if key in _NAMES and value is not None}
    return {"type": "workspaceWrite", **settings}
