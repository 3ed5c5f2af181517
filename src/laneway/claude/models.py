"""The models that Claude Code lists in its handshake, as the core's values. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from laneway.core.models import Effort, Model


def models(entries: Iterable[Any]) -> tuple[Model, ...]:
    return tuple(_model(entry) for entry in entries if isinstance(entry, dict) and entry.get("value"))


def _model(entry: dict[str, Any]) -> Model:
    efforts = entry.get("supportedEffortLevels")
    return Model(
        model=str(entry["value"]),
        name=str(entry.get("displayName") or entry["value"]),
        description=str(entry.get("description") or ""),
        efforts=tuple(Effort(str(each)) for each in efforts) if isinstance(efforts, list) else (),
    )
