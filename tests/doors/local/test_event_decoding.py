"""An event that was told as data is the same event again."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from laneway.core import model
from laneway.core.model import Event, FromSubagent, public
from laneway.doors.local.event_decoding import event_of

JSON = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3)
KINDS = [
    kind for kind in Event.__subclasses__() if kind is not FromSubagent and kind.__module__ == model.__name__
]


def fields_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a struct, its unread `frame` and `item` aside."""
    hints = {
        field.name: value_of(field.type)
        for field in msgspec.structs.fields(kind)
        if field.name not in ("frame", "item")
    }
    return st.builds(kind, **hints)


def value_of(hint: Any) -> st.SearchStrategy[Any]:
    if hint is Any:
        return JSON
    args = get_args(hint)
    if get_origin(hint) is tuple:
        return st.lists(value_of(args[0]), max_size=2).map(tuple)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return fields_of(hint)
    if get_origin(hint) in (Union, UnionType):
        return st.one_of(*(value_of(each) for each in args))
    return st.none() if hint is NoneType else st.from_type(hint)


EVENTS = st.sampled_from(KINDS).flatmap(fields_of)
FROM_OTHERS = st.builds(FromSubagent, thread_id=st.text(), parent_id=st.text(), inner=EVENTS)


@given(event=EVENTS | FROM_OTHERS)
def test_what_is_told_can_be_understood_again(event: Event) -> None:
    """All kinds of events, over the wire and back; what is empty is left out on the way."""
    told = msgspec.json.decode(msgspec.json.encode(public(event)))
    assert public(event_of(told)) == public(event)  # type: ignore[arg-type]
    assert type(event_of(told)) is type(event)


@given(
    told=st.dictionaries(
        st.sampled_from(["event", "turn_id", "text", "inner", "question", "steps"]),
        JSON
        | st.sampled_from(["text", "plan", "asked", "from_subagent", "usage"])
        | st.dictionaries(st.text(max_size=2), JSON, max_size=2),
    )
)
def test_what_is_no_event_is_none(told: dict[str, Any]) -> None:
    """A newer Laneway may tell what this one cannot draw: it never fails."""
    assert isinstance(event_of(told), Event | None)


def test_every_kind_of_event_is_tried() -> None:
    """The list comes from the vocabulary itself."""
    assert {model.Text, model.TurnDone, model.Asked, model.Plan} <= set(KINDS)
