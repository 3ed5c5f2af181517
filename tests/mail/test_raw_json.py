"""JSON taken apart and put together: what is not touched keeps its bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.mail import raw_json
from laneway.mail.raw_json import NotJson

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
PLAIN = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
ODD_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
"""With halves of surrogate pairs."""
LOOKALIKE = {"separators": (",\n  ", ":\n  ")}
"""Every level looks as the outermost does with two spaces."""


@given(st.lists(VALUES))
def test_an_array_as_the_others_write_it_comes_out_as_it_went_in(things: list[Any]) -> None:
    """Byte for byte, as JSON.stringify and serde's pretty printer spell it."""
    spelt = json.dumps(things, indent=2, ensure_ascii=False).encode()
    assert raw_json.array(raw_json.items(spelt)) == spelt


@given(st.lists(VALUES, min_size=1), st.integers(1), st.sampled_from([{"indent": 2}, {}, LOOKALIKE]))
def test_the_last_entries_are_those_that_reading_everything_finds(
    things: list[Any], wanted: int, style: dict[str, Any]
) -> None:
    """However it is spelt: also where entries seem to begin at places inside of others."""
    wanted = 1 + wanted % len(things)
    spelt = json.dumps(things, **style).encode()
    found = raw_json.last_items(spelt, wanted, len(things))
    assert found[-wanted:] == raw_json.items(spelt)[-wanted:]


def test_only_the_end_of_a_long_array_is_looked_at() -> None:
    """So that new mail in an old inbox is found fast."""
    spelt = json.dumps([{"n": n} for n in range(1000)], indent=2).encode()
    found = raw_json.last_items(spelt, 3, 1000)
    assert 3 <= len(found) < 20
    assert [json.loads(raw) for raw in found[-3:]] == [{"n": 997}, {"n": 998}, {"n": 999}]


@given(st.dictionaries(st.text(), VALUES))
def test_an_object_comes_out_as_it_went_in(thing: dict[str, Any]) -> None:
    """The order of its members, too."""
    spelt = json.dumps(thing, indent=2, ensure_ascii=False).encode()
    assert list(json.loads(raw_json.object_of(raw_json.fields(spelt))).items()) == list(thing.items())


@given(PLAIN)
def test_what_we_write_looks_like_theirs(thing: Any) -> None:
    """Two spaces a level, at every depth."""
    assert raw_json.pretty(thing) == json.dumps(thing, indent=2, ensure_ascii=False).encode()
    inside = raw_json.array([raw_json.pretty(thing, 1)])
    assert inside == json.dumps([thing], indent=2, ensure_ascii=False).encode()


@given(st.lists(st.dictionaries(ODD_TEXT, ODD_TEXT, max_size=3)))
def test_half_of_a_pair_is_no_reason_to_read_nothing(things: list[dict[str, str]]) -> None:
    """JavaScript writes such, as an escape; what is not touched keeps it."""
    spelt = json.dumps(things, indent=2).encode()
    items = raw_json.items(spelt)
    assert raw_json.array(items) == spelt
    assert [json.loads(item) for item in items] == things
    for item, thing in zip(items, things, strict=True):
        assert {name: json.loads(value) for name, value in raw_json.fields(item).items()} == thing
        json.dumps(raw_json.value(item), ensure_ascii=False).encode()  # can be written, logged and sent


@given(st.binary(max_size=60))
def test_whatever_the_bytes_are_there_is_an_answer_or_a_refusal(data: bytes) -> None:
    """Never another exception."""
    for take in (raw_json.items, raw_json.fields, raw_json.value):
        try:
            take(data)
        except NotJson:
            pass


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[1,]",
        b"[1",
        b"{}",
        b"null",
        b"[1] x",
        b'["a\nb"]',
        b"[NaN]",
        b'{"a" 1}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_what_is_no_array_is_refused(data: bytes) -> None:
    """With words for people."""
    with pytest.raises(NotJson, match=r"\w"):
        raw_json.items(data)


def test_nothing_is_an_empty_array_and_a_mark_of_byte_order_is_passed_over() -> None:
    """An inbox that was made and not yet written; a file from an editor on Windows."""
    assert raw_json.items(b"") == raw_json.items(b" \n") == []
    assert raw_json.items(b"\xef\xbb\xbf[1]") == [b"1"]


def test_numbers_keep_their_spelling_and_bytes_that_are_no_text_their_value() -> None:
    """A 64-bit id must not become another one."""
    spelt = b'[\n  1.0,\n  1E400,\n  123456789012345678901234567890,\n  "\xff"\n]'
    assert raw_json.array(raw_json.items(spelt)) == spelt
    odd = b'[\n  "\\ud800",\n  "\xff"\n]'
    assert raw_json.array(raw_json.items(odd)) == odd
    assert raw_json.value(b'"a\xff\\ud800"') == "a\ufffd\ufffd"


@pytest.mark.parametrize("depth", [100, 400, 700, 990, 5_000, 200_000])
def test_deep_nesting_is_an_answer_or_a_refusal(depth: int) -> None:
    """With something odd inside, so that every way is tried."""
    data = b"[" * depth + b'"\\ud800"' + b"]" * depth
    for take in (raw_json.items, raw_json.value):
        try:
            take(data)
        except NotJson:
            pass
