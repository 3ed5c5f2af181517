"""The allowlist of config keys that a caller may set without starting programs or widening access."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from laneway.codex.config_keys import HARMLESS, forbidden, harmless, read_only, without_forbidden
from laneway.core.overrides import KeyPath, leaves, merged
from laneway.core.ports import ThreadSpec

DANGEROUS = (
    *("mcp_servers", "notify", "hooks", "plugins", "apps", "agents", "model_providers", "model_provider"),
    *("sandbox_mode", "sandbox_workspace_write", "default_permissions", "permissions", "approval_policy"),
    *("approvals_reviewer", "projects", "features", "profile", "profiles", "web_search", "otel", "tools"),
    *("shell_environment_policy", "chatgpt_base_url", "openai_base_url", "model_instructions_file"),
    *("experimental_instructions_file", "experimental_compact_prompt_file", "js_repl_node_path", "zsh_path"),
    *("history", "log_dir", "sqlite_home", "allow_login_shell", "model_catalog_json", "something_new"),
)
NAMES = st.one_of(
    st.sampled_from([*DANGEROUS, *(path[0] for path in HARMLESS)]),
    st.sampled_from(["evil", "my.server", "command", "enabled", "update_plan"]),
    st.text(min_size=1, max_size=4),
)
PATHS = st.one_of(st.sampled_from(sorted(HARMLESS)), st.lists(NAMES, min_size=1, max_size=4).map(tuple))


def is_sent(path: KeyPath) -> bool:
    """Whether `merged` does not refuse it by itself."""
    return re.fullmatch(r"[A-Za-z0-9_-]+", path[0]) is not None


def spelled(path: KeyPath, value: Any, cut: int) -> dict[str, Any]:
    """The first names by dots, in quotes; the others as tables."""
    for name in reversed(path[cut:]):
        value = {name: value}
    return {".".join(quoted(name) for name in path[:cut]): value}


def quoted(name: str) -> str:
    """As TOML has it: JSON lets the delete character through, TOML does not."""
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")


@given(PATHS, st.integers(1, 4))
def test_a_path_passes_only_if_it_is_on_the_list_in_whatever_spelling(path: KeyPath, cut: int) -> None:
    """Nested, dotted, quoted, or half of each."""
    assume(is_sent(path))
    found = forbidden(spelled(path, "x", min(cut, len(path))))
    assert found == ([] if path in HARMLESS else [path])


@given(st.lists(st.tuples(PATHS, st.integers(1, 4)), max_size=5), st.lists(PATHS, max_size=2))
@example([], [("mcp_servers", "\x1f\x7f")])
def test_what_is_left_has_nothing_forbidden_and_loses_nothing_harmless(
    asked: list[tuple[KeyPath, int]], flags: list[KeyPath]
) -> None:
    """The flags of whoever started the server pass, with their own values and no others."""
    config, own = joined(asked, "x"), joined([(path, 4) for path in flags], "x")
    changed = joined([(path, 4) for path in flags], "another")
    kept = without_forbidden(merged(config), own)
    allowed = dict(leaves(own))
    expected = {
        path: value
        for path, value in leaves(config)
        if path in HARMLESS or (path in allowed and allowed[path] == value)
    }
    assert dict(leaves(kept)) == expected
    assert forbidden(kept, own) == []
    assert set(forbidden(changed, own)) == {path for path, _ in leaves(changed) if path not in HARMLESS}


def joined(asked: list[tuple[KeyPath, int]], value: str) -> dict[str, Any]:
    """One config of several paths; a path that leads through another is left out."""
    taken: list[KeyPath] = []
    pieces = []
    for path, cut in asked:
        if not is_sent(path) or any(p[: len(path)] == path or path[: len(p)] == p for p in taken):
            continue
        taken.append(path)
        pieces.append(spelled(path, value, min(cut, len(path))))
    return merged(*pieces)


@pytest.mark.parametrize("name", DANGEROUS)
def test_nothing_that_runs_writes_or_redirects_is_harmless(name: str) -> None:
    """As a value, as a table, and below; `tools` has one harmless switch, and the others are not it."""
    configs: list[dict[str, Any]] = [{name: "x"}, {name: {}}, {name: {"a": {"b": 1}}}, {f"{name}.a": True}]
    for config in configs:
        assert forbidden(config)


def test_a_harmless_key_hides_nothing_below_it() -> None:
    """A table where a value belongs is not what is on the list."""
    assert forbidden({"model": {"command": "x"}}) == [("model", "command")]
    assert forbidden({"tools": {"update_plan": {"enabled": True, "x": 1}}}) == [("tools", "update_plan", "x")]


def test_a_thread_becomes_read_only_whatever_it_was() -> None:
    """Its sandbox, its config and who decides; what we add ourselves stays."""
    own = {"features": {"multi_agent": True}}
    ours = {"mcp_servers": {"laneway_mail": {"command": "python"}}}
    spec = ThreadSpec(
        cwd=Path("/"),
        sandbox="danger-full-access",
        approval_policy="never",
        config={"features.multi_agent": True, "mcp_servers.evil.command": "x", "model_verbosity": "low"},
        extras=ours,
    )
    narrow = read_only(spec, own)
    assert (narrow.sandbox, narrow.declines_escalations) == ("read-only", True)
    assert narrow.config == {**own, "model_verbosity": "low"}
    assert narrow.extras == {**ours, "approvals_reviewer": "user"}
    assert read_only(narrow, own) == narrow


def test_harmless_config_leaves_the_sandbox_alone() -> None:
    """That has a parameter of its own."""
    spec = ThreadSpec(cwd=Path("/"), sandbox="workspace-write", config={"notify": ["x"], "model": "m"})
    narrow = harmless(spec, {})
    assert (narrow.sandbox, narrow.declines_escalations, narrow.config) == (
        "workspace-write",
        False,
        {"model": "m"},
    )
