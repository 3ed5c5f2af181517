"""A sandbox that lets a session write, asked for without making Codex trust the folder.

`thread/start` with such a sandbox, asked for by us or by the user's `config.toml`, makes Codex write
the project down there as trusted (0.163), and from then on a repository's own config is loaded.
Nobody asked for that, so the thread is started without and the first turn brings what it may do, which
then stays. Every front end starts its threads this way: `first_settings` is where it is decided.

Pure: from the mode and the user's config to the policy that Codex would have made of them. A `config`
here is nested, as `laneway.core.overrides` makes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TABLE = "sandbox_workspace_write"
ROOTS = "writable_roots"
DECIDES = (TABLE, "sandbox_mode", "default_permissions", "projects")
"""Of the user's configuration, what is looked at here."""
START = "read-only"
"""What a thread begins with, until its first turn brings what it may do: never trusted for that."""
_PROFILES = {
    ":read-only": "read-only",
    ":workspace": "workspace-write",
    ":danger-full-access": "danger-full-access",
}
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


def mode_of(config: Mapping[str, Any]) -> str | None:
    """The mode that config.toml names, by itself or by a profile of Codex's own."""
    mode = config.get("sandbox_mode") or _PROFILES.get(str(config.get("default_permissions")))
    return None if mode is None else str(mode)


def own_profile(profile: Any) -> str | None:
    """A profile of the user's; Codex's own begin with a colon and are no more than their sandbox."""
    return profile if isinstance(profile, str) and not profile.startswith(":") else None


def first_settings(
    mode: str | None, users: Mapping[str, Any], cwd: str, config: dict[str, Any]
) -> dict[str, Any] | None:
    """What the first turn of a thread brings that is started for reading; none: it starts as it is.

    `mode` is the one that somebody asked for. Else config.toml may allow by itself what Codex would
    trust the folder for, unless the user has decided about the folder.
    """
    if mode is None and not _is_decided(users, cwd):
        mode = asked(mode_of(users), {})
        profile = own_profile(users.get("default_permissions"))
        if mode is None and mode_of(users) is None and profile and "default_permissions" not in config:
            return {"permissions": profile}
    return None if mode is None else {"sandboxPolicy": policy(mode, users.get(TABLE), config)}


def _is_decided(users: Mapping[str, Any], cwd: str) -> bool:
    projects = users.get("projects")
    project = projects.get(cwd) if isinstance(projects, dict) else None
    return isinstance(project, dict) and bool(project.get("trust_level"))


def as_set(answer: dict[str, Any], first: dict[str, Any] | None) -> dict[str, Any]:
    """Codex's answer to `thread/start`, with what the first turn will bring already in it."""
    if first is None:
        return answer
    if "permissions" in first:
        # Which sandbox it comes to is not told before it holds.
        return {**answer, "sandbox": None, "activePermissionProfile": {"id": first["permissions"]}}
    return {**answer, "sandbox": first["sandboxPolicy"], "activePermissionProfile": None}


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
