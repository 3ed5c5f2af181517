"""Events that came as data made events again: the way back from `laneway.core.model.public`."""

from __future__ import annotations

from typing import Any, get_origin

import msgspec

from laneway.core.model import Event, FromSubagent


def event_of(told: dict[str, Any]) -> Event | None:
    """The event, without what `public` leaves out; `None` for one that a newer Laneway knows."""
    kind = _KINDS.get(str(told.get("event")))
    if kind is None:
        return None
    given = {name: value for name, value in told.items() if name != "event"}
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in given:
            given[field.name] = _blank(field.type)
    try:
        if kind is FromSubagent:
            inner = event_of(given.pop("inner") or {})
            return FromSubagent(inner=inner, **given) if inner is not None else None
        return msgspec.convert({"event": told["event"], **given}, kind)
    except (msgspec.ValidationError, TypeError, AttributeError):
        return None


def _blank(kind: Any) -> Any:
    """What `public` left out because it was empty."""
    if kind is str:
        return ""
    return () if get_origin(kind) is tuple else None


_KINDS: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in Event.__subclasses__()}
