"""The modes of a session, and what each lets Codex do.

A `Permit` is what Codex may do: when it asks, and what its sandbox allows. Here they are read,
named, compared and narrowed. Asking less counts as wider; so does a larger sandbox. Pure.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import msgspec

from laneway.codex import sandbox as codex_sandbox
from laneway.store.editor_sessions import Permit

CONFIG = "config"
KEPT = "kept"
"""The mode of a session that has an access of its own, which no other mode stands for."""
MODES = (CONFIG, "ask", "code", "read-only", "full")

NAMES = {
    CONFIG: "As configured",
    "ask": "Ask",
    "code": "Code",
    "read-only": "Read only",
    "full": "Full access",
    KEPT: "As this session was",
}
DESCRIPTIONS = {
    "ask": "Works in the workspace; asks before every edit and every command that is not known to be safe.",
    "code": "Works in the workspace on its own; asks before it goes beyond.",
    "read-only": "Reads and answers; asks before it changes anything.",
    "full": "Does everything without asking, outside the workspace and on the network too.",
}

READ_ONLY, WORKSPACE, EXTERNAL, FULL = "readOnly", "workspaceWrite", "externalSandbox", "dangerFullAccess"
_WIDTH = (READ_ONLY, WORKSPACE, EXTERNAL, FULL)
_SWITCHABLE = (READ_ONLY, WORKSPACE, EXTERNAL)
"""Sandboxes that can be had with the network and without."""
_SANDBOX_WORDS = {
    READ_ONLY: "read-only",
    WORKSPACE: "workspace-write",
    EXTERNAL: "sandboxed from outside",
    FULL: "full access",
}
_GRANULAR = "granular"
_LENIENCY = ("untrusted", _GRANULAR, "on-request", "on-failure", "never")
_APPROVAL_WORDS = {
    "untrusted": "asks before everything untrusted",
    _GRANULAR: "asks about some things and declines others",
    "on-request": "asks on request",
    "on-failure": "asks when a command fails",
    "never": "never asks",
}
_PROFILES = {
    ":read-only": "read-only",
    ":workspace": "workspace-write",
    ":danger-full-access": "danger-full-access",
}
"""Codex's own profiles, each the same as a sandbox mode."""


# ── reading ────────────────────────────────────────────────────────────────


def permit(answer: dict[str, Any]) -> Permit:
    """What Codex says that a thread may do, in its answer to `thread/start`, `resume` or `fork`."""
    active = answer.get("activePermissionProfile")
    profile = active.get("id") if isinstance(active, dict) else None
    return Permit(answer.get("approvalPolicy") or "on-request", whole(answer.get("sandbox")), _own(profile))


def whole(sandbox: Any) -> dict[str, Any]:
    """A sandbox policy with all its fields, so that equal ones are equal; none is the narrowest."""
    given = sandbox if isinstance(sandbox, dict) else {}
    match given.get("type", READ_ONLY):
        case kind if kind == WORKSPACE:
            roots = given.get("writableRoots")
            return {
                "type": kind,
                "writableRoots": sorted({r for r in roots or () if isinstance(r, str) and r.startswith("/")}),
                "networkAccess": given.get("networkAccess") is True,
                "excludeTmpdirEnvVar": given.get("excludeTmpdirEnvVar") is True,
                "excludeSlashTmp": given.get("excludeSlashTmp") is True,
            }
        case kind if kind == EXTERNAL:
            return {"type": kind, "networkAccess": _external(is_on=given.get("networkAccess") == "enabled")}
        case kind if kind == READ_ONLY:
            return {"type": kind, "networkAccess": given.get("networkAccess") is True}
        case kind if kind == FULL:
            return {"type": kind}
        case kind:
            return {**given, "type": str(kind)}  # of a Codex to come; taken for as wide as can be


def configured(config: dict[str, Any], otherwise: Permit) -> Permit:
    """What config.toml means. What it leaves open Codex decides, last known as `otherwise`."""
    approval = config.get("approval_policy") or otherwise.approval
    named = config.get("default_permissions")
    mode = config.get("sandbox_mode") or _PROFILES.get(str(named))
    if mode is not None:
        return Permit(approval, _sandbox(str(mode), config))
    profile = _own(named)
    if profile != otherwise.profile:
        return Permit(approval, whole(None), profile)
    return Permit(approval, otherwise.sandbox, profile)


def has_sandbox(config: dict[str, Any]) -> bool:
    """Whether config.toml itself says which sandbox."""
    return bool(config.get("sandbox_mode") or config.get("default_permissions"))


def would_be_trusted(config: dict[str, Any], cwd: str) -> bool:
    """Whether a plain start there makes Codex trust the folder for good, by what config.toml allows."""
    projects = config.get("projects")
    project = projects.get(cwd) if isinstance(projects, dict) else None
    if isinstance(project, dict) and project.get("trust_level"):
        return False  # somebody has decided
    allowed = configured(config, Permit(sandbox=whole(None)))
    return allowed.profile is not None or allowed.sandbox["type"] != READ_ONLY


def of_mode(mode: str, config: dict[str, Any]) -> Permit | None:
    """What a mode stands for by itself, with the user's own settings of that sandbox."""
    match mode:
        case "ask":
            return Permit("untrusted", _sandbox("workspace-write", config))
        case "code":
            return Permit("on-request", _sandbox("workspace-write", config))
        case "read-only":
            return Permit("on-request", _sandbox("read-only", config))
        case "full":
            return Permit("never", _sandbox("danger-full-access", config))
        case _:
            return None


# ── saying ─────────────────────────────────────────────────────────────────


def native(permit: Permit) -> dict[str, Any]:
    """As `turn/start` and `thread/settings/update` take it."""
    if permit.profile is not None:  # the sandbox it comes to may be wider than the profile is
        return {"approvalPolicy": permit.approval, "permissions": permit.profile}
    return {"approvalPolicy": permit.approval, "sandboxPolicy": permit.sandbox}


def words(permit: Permit) -> str:
    """For people: `workspace-write, asks on request, no network`."""
    kind = permit.sandbox["type"]
    profile = permit.profile
    access = _SANDBOX_WORDS.get(kind, kind) if profile is None else f"permission profile {profile}"
    asks = _APPROVAL_WORDS.get(_approval_kind(permit.approval), "asks by rules of its own")
    if kind not in _SWITCHABLE:
        return f"{access}, {asks}"
    return f"{access}, {asks}, {'network' if has_network(permit) else 'no network'}"


# ── changing ───────────────────────────────────────────────────────────────


def has_network(permit: Permit) -> bool:
    access = permit.sandbox.get("networkAccess")
    return permit.sandbox["type"] not in _SWITCHABLE or access is True or access == "enabled"


def can_switch_network(permit: Permit) -> bool:
    return permit.profile is None and permit.sandbox["type"] in _SWITCHABLE


def with_network(permit: Permit, is_on: bool | None) -> Permit:
    """The same with or without network, where that can be told apart; none leaves it as it is."""
    if is_on is None or not can_switch_network(permit):
        return permit
    access = _external(is_on=is_on) if permit.sandbox["type"] == EXTERNAL else is_on
    return msgspec.structs.replace(permit, sandbox={**permit.sandbox, "networkAccess": access})


def with_roots(permit: Permit, roots: tuple[str, ...]) -> Permit:
    """The same with further folders to write in, if it may write in the workspace at all."""
    if permit.profile is not None or permit.sandbox["type"] != WORKSPACE:
        return permit
    both = [*permit.sandbox["writableRoots"], *roots]
    return msgspec.structs.replace(permit, sandbox=whole({**permit.sandbox, "writableRoots": both}))


def narrower(one: Permit, other: Permit) -> Permit:
    """What both allow, or less where that cannot be said."""
    approval = _narrower_approval(one.approval, other.approval)
    sandbox = _narrower_sandbox(one.sandbox, other.sandbox)
    profiles = {each.profile for each in (one, other) if each.profile is not None}
    if len(profiles) > 1:
        return Permit(approval, whole(None))
    for each in (one, other):
        if each.profile is not None and each.sandbox == sandbox:
            return Permit(approval, sandbox, each.profile)
    return Permit(approval, sandbox)  # a profile that is wider than the other cannot be cut: it goes


def is_within(one: Permit, other: Permit) -> bool:
    return narrower(one, other) == one


def _narrower_approval(one: Any, other: Any) -> Any:
    if _approval_kind(one) == _approval_kind(other) == _GRANULAR:
        ours, theirs = one[_GRANULAR], other[_GRANULAR]
        both = {name: ours.get(name) is theirs.get(name) is True for name in {**ours, **theirs}}
        return {_GRANULAR: both}
    return min(one, other, key=lambda approval: _place(_LENIENCY, _approval_kind(approval)))


def _narrower_sandbox(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    low, high = sorted((one, other), key=lambda sandbox: _place(_WIDTH, sandbox["type"]))
    kind = low["type"]
    if kind not in _SWITCHABLE:
        return low if low == high or kind == FULL else whole(None)
    is_on = has_network(Permit(sandbox=low)) and has_network(Permit(sandbox=high))
    narrow = with_network(Permit(sandbox=low), is_on).sandbox
    if kind != WORKSPACE or high["type"] != WORKSPACE:
        return narrow
    return narrow | {
        "writableRoots": _common(low["writableRoots"], high["writableRoots"]),
        "excludeTmpdirEnvVar": low["excludeTmpdirEnvVar"] or high["excludeTmpdirEnvVar"],
        "excludeSlashTmp": low["excludeSlashTmp"] or high["excludeSlashTmp"],
    }


def _common(ours: list[str], theirs: list[str]) -> list[str]:
    """The folders that lie in one of each."""
    pairs = ((ours, theirs), (theirs, ours))
    return sorted({root for some, others in pairs for root in some if any(_lies_in(root, o) for o in others)})


def _lies_in(path: str, folder: str) -> bool:
    inner = PurePosixPath(path)
    return path == folder or (".." not in inner.parts and inner.is_relative_to(folder))


def _approval_kind(approval: Any) -> str:
    is_granular = isinstance(approval, dict) and isinstance(approval.get(_GRANULAR), dict)
    return _GRANULAR if is_granular else str(approval)


def _place(order: tuple[str, ...], word: str) -> int:
    """Words that we do not know come last: they are never taken for narrow."""
    return order.index(word) if word in order else len(order)


def _sandbox(mode: str, config: dict[str, Any]) -> dict[str, Any]:
    if mode in ("workspace-write", "danger-full-access"):
        return whole(codex_sandbox.policy(mode, config.get(codex_sandbox.TABLE), {}))
    return whole({"type": READ_ONLY})


def _own(profile: Any) -> str | None:
    """A profile of the user's; Codex's own begin with a colon and are no more than their sandbox."""
    return profile if isinstance(profile, str) and not profile.startswith(":") else None


def _external(*, is_on: bool) -> str:
    return "enabled" if is_on else "restricted"
