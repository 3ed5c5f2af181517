"""What a turn sets for itself and all after it, in app-server's words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laneway.core.access import Permit
    from laneway.core.offers import PlanMode
    from laneway.core.ports import TurnSpec


def turn_settings(spec: TurnSpec) -> dict[str, Any]:
    """As `turn/start` and `thread/settings/update` take it: only what somebody asked for."""
    wanted: dict[str, Any] = {
        "model": spec.model or None,
        "effort": spec.effort or None,
        "personality": spec.personality,
        "summary": spec.reasoning_summary,
    }
    settings = {key: value for key, value in wanted.items() if value is not None}
    if spec.permit is not None:
        settings |= permit_settings(spec.permit)
    if spec.plan_mode is not None:
        settings |= plan_settings(spec.plan_mode)
    return settings | spec.native


def permit_settings(permit: Permit) -> dict[str, Any]:
    if permit.profile is not None:  # the sandbox it comes to may be wider than the profile is
        return {"approvalPolicy": permit.approval, "permissions": permit.profile}
    return {"approvalPolicy": permit.approval, "sandboxPolicy": permit.sandbox}


def plan_settings(mode: PlanMode) -> dict[str, Any]:
    # Model and effort of a mode replace the thread's: they must be the ones that are chosen already.
    settings = {"model": mode.model, "reasoning_effort": mode.effort, "developer_instructions": None}
    return {"collaborationMode": {"mode": "plan" if mode.is_on else "default", "settings": settings}}
