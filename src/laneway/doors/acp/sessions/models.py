"""The models that Codex offers, as far as an editor's options need to know them.

Pure: from `model/list` to values and to the entries of a selector. Codex accepts models that
its list does not have (other providers), so a name is all that is known of some.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from laneway.base.plain import label, plain

Entry = dict[str, Any]
"""One value of a selector: `value`, `name`, perhaps `description`."""

USUAL_EFFORTS = ("low", "medium", "high")
"""Offered for a model that Codex knows nothing of, if somebody set an effort for it."""
_EFFORT_NAMES = {"xhigh": "Extra high"}


class Effort(msgspec.Struct, frozen=True):
    effort: str
    description: str = ""


class Model(msgspec.Struct, frozen=True):
    model: str
    name: str = ""
    description: str = ""
    is_hidden: bool = False
    efforts: tuple[Effort, ...] = ()
    default_effort: str | None = None
    takes_images: bool = True
    takes_personality: bool = False

    def supports(self, effort: str) -> bool:
        return any(effort == known.effort for known in self.efforts)


class _ListedEffort(msgspec.Struct, rename="camel"):
    reasoning_effort: str
    description: str = ""


class _Listed(msgspec.Struct, rename="camel"):
    """An entry of `model/list`. Older Codexes leave out the last two."""

    model: str
    display_name: str = ""
    description: str = ""
    hidden: bool = False
    supported_reasoning_efforts: list[_ListedEffort] = []
    default_reasoning_effort: str | None = None
    input_modalities: list[str] | None = None
    supports_personality: bool = False


def models(entries: Iterable[Any]) -> tuple[Model, ...]:
    """Those of the list that make sense."""
    found = []
    for entry in entries:
        try:
            found.append(_model(msgspec.convert(entry, _Listed)))
        except msgspec.ValidationError:
            continue
    return tuple(found)


def known(listed: Iterable[Model], model: str) -> Model:
    """What is known of a model, which may be its name only."""
    return next((each for each in listed if each.model == model), Model(model, model))


def model_entries(listed: Iterable[Model], *always: str) -> list[Entry]:
    """What a user may choose: what is meant to be seen, and those in use whatever they are."""
    shown = [model for model in listed if not model.is_hidden or model.model in always]
    names = {model.model for model in shown}
    others = [Model(model, model) for model in dict.fromkeys(always) if model and model not in names]
    return [entry(model.model, model.name or model.model, model.description) for model in [*shown, *others]]


def effort_entries(model: Model, current: str | None) -> list[Entry]:
    """Empty if the model has none to choose from."""
    efforts = model.efforts
    if not efforts and current is not None:
        efforts = tuple(Effort(usual) for usual in USUAL_EFFORTS)
    if current is not None and all(current != each.effort for each in efforts):
        efforts = (*efforts, Effort(current))
    return [entry(each.effort, effort_name(each.effort), each.description) for each in efforts]


def effort_name(effort: str) -> str:
    return _EFFORT_NAMES.get(effort, effort[:1].upper() + effort[1:])


def entry(value: str, name: str, description: str = "") -> Entry:
    about = {"description": plain(description)} if description else {}
    return {"value": value, "name": label(name), **about}


def _model(listed: _Listed) -> Model:
    efforts = (Effort(each.reasoning_effort, each.description) for each in listed.supported_reasoning_efforts)
    return Model(
        model=listed.model,
        name=listed.display_name,
        description=listed.description,
        is_hidden=listed.hidden,
        efforts=tuple(efforts),
        default_effort=listed.default_reasoning_effort,
        takes_images=listed.input_modalities is None or "image" in listed.input_modalities,
        takes_personality=listed.supports_personality,
    )
