"""How far a session may go: permits, the modes that stand for them, and which of two is wider.

A `Permit` says when the engine asks and what its sandbox allows. Here permits are completed, named,
compared and narrowed. Asking less counts as wider; so does a larger sandbox. Pure: what an engine's own
configuration and answers say about it is read by the engine (`laneway.codex.access`).
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import msgspec

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


class Permit(msgspec.Struct, frozen=True, rename={"approval": "approvalPolicy", "sandbox": "sandboxPolicy"}):
    """What a session may do: the words are those of Codex's app-server, and of the records on disk."""

    approval: Any = "on-request"
    sandbox: dict[str, Any] = {}
    profile: str | None = None
    """A permission profile of the user's own; the sandbox is then only what it comes to."""


class FolderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The user's own configuration of an engine, as it holds in one folder."""

    approval: Any = None
    """When it asks; none: it does not say."""
    sandbox: dict[str, Any] | None = None
    """A whole policy; none: it does not say, or names a profile."""
    profile: str | None = None
    """A permission profile of the user's own that it names in the place of a sandbox."""
    modes: dict[str, Permit] = {}
    """What each mode but `config` stands for here, with the user's own settings of its sandbox."""
    is_sandbox_set: bool = False
    """Whether it says itself which sandbox."""
    personality: str | None = None
    reasoning_summary: str | None = None
    mcp_servers: frozenset[str] = frozenset()
    """The names of the MCP servers that are set up."""
    native: dict[str, Any] = {}
    """All of it, in the engine's own form."""


# ── completing ──────────────────────────────────────────────────────────────


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


def configured(config: FolderConfig, otherwise: Permit) -> Permit:
    """What the configuration means. What it leaves open the engine decides, last known as `otherwise`."""
    approval = config.approval or otherwise.approval
    if config.sandbox is not None:
        return Permit(approval, config.sandbox)
    if config.profile != otherwise.profile:
        return Permit(approval, whole(None), config.profile)
    return Permit(approval, otherwise.sandbox, config.profile)


# ── saying ─────────────────────────────────────────────────────────────────


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


def _external(*, is_on: bool) -> str:
    return "enabled" if is_on else "restricted"
