"""Which keys of Codex's config a caller may set where it must not start programs or widen access.

Pure. A list of what may be set, not of what may not: Codex gets new keys with every release, and among
those of today at least these start a program, widen what a session may do, or send it elsewhere:

    starts a program    mcp_servers, notify, hooks, plugins, marketplaces, apps, agents (config files),
                        model_providers (auth.command), js_repl_node_path, shell_environment_policy (PATH
                        and the like), otel, zsh_path
    widens access       sandbox_mode, sandbox_workspace_write, default_permissions, permissions,
                        approval_policy, approvals_reviewer, projects (trust), features, web_search, tools,
                        allow_login_shell, network
    goes elsewhere      model_provider, model_providers, openai_base_url, chatgpt_base_url, otel, history,
                        log_dir, sqlite_home, model_instructions_file and other files that are read
    may be any of them  profile
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.core.overrides import KeyPath, leaves, merged
from laneway.core.ports import ThreadSpec

if TYPE_CHECKING:
    from laneway.core.hub import Equip

HARMLESS: frozenset[KeyPath] = frozenset(
    {
        ("model",),
        ("review_model",),
        ("model_reasoning_effort",),
        ("plan_mode_reasoning_effort",),
        ("model_reasoning_summary",),
        ("model_verbosity",),
        ("model_context_window",),
        ("model_auto_compact_token_limit",),
        ("model_auto_compact_token_limit_scope",),
        ("personality",),
        ("service_tier",),
        ("instructions",),
        ("developer_instructions",),
        ("compact_prompt",),
        ("project_doc_max_bytes",),
        ("tool_output_token_limit",),
        ("hide_agent_reasoning",),
        ("show_raw_agent_reasoning",),
        ("tools", "update_plan", "enabled"),
    }
)
"""They change what the model is told and how long it thinks, and nothing that runs."""
NOTHING: Mapping[str, Any] = {}
ASK_US = {"approvals_reviewer": "user"}
"""Codex can have a model of its own decide about escalations (`auto_review`): then nobody asks us."""


def forbidden(config: Mapping[str, Any], own: Mapping[str, Any] = NOTHING) -> list[KeyPath]:
    """The paths that a caller may not set, in the order given. `own` is what the user set: it passes."""
    allowed = dict(leaves(merged(own)))
    return [
        path
        for path, value in leaves(merged(config))
        if path not in HARMLESS and not (path in allowed and allowed[path] == value)
    ]


def without_forbidden(config: Mapping[str, Any], own: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
    """The rest of it, as one nested table."""
    left_out = set(forbidden(config, own))
    kept: dict[str, Any] = {}
    for path, value in leaves(merged(config)):
        if path not in left_out:
            table = kept
            for name in path[:-1]:
                table = table.setdefault(name, {})
            table[path[-1]] = value
    return kept


def harmless(spec: ThreadSpec, own: Mapping[str, Any]) -> ThreadSpec:
    """The same thread without what a caller may not set; one that is resumed may bring it from before."""
    return msgspec.structs.replace(spec, config=without_forbidden(spec.config, own))


def read_only(spec: ThreadSpec, own: Mapping[str, Any]) -> ThreadSpec:
    """The same thread, unable to write: whatever it was allowed before, and whoever would allow it now."""
    return msgspec.structs.replace(
        harmless(spec, own),
        sandbox="read-only",
        declines_escalations=True,
        extras=merged(spec.extras, ASK_US),
    )


def narrowing(config: Mapping[str, Any], *, is_read_only: bool, keys: str, equip: Equip) -> Equip:
    """What every thread goes through as it is opened, by whatever way: new, resumed, woken by mail."""
    if is_read_only:
        return lambda agent_id, spec: equip(agent_id, read_only(spec, config))
    if keys == "harmless":
        return lambda agent_id, spec: equip(agent_id, harmless(spec, config))
    return equip
