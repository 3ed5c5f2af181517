"""What a call may ask of the engine that it names: refused in one sentence, before anything is started.

Pure. The arguments of `codex` and the defaults of its server speak Codex's language; an engine that does
not know it (`Offers.codex_config`) gets only what means the same everywhere.
"""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.base.errors import EngineCannot
from laneway.core.ports import Engine, ThreadSpec
from laneway.doors.mcp.presets import Preset, SessionDefaults

CODEX_TERMS = ("config", "base-instructions", "compact-prompt", "profile", "include-plan-tool")
"""Arguments that only Codex understands."""
_EVERYWHERE = frozenset({"model_reasoning_effort"})
"""Keys of Codex's config that mean the same to every engine."""


def check(engine: Engine, arguments: dict[str, Any]) -> None:
    """Raise `EngineCannot` for the first argument that the engine does not know."""
    if engine.offers.codex_config:
        return
    for name in CODEX_TERMS:
        value = arguments.get(name)
        if name == "config" and isinstance(value, dict) and _EVERYWHERE.issuperset(value):
            continue
        if value is not None:
            raise EngineCannot(engine.name, f"take `{name}`, which is Codex's own", "Leave it out.")


def check_access(engine: Engine, request: ThreadSpec | dict[str, Any]) -> None:
    """Raise `EngineCannot` for access that the engine cannot enforce, whoever asked for it."""
    offers = engine.offers
    fields = request if isinstance(request, dict) else msgspec.structs.asdict(request)
    sandbox, approval_policy = fields.get("sandbox"), fields.get("approval_policy")
    if sandbox is not None and sandbox not in offers.sandboxes:
        raise EngineCannot(
            engine.name, f"enforce the sandbox {sandbox}", _instead("sandbox", offers.sandboxes)
        )
    if approval_policy is not None and approval_policy not in offers.approvals:
        raise EngineCannot(
            engine.name,
            f"keep to the approval policy {approval_policy}",
            _instead("approval policy", offers.approvals),
        )


def defaults_for(engine: Engine, defaults: SessionDefaults) -> SessionDefaults:
    """The server's defaults without what is meant for Codex: its models, config and instructions."""
    if engine.offers.codex_config:
        return defaults
    roles = {
        name: Preset(sandbox=role.sandbox, approval_policy=role.approval_policy)
        for name, role in defaults.roles.items()
    }
    return msgspec.structs.replace(
        defaults,
        model=None,
        fast_model=None,
        reasoning_effort=None,
        base_prompt_file=None,
        config={},
        native={},
        roles=roles,
    )


def _instead(what: str, known: tuple[str, ...]) -> str:
    return f"Take {' or '.join(known)}, or name no {what}." if known else f"Name no {what}."
