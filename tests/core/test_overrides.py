"""Config overrides are merged by us, in one form, whatever the spelling and the order."""

from __future__ import annotations

import copy
import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import ConfigRefused
from laneway.core.overrides import MAX_DEPTH, leaves, merged, path_of, spelled

NAMES = st.sampled_from(["a", "b", "mcp_servers", "my.server", "/path/x.y", 'say "hi"', "it's", "ü"])
TOP = st.sampled_from(["a", "b", "mcp_servers", "with-dash"])
VALUES = st.one_of(st.booleans(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2))
PATHS = st.builds(lambda top, rest: (top, *rest), TOP, st.lists(NAMES, max_size=3))
Path = tuple[str, ...]


def quoted(path: Path) -> str:
    """As TOML writes it, every name in quotes."""
    return ".".join(json.dumps(name, ensure_ascii=False) for name in path)


def nested(path: Path, value: Any) -> dict[str, Any]:
    for name in reversed(path[1:]):
        value = {name: value}
    return {path[0]: value}


@st.composite
def spellings(draw: st.DrawFn) -> tuple[dict[Path, Any], dict[str, Any]]:
    """Values by their paths, none of which leads through another; and one way to write them all down."""
    values: dict[Path, Any] = {}
    for path in draw(st.lists(PATHS, max_size=6)):
        if not any(path[: len(other)] == other or other[: len(path)] == path for other in values):
            values[path] = draw(VALUES)
    written: dict[str, Any] = {}
    for path, value in values.items():
        cut = draw(st.integers(1, len(path)))
        inner = nested(path[cut:], value) if cut < len(path) else value
        key = quoted(path[:cut])
        if key in written and isinstance(written[key], dict) and isinstance(inner, dict):
            written[key] = merge_plain(written[key], inner)
        else:
            written[key] = inner
    return values, written


def merge_plain(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The obvious merge, for tables that never contradict each other."""
    result = dict(one)
    for name, value in other.items():
        both = isinstance(result.get(name), dict) and isinstance(value, dict)
        result[name] = merge_plain(result[name], value) if both else value
    return result


@given(spellings(), st.randoms())
def test_the_spelling_and_the_order_of_keys_make_no_difference(
    case: tuple[dict[Path, Any], dict[str, Any]], random: Any
) -> None:
    """Dotted, quoted, nested or a mixture: the same table comes out."""
    values, written = case
    expected: dict[str, Any] = {}
    for path, value in values.items():
        expected = merge_plain(expected, nested(path, value))
    keys = list(written)
    random.shuffle(keys)
    assert merged({key: written[key] for key in keys}) == expected
    assert merged(*({key: written[key]} for key in keys)) == expected


@given(spellings())
def test_what_is_merged_is_merged_for_good(case: tuple[dict[Path, Any], dict[str, Any]]) -> None:
    """Once more changes nothing, Codex finds no dot to cut at, and the sources stay as they were."""
    values, written = case
    before = copy.deepcopy(written)
    config = merged(written)
    assert merged(config) == config
    assert not any("." in key for key in config)
    assert dict(leaves(config)) == values
    assert written == before


@given(PATHS)
def test_a_spelled_path_is_read_back(path: Path) -> None:
    """As our parser reads it, and as TOML does."""
    assert path_of(quoted(path)) == path
    table: Any = tomllib.loads(f"{quoted(path)} = 1")
    for name in path:
        table = table[name]
    assert table == 1


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("model", ("model",)),
        ("a.b.c", ("a", "b", "c")),
        (' a . "b" ', ("a", "b")),
        ('mcp_servers."my.server".command', ("mcp_servers", "my.server", "command")),
        ("projects.'/path/x.y'.trust_level", ("projects", "/path/x.y", "trust_level")),
        ("projects./path/x.trust_level", ("projects", "/path/x", "trust_level")),
        ("a.my server.b", ("a", "my server", "b")),
        (r'a."x\"y\u00fc"', ("a", 'x"yü')),
        ('a.""', ("a", "")),
    ],
)
def test_a_dotted_key_is_read_as_toml_reads_it_and_bare_names_as_codex_does(key: str, path: Path) -> None:
    """Codex takes any name without a dot unquoted, so we do."""
    assert path_of(key) == path


@pytest.mark.parametrize(
    "key",
    [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        " ",
        'a."b',
        "a.'b",
        'a"b',
        'a."b"c',
        r'a."\q"',
        '"a.b".c',
        '"a.b"',
        "'\"'",
        "ü",
    ],
)
def test_a_key_that_cannot_be_read_is_refused(key: str) -> None:
    """Also one that Codex would read in another way than we: a dot in the first name."""
    with pytest.raises(ConfigRefused):
        merged({key: 1})


def test_a_later_source_wins_value_by_value() -> None:
    """Lists are replaced as a whole, tables are not."""
    ours = {"features": {"multi_agent": True, "x": 1}, "notify": ["a", "b"], "model": "m"}
    theirs = {"features.multi_agent": False, "notify": ["c"], "features": {"y": {"z": 1}}}
    assert merged(ours, theirs) == {
        "features": {"multi_agent": False, "x": 1, "y": {"z": 1}},
        "notify": ["c"],
        "model": "m",
    }


@pytest.mark.parametrize(
    ("sources", "key"),
    [
        ([{"a": 1, "a.b": 2}], "a"),
        ([{"a.b": 2, "a": 1}], "a"),
        ([{"a.b": {"c": 1}}, {"a.b": None}], "a.b"),
        ([{"a.b": []}, {"a": {"b": {}}}], "a.b"),
        ([{'a."x.y"': 1, "a": {"x.y": {"z": 2}}}], 'a."x.y"'),
    ],
)
def test_a_value_and_a_table_of_one_name_are_refused_in_a_sentence(
    sources: list[dict[str, Any]], key: str
) -> None:
    """In either order, in one source or in two."""
    with pytest.raises(ConfigRefused) as refused:
        merged(*sources)
    assert refused.value.key == key
    assert str(refused.value) == f"The config key {key} is given as a value and as a table: leave out one."


def test_what_is_nested_without_end_is_refused_before_it_exhausts_us() -> None:
    """By dots or by tables."""
    deep: Any = 1
    for _ in range(MAX_DEPTH + 1):
        deep = {"a": deep}
    for config in (deep, {".".join("a" * (MAX_DEPTH + 1)): 1}):
        with pytest.raises(ConfigRefused, match="deeper than"):
            merged(config)
    assert merged({".".join("a" * MAX_DEPTH): 1})


def test_a_key_in_a_sentence_is_short_and_plain() -> None:
    """A model reads it, and somebody at a terminal."""
    assert len(spelled(("x" * 1000,))) < 300
    assert "\x1b" not in spelled(("a", "\x1b[2J"))
