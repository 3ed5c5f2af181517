"""Config keys that a caller may set for a thread without starting programs or widening its access.

Pure. An allowlist, because Codex gets new keys with every release; of today's keys at least these start
a program, widen what a session may do, or send it to another server:

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
"""They change the model's instructions and how long it thinks, and start nothing."""
NOTHING: Mapping[str, Any] = {}
ASK_US = {"approvals_reviewer": "user"}
"""Otherwise Codex may let a model of its own decide about escalations (`auto_review`) and not ask us."""


def forbidden(config: Mapping[str, Any], own: Mapping[str, Any] = NOTHING) -> list[KeyPath]:
    """The paths that a caller may not set, in the given order. `own`, the user's own settings, is allowed."""
    allowed = dict(leaves(merged(own)))
    return [
        path
        for path, value in leaves(merged(config))
        if path not in HARMLESS and not (path in allowed and allowed[path] == value)
    ]


def without_forbidden(config: Mapping[str, Any], own: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
    """The config without the forbidden paths, as one nested table."""
    left_out = set(forbidden(config, own))
    config_left: dict[str, Any] = {}
    for path, value in leaves(merged(config)):
        if path not in left_out:
            table = config_left
            for name in path[:-1]:
                table = table.setdefault(name, {})
            table[path[-1]] = value
    return config_left


def harmless(spec: ThreadSpec, own: Mapping[str, Any]) -> ThreadSpec:
    """The spec without what a caller may not set; the spec of a resumed thread may still contain it."""
    return msgspec.structs.replace(spec, config=without_forbidden(spec.config, own))


def read_only(spec: ThreadSpec, own: Mapping[str, Any]) -> ThreadSpec:
    """The spec of a thread that cannot write, whatever it was allowed before or would be allowed now."""
    return msgspec.structs.replace(
        harmless(spec, own),
        sandbox="read-only",
        declines_escalations=True,
        extras=merged(spec.extras, ASK_US),
    )


def narrowing(config: Mapping[str, Any], *, is_read_only: bool, keys: str, equip: Equip) -> Equip:
    """Wraps `equip`, which sees the spec of every thread: new, resumed, or started by mail."""
    if is_read_only:
        return lambda agent_id, spec: equip(agent_id, read_only(spec, config))
    if keys == "harmless":
        return lambda agent_id, spec: equip(agent_id, harmless(spec, config))
    return equip
