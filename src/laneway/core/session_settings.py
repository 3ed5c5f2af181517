"""What a user can set for a session: its state as a value, listed, changed and sent with turns.

`Choices` is what somebody chose, `Facts` what is so without it. All that the engine gets is what
the settings say: nothing until something is chosen, because the user's own configuration rules until
then. An engine keeps what a turn brought along for all turns after it; so once an access was
chosen it goes along with every turn, also when that choice is to go back to the configuration.
Pure; `laneway.core.reopening` brings a session back.
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
"""What a setting is that nobody chose and config.toml does not say. Codex takes nothing back to it."""
MAX_SHOWN_CHARS = 80
"""Of what a client sent, in a sentence that refuses it."""
USUAL_EFFORTS = ("low", "medium", "high")
"""Offered for a model that Codex knows nothing of, if somebody set an effort for it."""
_EFFORT_NAMES = {"xhigh": "Extra high"}


class ChoiceRefused(LanewayError):
    """There is no such setting, or no such value of it. The message says what there is."""


class SettingChoice(msgspec.Struct, frozen=True):
    value: str
    name: str
    description: str = ""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be set, where it stands, and what it can be set to."""

    setting_id: str
    name: str
    description: str
    current: str
    values: tuple[SettingChoice, ...]


def setting_choice(value: str, name: str, description: str = "") -> SettingChoice:
    """Names and descriptions may be an engine's: both are made visible."""
    return SettingChoice(value, label(name), plain(description) if description else "")


# Names of values speak for themselves: JupyterLab's toolbar shows them without the option's own name.
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
    """What somebody chose; none: nothing."""

    mode: str = CONFIG
    model: str | None = None
    effort: str | None = None
    personality: str | None = None
    summary: str | None = None
    network: bool | None = None
    is_set: bool = False
    """Whether a mode or the network was ever chosen."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is so when the session is opened. None of it changes while it is open."""

    models: tuple[Model, ...] = ()
    model: str = ""
    effort: str | None = None
    running: Permit
    """What Codex would let the next turn do if it were told nothing."""
    configured: Permit
    """What config.toml means."""
    kept: Permit | None = None
    """What the session had before it was opened again, if no mode stands for that."""
    config: FolderConfig = FolderConfig()
    roots: tuple[str, ...] = ()
    """Folders that the client added to the workspace."""


def opened(
    state: ThreadState, models: tuple[Model, ...], config: FolderConfig, roots: tuple[str, ...] = ()
) -> Facts:
    """Of a new session: what it has is what is configured."""
    return Facts(
        models=models,
        model=state.model,
        effort=state.effort,
        running=state.permit,
        configured=state.permit,
        config=config,
        roots=roots,
    )


# ── what they come to ──────────────────────────────────────────────────────


def policy(choices: Choices, facts: Facts) -> Permit:
    """What the shown options let Codex do."""
    return access.with_roots(chosen(choices, facts), facts.roots)


def chosen(choices: Choices, facts: Facts) -> Permit:
    """The same without the client's further folders, which are no choice."""
    return access.with_network(_of_mode(choices.mode, facts), choices.network)


def equipped(turn: TurnSpec, choices: Choices, facts: Facts) -> TurnSpec:
    """With what differs from what the engine has; what the turn itself says goes first."""
    permit = policy(choices, facts)
    personality = choices.personality if _model(choices, facts).takes_personality else None
    return msgspec.structs.replace(
        turn,
        model=turn.model or choices.model,
        effort=turn.effort or choices.effort,
        personality=turn.personality or personality,
        reasoning_summary=turn.reasoning_summary or choices.summary,
        permit=turn.permit or (permit if choices.is_set or permit != facts.running else None),
        # An engine that starts anew does not know what this session may do, and config.toml may say more.
        permit_if_cold=permit,
    )


def current_model(choices: Choices, facts: Facts) -> str:
    return choices.model or facts.model


def current_effort(choices: Choices, facts: Facts) -> str | None:
    return choices.effort or facts.effort or _model(choices, facts).default_effort


def takes_images(choices: Choices, facts: Facts) -> bool:
    """A model that Codex's list does not have may well take them."""
    return _model(choices, facts).takes_images


def defaults(choices: Choices, facts: Facts, *, sent: Permit | None) -> Defaults:
    """For the session's record. `sent` is the access that the last turn brought along, if one did."""
    permit = chosen(choices, facts)
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
    """All that can be set and where each stands, in the order in which it is shown."""
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
        CONFIG: f"What config.toml says: {access.words(facts.configured)}.",
        KEPT: f"What it had when it was last used: {access.words(facts.kept or facts.running)}.",
        **access.DESCRIPTIONS,
    }
    listed = MODES if facts.kept is None else (*MODES, KEPT)
    return [setting_choice(mode, access.NAMES[mode], descriptions[mode]) for mode in listed]


def has_network(choices: Choices, facts: Facts) -> bool:
    return access.has_network(policy(choices, facts))


def model_values(listed: tuple[Model, ...], *always: str) -> list[SettingChoice]:
    """What a user may choose: what is meant to be seen, and those in use whatever they are."""
    shown = [model for model in listed if not model.is_hidden or model.model in always]
    names = {model.model for model in shown}
    others = [Model(model, model) for model in dict.fromkeys(always) if model and model not in names]
    return [
        setting_choice(model.model, model.name or model.model, model.description)
        for model in [*shown, *others]
    ]


def effort_values(model: Model, current: str | None) -> list[SettingChoice]:
    """Empty if the model has none to choose from."""
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
    """With this value chosen; `ChoiceRefused` if there is no such setting or value."""
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
    shown = model_values(facts.models, facts.model, current_model(choices, facts))
    model = known(facts.models, _one_of("model", value, shown, hidden))
    changed = msgspec.structs.replace(choices, model=model.model)
    effort = choices.effort or facts.effort
    if effort is not None and model.efforts and not model.supports(effort):
        # Codex would go on with the old one, which the new model refuses.
        return msgspec.structs.replace(changed, effort=model.default_effort or model.efforts[0].effort)
    return changed


def _choose_network(choices: Choices, facts: Facts, value: Any) -> Choices:
    if not isinstance(value, bool) and value not in ("on", "off"):
        raise ChoiceRefused(f"The network is on or off, not {_cut(value)}.")
    is_on = value is True or value == "on"
    permit = chosen(choices, facts)
    if is_on == access.has_network(permit):
        return choices
    if not access.can_switch_network(permit):
        text = "This access comes with its own rule for the network. Choose another mode first."
        raise ChoiceRefused(text)
    return msgspec.structs.replace(choices, network=is_on, is_set=True)


def _set(choices: Choices, field: str, value: str) -> Choices:
    return choices if value == DEFAULT else msgspec.structs.replace(choices, **{field: value})


def _one_of(
    what: str, value: Any, offered: list[SettingChoice], silent: list[SettingChoice] | None = None
) -> str:
    """One of the values; `silent` ones are taken, but not named to whoever errs."""
    for each in (*offered, *(silent or ())):
        if isinstance(value, str) and value == each.value:
            return value
    names = ", ".join(each.value for each in offered)
    remedy = f"Choose one of: {names}." if names else "There is none to choose here."
    raise ChoiceRefused(f"There is no {what} {_cut(value)}. {remedy}")


def _cut(value: Any) -> str:
    if isinstance(value, dict | list):
        return "of this shape"  # to write it out may be long, and deeper than Python goes
    text = value if isinstance(value, str) else repr(value)
    return code_label(text, MAX_SHOWN_CHARS)
