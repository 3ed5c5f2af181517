"""Settings that a user can change in a session: the values, the list of options, what turns send.

`Choices` is what the user chose, `Facts` what holds without a choice. The engine is sent only what was
chosen, because the user's own configuration applies until then. An engine keeps the settings of a turn
for all turns after it; so once an access was chosen, every turn sends it, also when the user has chosen
to go back to the configuration. Pure; `laneway.core.reopening` restores the settings of a session.
"""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.base.errors import LanewayError
from laneway.base.plain import code_label, label, plain
from laneway.core import access
from laneway.core.access import CONFIG, KEPT, MODES, FolderConfig, Permit
from laneway.core.editor_sessions import Defaults
from laneway.core.models import Effort, Model, known
from laneway.core.offers import ThreadState
from laneway.core.ports import TurnSpec

DEFAULT = "default"
"""The value of a setting that neither the user nor config.toml has set. Codex cannot be set back to it."""
MAX_SHOWN_CHARS = 80
"""Of a client's value that an error message quotes."""
USUAL_EFFORTS = ("low", "medium", "high")
"""Offered for a model that is not in Codex's list, if an effort is set for it."""
_EFFORT_NAMES = {"xhigh": "Extra high"}


class ChoiceRefused(LanewayError):
    """There is no such setting or value. The message lists the valid ones."""


class SettingChoice(msgspec.Struct, frozen=True):
    value: str
    name: str
    description: str = ""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting with its current value and all values that it can have."""

    setting_id: str
    name: str
    description: str
    current: str
    values: tuple[SettingChoice, ...]


def setting_choice(value: str, name: str, description: str = "") -> SettingChoice:
    """Names and descriptions may come from an engine, so both have hidden characters shown."""
    return SettingChoice(value, label(name), plain(description) if description else "")


# Names of values must be clear on their own: JupyterLab's toolbar shows them without the option's own name.
PERSONALITIES = (
    setting_choice("friendly", "Friendly", "Warm and encouraging."),
    setting_choice("pragmatic", "Pragmatic", "Brief and to the point."),
    setting_choice("none", "No personality", "No personality of its own."),
)
SUMMARIES = (
    setting_choice("auto", "Reasoning: automatic", "As much as suits the model."),
    setting_choice("concise", "Reasoning: concise", "Short summaries of its reasoning."),
    setting_choice("detailed", "Reasoning: detailed", "Long summaries of its reasoning."),
    setting_choice("none", "Reasoning: hidden", "No reasoning is shown."),
)
NETWORK = (setting_choice("on", "Network on"), setting_choice("off", "Network off"))


class Choices(msgspec.Struct, frozen=True):
    """The user's choices; none where the user chose nothing."""

    mode: str = CONFIG
    model: str | None = None
    effort: str | None = None
    personality: str | None = None
    summary: str | None = None
    network: bool | None = None
    is_set: bool = False
    """Whether a mode or the network was ever chosen."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What holds since the session was opened. None of it changes while it is open."""

    models: tuple[Model, ...] = ()
    model: str = ""
    effort: str | None = None
    running: Permit
    """The access of the next turn if nothing were sent to Codex."""
    configured: Permit
    """The access that config.toml grants."""
    kept: Permit | None = None
    """The access of a reopened session, where no mode stands for it."""
    config: FolderConfig = FolderConfig()
    roots: tuple[str, ...] = ()
    """Folders that the client added to the workspace."""


def new_facts(
    state: ThreadState, models: tuple[Model, ...], config: FolderConfig, roots: tuple[str, ...] = ()
) -> Facts:
    """The facts of a new session, whose access is the configured one."""
    return Facts(
        models=models,
        model=state.model,
        effort=state.effort,
        running=state.permit,
        configured=state.permit,
        config=config,
        roots=roots,
    )


# ── effective values ───────────────────────────────────────────────────────


def policy(choices: Choices, facts: Facts) -> Permit:
    """The access that the current settings grant."""
    return access.with_roots(base_policy(choices, facts), facts.roots)


def base_policy(choices: Choices, facts: Facts) -> Permit:
    """The same without the client's further folders, which no setting changes."""
    return access.with_network(_of_mode(choices.mode, facts), choices.network)


def turn_with_settings(turn: TurnSpec, choices: Choices, facts: Facts) -> TurnSpec:
    """The turn with every setting that differs from the engine's; the turn's own values win."""
    permit = policy(choices, facts)
    personality = choices.personality if _model(choices, facts).takes_personality else None
    return msgspec.structs.replace(
        turn,
        model=turn.model or choices.model,
        effort=turn.effort or choices.effort,
        personality=turn.personality or personality,
        reasoning_summary=turn.reasoning_summary or choices.summary,
        permit=turn.permit or (permit if choices.is_set or permit != facts.running else None),
        # An engine process that starts anew does not know this access, and config.toml may grant more.
        permit_if_cold=permit,
    )


def current_model(choices: Choices, facts: Facts) -> str:
    return choices.model or facts.model


def current_effort(choices: Choices, facts: Facts) -> str | None:
    return choices.effort or facts.effort or _model(choices, facts).default_effort


def takes_images(choices: Choices, facts: Facts) -> bool:
    """Whether the model takes images; one that is not in Codex's list is assumed to."""
    return _model(choices, facts).takes_images


def defaults(choices: Choices, facts: Facts, *, sent: Permit | None) -> Defaults:
    """The settings for the session's record. `sent` is the access that the last turn sent, if any."""
    permit = base_policy(choices, facts)
    return Defaults(
        **msgspec.structs.asdict(choices),
        approval_policy=permit.approval,
        sandbox_policy=permit.sandbox,
        permissions=permit.profile,
        configured=facts.configured,
        sent=sent or facts.running,
    )


def _of_mode(mode: str, facts: Facts) -> Permit:
    if mode == KEPT and facts.kept is not None:
        return facts.kept
    return facts.config.modes.get(mode, facts.configured)


def _model(choices: Choices, facts: Facts) -> Model:
    return known(facts.models, current_model(choices, facts))


# ── listing ────────────────────────────────────────────────────────────────


def settings(choices: Choices, facts: Facts) -> list[Setting]:
    """All settings with their current values, in the order in which they are shown."""
    model = _model(choices, facts)
    effort = current_effort(choices, facts)
    text = "What Codex may do without asking."
    listed = [_setting("mode", "Mode", text, choices.mode, modes(facts))]
    if model.model:
        models = model_values(facts.models, facts.model, model.model)
        listed.append(_setting("model", "Model", "The model that answers.", model.model, models))
    efforts = effort_values(model, effort)
    if efforts and effort is not None:
        text = "How much the model thinks before it answers."
        listed.append(_setting("thought_level", "Thinking", text, effort, efforts))
    if model.takes_personality:
        current, personalities = _personality(choices, facts)
        listed.append(
            _setting("personality", "Personality", "How Codex talks to you.", current, personalities)
        )
    text = "How much of its reasoning the model shows."
    current, summaries = _summary(choices, facts)
    listed.append(_setting("reasoning_summary", "Reasoning shown", text, current, summaries))
    return [*listed, _network(choices, facts)]


def modes(facts: Facts) -> list[SettingChoice]:
    descriptions = {
        CONFIG: f"What config.toml says: {access.description(facts.configured)}.",
        KEPT: f"What it had when it was last used: {access.description(facts.kept or facts.running)}.",
        **access.DESCRIPTIONS,
    }
    listed = MODES if facts.kept is None else (*MODES, KEPT)
    return [setting_choice(mode, access.NAMES[mode], descriptions[mode]) for mode in listed]


def has_network(choices: Choices, facts: Facts) -> bool:
    return access.has_network(policy(choices, facts))


def model_values(listed: tuple[Model, ...], *always: str) -> list[SettingChoice]:
    """The models to choose from: all that are not hidden, and those in use in any case."""
    visible = [model for model in listed if not model.is_hidden or model.model in always]
    names = {model.model for model in visible}
    others = [Model(model, model) for model in dict.fromkeys(always) if model and model not in names]
    return [
        setting_choice(model.model, model.name or model.model, model.description)
        for model in [*visible, *others]
    ]


def effort_values(model: Model, current: str | None) -> list[SettingChoice]:
    """The efforts to choose from; empty if the model has none."""
    efforts = model.efforts
    if not efforts and current is not None:
        efforts = tuple(Effort(usual) for usual in USUAL_EFFORTS)
    if current is not None and all(current != each.effort for each in efforts):
        efforts = (*efforts, Effort(current))
    return [setting_choice(each.effort, effort_name(each.effort), each.description) for each in efforts]


def effort_name(effort: str) -> str:
    return _EFFORT_NAMES.get(effort, effort[:1].upper() + effort[1:])


def _personality(choices: Choices, facts: Facts) -> tuple[str, list[SettingChoice]]:
    current = choices.personality or facts.config.personality
    return _or_default(current, PERSONALITIES, "Default personality")


def _summary(choices: Choices, facts: Facts) -> tuple[str, list[SettingChoice]]:
    current = choices.summary or facts.config.reasoning_summary
    return _or_default(current, SUMMARIES, "Reasoning: default")


def _or_default(
    current: str | None, values: tuple[SettingChoice, ...], default: str
) -> tuple[str, list[SettingChoice]]:
    if current is not None and any(current == each.value for each in values):
        return current, list(values)
    return DEFAULT, [setting_choice(DEFAULT, default, "Codex's default for the model."), *values]


def _network(choices: Choices, facts: Facts) -> Setting:
    current = "on" if has_network(choices, facts) else "off"
    is_free = access.can_switch_network(policy(choices, facts))
    values = [each for each in NETWORK if is_free or each.value == current]
    return _setting("network", "Network", "Whether commands may use the network.", current, values)


def _setting(
    setting_id: str, name: str, description: str, current: str, values: list[SettingChoice]
) -> Setting:
    return Setting(
        setting_id=setting_id, name=name, description=description, current=current, values=tuple(values)
    )


# ── choosing ───────────────────────────────────────────────────────────────


def choose(choices: Choices, facts: Facts, setting_id: str, value: Any) -> Choices:
    """The choices with one setting changed; `ChoiceRefused` if there is no such setting or value."""
    change = msgspec.structs.replace
    match setting_id:
        case "mode":
            mode = _one_of("mode", value, modes(facts))
            return choices if mode == choices.mode else change(choices, mode=mode, is_set=True)
        case "model":
            return _choose_model(choices, facts, value)
        case "thought_level":
            model = _model(choices, facts)
            efforts = effort_values(model, current_effort(choices, facts))
            return change(choices, effort=_one_of("thought level", value, efforts))
        case "personality":
            _, personalities = _personality(choices, facts)
            offered = personalities if _model(choices, facts).takes_personality else []
            return _set(choices, "personality", _one_of("personality", value, offered))
        case "reasoning_summary":
            _, summaries = _summary(choices, facts)
            return _set(choices, "summary", _one_of("reasoning summary", value, summaries))
        case "network":
            return _choose_network(choices, facts, value)
        case _:
            raise ChoiceRefused(f"There is no option {_cut(setting_id)}.")


def _choose_model(choices: Choices, facts: Facts, value: Any) -> Choices:
    hidden = [setting_choice(model.model, model.name) for model in facts.models if model.is_hidden]
    offered = model_values(facts.models, facts.model, current_model(choices, facts))
    model = known(facts.models, _one_of("model", value, offered, hidden))
    changed = msgspec.structs.replace(choices, model=model.model)
    effort = choices.effort or facts.effort
    if effort is not None and model.efforts and not model.supports(effort):
        # Codex would keep the old effort, which the new model refuses.
        return msgspec.structs.replace(changed, effort=model.default_effort or model.efforts[0].effort)
    return changed


def _choose_network(choices: Choices, facts: Facts, value: Any) -> Choices:
    if not isinstance(value, bool) and value not in ("on", "off"):
        raise ChoiceRefused(f"The network is on or off, not {_cut(value)}.")
    is_on = value is True or value == "on"
    permit = base_policy(choices, facts)
    if is_on == access.has_network(permit):
        return choices
    if not access.can_switch_network(permit):
        text = "This access comes with its own rule for the network. Choose another mode first."
        raise ChoiceRefused(text)
    return msgspec.structs.replace(choices, network=is_on, is_set=True)


def _set(choices: Choices, field: str, value: str) -> Choices:
    return choices if value == DEFAULT else msgspec.structs.replace(choices, **{field: value})


def _one_of(
    noun: str, value: Any, offered: list[SettingChoice], unlisted: list[SettingChoice] | None = None
) -> str:
    """The value if it is one of these; an error names the offered ones, not the unlisted."""
    for each in (*offered, *(unlisted or ())):
        if isinstance(value, str) and value == each.value:
            return value
    names = ", ".join(each.value for each in offered)
    remedy = f"Choose one of: {names}." if names else "There is none to choose here."
    raise ChoiceRefused(f"There is no {noun} {_cut(value)}. {remedy}")


def _cut(value: Any) -> str:
    if isinstance(value, dict | list):
        return "of this shape"  # written out it may be long, and nested deeper than Python can recurse
    text = value if isinstance(value, str) else repr(value)
    return code_label(text, MAX_SHOWN_CHARS)
