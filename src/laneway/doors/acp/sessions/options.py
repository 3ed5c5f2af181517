"""What a user of an editor can set for a session: its state as a value, shown, changed and sent.

`Choices` is what somebody chose, `Facts` what is so without it. All that Codex gets is what
the shown options say: nothing until something is chosen, because config.toml rules until
then. Codex keeps what a turn brought along for all turns after it; so once an access was
chosen it goes along with every turn, also when that choice is to go back to config.toml.
Pure; the room applies it, `reopening` brings a session back.
"""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.base.errors import RemoteError
from laneway.base.plain import code_label
from laneway.doors.acp.client import Client
from laneway.doors.acp.sessions import modes as access
from laneway.doors.acp.sessions.models import Entry, Model, effort_entries, entry, known, model_entries
from laneway.doors.acp.sessions.modes import CONFIG, KEPT, MODES
from laneway.store.editor_sessions import Defaults, Permit
from laneway.wire.messages import INVALID_PARAMS

ALIASES = {"reasoning_effort": "thought_level"}
"""Names by which other clients know an option."""
DEFAULT = "default"
"""What a setting is that nobody chose and config.toml does not say. Codex takes nothing back to it."""
MAX_SHOWN_CHARS = 80
"""Of what a client sent, in a sentence that refuses it."""

# Names of values speak for themselves: JupyterLab's toolbar shows them without the option's own name.
PERSONALITIES = (
    entry("friendly", "Friendly", "Warm and encouraging."),
    entry("pragmatic", "Pragmatic", "Brief and to the point."),
    entry("none", "No personality", "No personality of its own."),
)
SUMMARIES = (
    entry("auto", "Reasoning: automatic", "As much as suits the model."),
    entry("concise", "Reasoning: concise", "Short summaries of its reasoning."),
    entry("detailed", "Reasoning: detailed", "Long summaries of its reasoning."),
    entry("none", "Reasoning: hidden", "No reasoning is shown."),
)
NETWORK = (entry("on", "Network on"), entry("off", "Network off"))


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
    config: dict[str, Any] = {}
    roots: tuple[str, ...] = ()
    """Folders that the client added to the workspace."""


def opened(
    answer: dict[str, Any], models: tuple[Model, ...], config: dict[str, Any], roots: tuple[str, ...] = ()
) -> Facts:
    """Of a new session, from the answer to `thread/start`: what it has is what is configured."""
    running = access.permit(answer)
    return Facts(
        models=models,
        model=str(answer.get("model") or ""),
        effort=answer.get("reasoningEffort"),
        running=running,
        configured=running,
        config=config,
        roots=roots,
    )


# ── what the options come to ───────────────────────────────────────────────


def policy(choices: Choices, facts: Facts) -> Permit:
    """What the shown options let Codex do."""
    return access.with_roots(chosen(choices, facts), facts.roots)


def chosen(choices: Choices, facts: Facts) -> Permit:
    """The same without the client's further folders, which are no choice."""
    return access.with_network(_of_mode(choices.mode, facts), choices.network)


def overrides(choices: Choices, facts: Facts) -> dict[str, Any]:
    """What `turn/start` is to bring along; `thread/settings/update` takes the same."""
    wanted: dict[str, Any] = {
        "model": choices.model,
        "effort": choices.effort,
        "personality": choices.personality if _model(choices, facts).takes_personality else None,
        "summary": choices.summary,
    }
    told = {key: value for key, value in wanted.items() if value is not None}
    permit = policy(choices, facts)
    if choices.is_set or permit != facts.running:
        told |= access.native(permit)
    return told


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
    return access.of_mode(mode, facts.config) or facts.configured


def _model(choices: Choices, facts: Facts) -> Model:
    return known(facts.models, current_model(choices, facts))


# ── showing ────────────────────────────────────────────────────────────────


def render(choices: Choices, facts: Facts, client: Client) -> list[dict[str, Any]]:
    """All options and where each stands, as `configOptions`."""
    model = _model(choices, facts)
    effort = current_effort(choices, facts)
    text = "What Codex may do without asking."
    shown = [_select("mode", "Mode", "mode", text, choices.mode, _modes(facts))]
    if model.model:
        models = model_entries(facts.models, facts.model, model.model)
        shown.append(_select("model", "Model", "model", "The model that answers.", model.model, models))
    efforts = effort_entries(model, effort)
    if efforts and effort is not None:
        text = "How much the model thinks before it answers."
        shown.append(_select("thought_level", "Thinking", "thought_level", text, effort, efforts))
    if model.takes_personality:
        text = "How Codex talks to you."
        current, personalities = _personality(choices, facts)
        shown.append(_select("personality", "Personality", "model_config", text, current, personalities))
    text = "How much of its reasoning the model shows."
    current, summaries = _summary(choices, facts)
    shown.append(_select("reasoning_summary", "Reasoning shown", "model_config", text, current, summaries))
    return [*shown, _network(choices, facts, client)]


def modes(choices: Choices, facts: Facts) -> dict[str, Any]:
    """The same modes for clients that know no options, as `SessionModeState`."""
    available = [
        {"id": mode["value"], "name": mode["name"], "description": mode["description"]}
        for mode in _modes(facts)
    ]
    return {"currentModeId": choices.mode, "availableModes": available}


def _modes(facts: Facts) -> list[Entry]:
    said = {
        CONFIG: f"What config.toml says: {access.words(facts.configured)}.",
        KEPT: f"What it had when it was last used: {access.words(facts.kept or facts.running)}.",
        **access.DESCRIPTIONS,
    }
    listed = MODES if facts.kept is None else (*MODES, KEPT)
    return [entry(mode, access.NAMES[mode], said[mode]) for mode in listed]


def _personality(choices: Choices, facts: Facts) -> tuple[str, list[Entry]]:
    current = choices.personality or facts.config.get("personality")
    return _setting(current, PERSONALITIES, "Default personality")


def _summary(choices: Choices, facts: Facts) -> tuple[str, list[Entry]]:
    current = choices.summary or facts.config.get("model_reasoning_summary")
    return _setting(current, SUMMARIES, "Reasoning: default")


def _setting(current: Any, entries: tuple[Entry, ...], default: str) -> tuple[str, list[Entry]]:
    if any(current == each["value"] for each in entries):
        return str(current), list(entries)
    return DEFAULT, [entry(DEFAULT, default, "Codex's default for the model."), *entries]


def _network(choices: Choices, facts: Facts, client: Client) -> dict[str, Any]:
    permit = policy(choices, facts)
    is_on = access.has_network(permit)
    current = "on" if is_on else "off"
    is_free = access.can_switch_network(permit)
    entries = [each for each in NETWORK if is_free or each["value"] == current]
    text = "Whether commands may use the network."
    option = _select("network", "Network", "_permissions", text, current, entries)
    if client.takes_booleans:
        del option["options"]
        return option | {"type": "boolean", "currentValue": is_on}
    return option


def _select(
    config_id: str, name: str, category: str, description: str, current: str, entries: list[Entry]
) -> dict[str, Any]:
    return {
        "id": config_id,
        "name": name,
        "description": description,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": entries,
    }


# ── choosing ───────────────────────────────────────────────────────────────


def choose(choices: Choices, facts: Facts, config_id: str, value: Any) -> Choices:
    """With this value chosen; refused with `RemoteError` if there is no such option or value."""
    change = msgspec.structs.replace
    match ALIASES.get(config_id, config_id):
        case "mode":
            mode = _one_of("mode", value, _modes(facts))
            return choices if mode == choices.mode else change(choices, mode=mode, is_set=True)
        case "model":
            return _choose_model(choices, facts, value)
        case "thought_level":
            model = _model(choices, facts)
            entries = effort_entries(model, current_effort(choices, facts))
            return change(choices, effort=_one_of("thought level", value, entries))
        case "personality":
            _, entries = _personality(choices, facts)
            entries = entries if _model(choices, facts).takes_personality else []
            return _set(choices, "personality", _one_of("personality", value, entries))
        case "reasoning_summary":
            _, entries = _summary(choices, facts)
            return _set(choices, "summary", _one_of("reasoning summary", value, entries))
        case "network":
            return _choose_network(choices, facts, value)
        case _:
            raise RemoteError(INVALID_PARAMS, f"There is no option {_cut(config_id)}.")


def _choose_model(choices: Choices, facts: Facts, value: Any) -> Choices:
    hidden = [entry(model.model, model.name) for model in facts.models if model.is_hidden]
    shown = model_entries(facts.models, facts.model, current_model(choices, facts))
    model = known(facts.models, _one_of("model", value, shown, hidden))
    changed = msgspec.structs.replace(choices, model=model.model)
    effort = choices.effort or facts.effort
    if effort is not None and model.efforts and not model.supports(effort):
        # Codex would go on with the old one, which the new model refuses.
        return msgspec.structs.replace(changed, effort=model.default_effort or model.efforts[0].effort)
    return changed


def _choose_network(choices: Choices, facts: Facts, value: Any) -> Choices:
    if not isinstance(value, bool) and value not in ("on", "off"):
        raise RemoteError(INVALID_PARAMS, f"The network is on or off, not {_cut(value)}.")
    is_on = value is True or value == "on"
    permit = chosen(choices, facts)
    if is_on == access.has_network(permit):
        return choices
    if not access.can_switch_network(permit):
        text = "This access comes with its own rule for the network. Choose another mode first."
        raise RemoteError(INVALID_PARAMS, text)
    return msgspec.structs.replace(choices, network=is_on, is_set=True)


def _set(choices: Choices, field: str, value: str) -> Choices:
    return choices if value == DEFAULT else msgspec.structs.replace(choices, **{field: value})


def _one_of(what: str, value: Any, entries: list[Entry], silent: list[Entry] | None = None) -> str:
    """A value of the selector; `silent` ones are taken, but not named to whoever errs."""
    for each in (*entries, *(silent or ())):
        if isinstance(value, str) and value == each["value"]:
            return value
    names = ", ".join(each["value"] for each in entries)
    remedy = f"Choose one of: {names}." if names else "There is none to choose here."
    raise RemoteError(INVALID_PARAMS, f"There is no {what} {_cut(value)}. {remedy}")


def _cut(value: Any) -> str:
    if isinstance(value, dict | list):
        return "of this shape"  # to write it out may be long, and deeper than Python goes
    text = value if isinstance(value, str) else repr(value)
    return code_label(text, MAX_SHOWN_CHARS)
