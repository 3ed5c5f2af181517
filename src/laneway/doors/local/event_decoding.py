"""Decodes events that a watcher received as JSON: the inverse of `laneway.core.model.public`."""

from __future__ import annotations

from typing import Any, get_origin

import msgspec

from laneway.core import model
from laneway.core.model import Event, FromSubagent


def event_of(event_json: dict[str, Any]) -> Event | None:
    """The event, without what `public` leaves out; `None` for a kind that only a newer Laneway knows."""
    kind = _KINDS.get(str(event_json.get("event")))
    if kind is None:
        return None
    fields = {name: value for name, value in event_json.items() if name != "event"}
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in fields:
            fields[field.name] = _blank(field.type)
    try:
        if kind is FromSubagent:
            inner = event_of(fields.pop("inner") or {})
            return FromSubagent(inner=inner, **fields) if inner is not None else None
        return msgspec.convert({"event": event_json["event"], **fields}, kind)
    except (msgspec.ValidationError, TypeError, AttributeError):
        return None


def _blank(kind: Any) -> Any:
    """The empty value that `public` left out."""
    if kind is str:
        return ""
    return () if get_origin(kind) is tuple else None


_KINDS: dict[str, type[Event]] = {
    str(kind.__struct_config__.tag): kind
    for kind in Event.__subclasses__()
    if kind.__module__ == model.__name__  # lanes have events of their own, which sessions never send
}
