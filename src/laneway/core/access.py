"""Access of a session (`Permit`): approval policy and sandbox, the modes, and comparing and narrowing.

A `Permit` says when the engine asks for approval and what its sandbox allows. Asking less often counts
as wider; so does a larger sandbox. Pure: the engine itself reads its configuration and answers
(`laneway.codex.access`).
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import msgspec

CONFIG = "config"
KEPT = "kept"
"""The mode of a session whose access is none of the other modes'."""
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
_SANDBOX_TEXTS = {
    READ_ONLY: "read-only",
    WORKSPACE: "workspace-write",
    EXTERNAL: "sandboxed from outside",
    FULL: "full access",
}
_GRANULAR = "granular"
_LENIENCY = ("untrusted", _GRANULAR, "on-request", "on-failure", "never")
_APPROVAL_TEXTS = {
    "untrusted": "asks before everything untrusted",
    _GRANULAR: "asks about some things and declines others",
    "on-request": "asks on request",
    "on-failure": "asks when a command fails",
    "never": "never asks",
}


class Permit(msgspec.Struct, frozen=True, rename={"approval": "approvalPolicy", "sandbox": "sandboxPolicy"}):
    """What a session may do, in the terms of Codex's app-server and of the records on disk."""

    approval: Any = "on-request"
    sandbox: dict[str, Any] = {}
    profile: str | None = None
    """The name of a permission profile of the user's; the sandbox is then only its closest equivalent."""


class FolderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The user's own configuration of an engine, as it applies to one folder."""

    approval: Any = None
    """The approval policy; none if not set."""
    sandbox: dict[str, Any] | None = None
    """A complete policy; none if not set, or if a profile is."""
    profile: str | None = None
    """The name of a permission profile that is set instead of a sandbox."""
    modes: dict[str, Permit] = {}
    """The access of each mode but `config`, with the user's own settings for its sandbox."""
    is_sandbox_set: bool = False
    """Whether it sets the sandbox itself."""
    personality: str | None = None
    reasoning_summary: str | None = None
    mcp_servers: frozenset[str] = frozenset()
    """The names of the MCP servers that are set up."""
    native: dict[str, Any] = {}
    """All of it, in the engine's own form."""


# ── completing ──────────────────────────────────────────────────────────────


def whole(sandbox: Any) -> dict[str, Any]:
    """A sandbox policy with all its fields, so that policies can be compared; none is the narrowest."""
    fields = sandbox if isinstance(sandbox, dict) else {}
    match fields.get("type", READ_ONLY):
        case kind if kind == WORKSPACE:
            roots = fields.get("writableRoots")
            return {
                "type": kind,
                "writableRoots": sorted({r for r in roots or () if isinstance(r, str) and r.startswith("/")}),
                "networkAccess": fields.get("networkAccess") is True,
                "excludeTmpdirEnvVar": fields.get("excludeTmpdirEnvVar") is True,
                "excludeSlashTmp": fields.get("excludeSlashTmp") is True,
            }
        case kind if kind == EXTERNAL:
            return {"type": kind, "networkAccess": _external(is_on=fields.get("networkAccess") == "enabled")}
        case kind if kind == READ_ONLY:
            return {"type": kind, "networkAccess": fields.get("networkAccess") is True}
        case kind if kind == FULL:
            return {"type": kind}
        case kind:
            return {**fields, "type": str(kind)}  # of a newer Codex; counts as the widest


def configured(config: FolderConfig, default: Permit) -> Permit:
    """The access that the configuration grants; `default` is the engine's own where it sets nothing."""
    approval = config.approval or default.approval
    if config.sandbox is not None:
        return Permit(approval, config.sandbox)
    if config.profile != default.profile:
        return Permit(approval, whole(None), config.profile)
    return Permit(approval, default.sandbox, config.profile)


# ── describing ─────────────────────────────────────────────────────────────


def description(permit: Permit) -> str:
    """A description for users: `workspace-write, asks on request, no network`."""
    kind = permit.sandbox["type"]
    profile = permit.profile
    access = _SANDBOX_TEXTS.get(kind, kind) if profile is None else f"permission profile {profile}"
    asks = _APPROVAL_TEXTS.get(_approval_kind(permit.approval), "asks by rules of its own")
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
    """The same permit with or without network, where that can be switched; none changes nothing."""
    if is_on is None or not can_switch_network(permit):
        return permit
    access = _external(is_on=is_on) if permit.sandbox["type"] == EXTERNAL else is_on
    return msgspec.structs.replace(permit, sandbox={**permit.sandbox, "networkAccess": access})


def with_roots(permit: Permit, roots: tuple[str, ...]) -> Permit:
    """The same permit with further writable folders, if it may write in the workspace at all."""
    if permit.profile is not None or permit.sandbox["type"] != WORKSPACE:
        return permit
    both = [*permit.sandbox["writableRoots"], *roots]
    return msgspec.structs.replace(permit, sandbox=whole({**permit.sandbox, "writableRoots": both}))


def narrower(one: Permit, other: Permit) -> Permit:
    """The access that both allow, or less where that cannot be expressed."""
    approval = _narrower_approval(one.approval, other.approval)
    sandbox = _narrower_sandbox(one.sandbox, other.sandbox)
    profiles = {each.profile for each in (one, other) if each.profile is not None}
    if len(profiles) > 1:
        return Permit(approval, whole(None))
    for each in (one, other):
        if each.profile is not None and each.sandbox == sandbox:
            return Permit(approval, sandbox, each.profile)
    return Permit(
        approval, sandbox
    )  # a profile that is wider than the other cannot be narrowed, so it is dropped


def _narrower_approval(one: Any, other: Any) -> Any:
    if _approval_kind(one) == _approval_kind(other) == _GRANULAR:
        ours, theirs = one[_GRANULAR], other[_GRANULAR]
        both = {name: ours.get(name) is theirs.get(name) is True for name in {**ours, **theirs}}
        return {_GRANULAR: both}
    return min(one, other, key=lambda approval: _rank(_LENIENCY, _approval_kind(approval)))


def _narrower_sandbox(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    low, high = sorted((one, other), key=lambda sandbox: _rank(_WIDTH, sandbox["type"]))
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
    """The folders that are in, or equal to, a folder of both lists."""
    pairs = ((ours, theirs), (theirs, ours))
    return sorted({root for some, others in pairs for root in some if any(_lies_in(root, o) for o in others)})


def _lies_in(path: str, folder: str) -> bool:
    inner = PurePosixPath(path)
    return path == folder or (".." not in inner.parts and inner.is_relative_to(folder))


def _approval_kind(approval: Any) -> str:
    is_granular = isinstance(approval, dict) and isinstance(approval.get(_GRANULAR), dict)
    return _GRANULAR if is_granular else str(approval)


def _rank(order: tuple[str, ...], name: str) -> int:
    """Unknown names come last, so that they never count as narrow."""
    return order.index(name) if name in order else len(order)


def _external(*, is_on: bool) -> str:
    return "enabled" if is_on else "restricted"
