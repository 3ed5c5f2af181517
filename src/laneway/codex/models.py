"""Converts Codex's answer to `model/list` to the core's values. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from laneway.core.models import Effort, Model


class _ListedEffort(msgspec.Struct, rename="camel"):
    reasoning_effort: str
    description: str = ""


class _ListedModel(msgspec.Struct, rename="camel"):
    """An entry of `model/list`. Older versions leave out the last two fields."""

    model: str
    display_name: str = ""
    description: str = ""
    hidden: bool = False
    supported_reasoning_efforts: list[_ListedEffort] = []
    default_reasoning_effort: str | None = None
    input_modalities: list[str] | None = None
    supports_personality: bool = False


def models(entries: Iterable[Any]) -> tuple[Model, ...]:
    """The models of the list; entries that cannot be read are left out."""
    result = []
    for entry in entries:
        try:
            result.append(_model(msgspec.convert(entry, _ListedModel)))
        except msgspec.ValidationError:
            continue
    return tuple(result)


def _model(listed: _ListedModel) -> Model:
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
