"""A session's settings as ACP `configOptions` and modes, and a client's choice of a value. Pure."""

from __future__ import annotations

from typing import Any

from laneway.base.errors import RemoteError
from laneway.core import session_settings
from laneway.core.session_settings import ChoiceRefused, Choices, Facts, Setting
from laneway.doors.acp.client import EditorClient
from laneway.wire.messages import INVALID_PARAMS

ALIASES = {"reasoning_effort": "thought_level"}
"""Other ids of an option that clients use."""
_CATEGORIES = {
    "personality": "model_config",
    "reasoning_summary": "model_config",
    "network": "_permissions",
}
"""Every other option's category is its id."""


def render(choices: Choices, facts: Facts, client: EditorClient) -> list[dict[str, Any]]:
    """All options with their current values, as `configOptions`."""
    options = [_select(setting) for setting in session_settings.settings(choices, facts)]
    if client.takes_booleans:
        options[-1] = _boolean(options[-1], is_on=session_settings.has_network(choices, facts))
    return options


def modes(choices: Choices, facts: Facts) -> dict[str, Any]:
    """The modes as `SessionModeState`, for clients without options."""
    available = [
        {"id": mode.value, "name": mode.name, "description": mode.description}
        for mode in session_settings.modes(facts)
    ]
    return {"currentModeId": choices.mode, "availableModes": available}


def choose(choices: Choices, facts: Facts, config_id: str, value: Any) -> Choices:
    """The choices with this value; `RemoteError` if there is no such option or value."""
    try:
        return session_settings.choose(choices, facts, ALIASES.get(config_id, config_id), value)
    except ChoiceRefused as refused:
        raise RemoteError(INVALID_PARAMS, str(refused)) from None


def _select(setting: Setting) -> dict[str, Any]:
    return {
        "id": setting.setting_id,
        "name": setting.name,
        "description": setting.description,
        "category": _CATEGORIES.get(setting.setting_id, setting.setting_id),
        "type": "select",
        "currentValue": setting.current,
        "options": [
            {"value": choice.value, "name": choice.name}
            | ({"description": choice.description} if choice.description else {})
            for choice in setting.values
        ],
    }


def _boolean(option: dict[str, Any], *, is_on: bool) -> dict[str, Any]:
    """An option of type boolean, for clients that support them; the network is the only one."""
    rest = {key: value for key, value in option.items() if key != "options"}
    return rest | {"type": "boolean", "currentValue": is_on}
