"""The settings of `turn/start`, which hold for all later turns: model, effort, access, plan mode. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laneway.core.access import Permit
    from laneway.core.offers import PlanMode
    from laneway.core.ports import TurnSpec


def turn_settings(spec: TurnSpec) -> dict[str, Any]:
    """The fields of `turn/start` and `thread/settings/update` that the turn sets."""
    fields: dict[str, Any] = {
        "model": spec.model or None,
        "effort": spec.effort or None,
        "personality": spec.personality,
        "summary": spec.reasoning_summary,
    }
    settings = {key: value for key, value in fields.items() if value is not None}
    if spec.permit is not None:
        settings |= permit_settings(spec.permit)
    if spec.plan_mode is not None:
        settings |= plan_settings(spec.plan_mode)
    return settings | spec.native


def permit_settings(permit: Permit) -> dict[str, Any]:
    if permit.profile is not None:  # the profile's sandbox alone may be wider than the profile
        return {"approvalPolicy": permit.approval, "permissions": permit.profile}
    return {"approvalPolicy": permit.approval, "sandboxPolicy": permit.sandbox}


def plan_settings(mode: PlanMode) -> dict[str, Any]:
    # Model and effort of a mode replace the thread's: they must be those already chosen.
    settings = {"model": mode.model, "reasoning_effort": mode.effort, "developer_instructions": None}
    return {"collaborationMode": {"mode": "plan" if mode.is_on else "default", "settings": settings}}
