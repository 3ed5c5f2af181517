"""What an access comes to, counted out: the measure by which the tests call one wider than another.

Independent of the code under test: a policy is the set of all that it lets happen unasked. Below it, the
way from Codex's own answers and config.toml to a session's settings, as a session of an editor takes it.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from laneway.codex import access as codex_access
from laneway.codex.sandbox import first_settings
from laneway.codex.turn_settings import turn_settings
from laneway.core import access, reopening, session_settings
from laneway.core.access import Permit
from laneway.core.editor_sessions import Defaults
from laneway.core.models import Model
from laneway.core.ports import TurnSpec
from laneway.core.session_settings import Choices, Facts

ROOTS = ("/a", "/a/b", "/c")
LENIENT = ("untrusted", "on-request", "on-failure", "never")
"""Each asks less than the one before it."""


def powers(permit: Permit) -> set[str]:
    sandbox = permit.sandbox
    kind = sandbox["type"]
    held = {f"unasked: {word}" for word in LENIENT[: LENIENT.index(permit.approval) + 1]}
    if kind == "dangerFullAccess" or sandbox.get("networkAccess") in (True, "enabled"):
        held.add("network")
    if kind == "workspaceWrite":
        held |= {"workspace", *_folders(sandbox["writableRoots"])}
        held |= set() if sandbox["excludeSlashTmp"] else {"/tmp"}
        held |= set() if sandbox["excludeTmpdirEnvVar"] else {"$TMPDIR"}
    elif kind != "readOnly":
        held |= {"workspace", "/tmp", "$TMPDIR", "everywhere", *ROOTS}
    return held | ({"unsandboxed"} if kind == "dangerFullAccess" else set())


def _folders(roots: list[str]) -> set[str]:
    return {each for each in ROOTS for root in roots if each == root or each.startswith(f"{root}/")}


READ_ONLY = st.builds(lambda net: {"type": "readOnly", "networkAccess": net}, st.booleans())
WORKSPACE = st.builds(
    lambda net, roots, tmpdir, tmp: {
        "type": "workspaceWrite",
        "writableRoots": sorted(roots),
        "networkAccess": net,
        "excludeTmpdirEnvVar": tmpdir,
        "excludeSlashTmp": tmp,
    },
    st.booleans(),
    st.sets(st.sampled_from(ROOTS)),
    st.booleans(),
    st.booleans(),
)
EXTERNAL = st.sampled_from(["enabled", "restricted"]).map(
    lambda net: {"type": "externalSandbox", "networkAccess": net}
)
FULL: st.SearchStrategy[dict[str, Any]] = st.just({"type": "dangerFullAccess"})
PERMITS = st.builds(Permit, st.sampled_from(LENIENT), READ_ONLY | WORKSPACE | EXTERNAL | FULL)

CONFIGS = st.fixed_dictionaries(
    {
        "sandbox_mode": st.sampled_from([None, "read-only", "workspace-write", "danger-full-access"]),
        "approval_policy": st.sampled_from([None, "untrusted", "on-request", "never"]),
        "sandbox_workspace_write": st.none()
        | st.fixed_dictionaries(
            {"network_access": st.booleans(), "writable_roots": st.lists(st.sampled_from(ROOTS), max_size=2)}
        ),
    }
)


def opened(
    answer: dict[str, Any], models: tuple[Model, ...], config: dict[str, Any], roots: tuple[str, ...] = ()
) -> Facts:
    state, folder = codex_access.thread_state(answer), codex_access.folder_config(config)
    return session_settings.new_facts(state, models, folder, roots)


def reopened(
    answer: dict[str, Any],
    models: tuple[Model, ...],
    config: dict[str, Any],
    record: Defaults | None,
    *,
    last: dict[str, Any] | None = None,
) -> tuple[Facts, Choices]:
    state, folder = codex_access.thread_state(answer), codex_access.folder_config(config)
    had = None if last is None else codex_access.permit(last)
    return reopening.reopened(state, models, folder, record, last=had)


def overrides(choices: Choices, facts: Facts) -> dict[str, Any]:
    """What `turn/start` brings along."""
    return turn_settings(session_settings.turn_with_settings(TurnSpec(parts=()), choices, facts))


def configured(config: dict[str, Any], otherwise: Permit) -> Permit:
    return access.configured(codex_access.folder_config(config), otherwise)


def of_mode(mode: str, config: dict[str, Any]) -> Permit | None:
    return codex_access.folder_config(config).modes.get(mode)


def would_be_trusted(config: dict[str, Any], cwd: str) -> bool:
    return first_settings(None, config, cwd, {}) is not None
