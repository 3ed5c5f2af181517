"""Edits of other programs' configs: the entry changes, every other byte stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.cli.clients.edit import drop, look, put
from laneway.cli.registrations import parse

JSON = Path("a.json")
TOML = Path("a.toml")
KEYS = ("mcpServers", "codex")
ENTRY = {"command": "laneway", "args": ["mcp"]}
LAID_OUT = """\
{
  "mcpServers": {
    "codex": {
      "command": "laneway",
      "args": ["mcp"]
    }
  }
}
"""


@pytest.mark.parametrize("text", ["", "\n", "{}\n", '{\n  "mcpServers": {}\n}\n'])
def test_an_empty_file_gets_a_readable_entry(text: str) -> None:
    """Two blanks deep, lists on one line."""
    assert put(text, JSON, KEYS, ENTRY) == LAID_OUT


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{\n\t"a": 1, // why\n\t"mcpServers": {\n\t\t"x": {"command": "y"} // mine\n\t} /* z */\n}\n',
            '{\n\t"a": 1, // why\n\t"mcpServers": {\n\t\t"x": {"command": "y"}, // mine\n'
            '\t\t"codex": {\n\t\t\t"command": "laneway",\n\t\t\t"args": ["mcp"]\n\t\t}\n\t} /* z */\n}\n',
        ),
        (
            '{"mcpServers": {"x": {}}, "b": [1,2]}',
            '{"mcpServers": {"x": {}, "codex": {"command": "laneway", "args": ["mcp"]}}, "b": [1,2]}',
        ),
        (
            '{\r\n    "a": "//"\r\n}',
            '{\r\n    "a": "//",\r\n    "mcpServers": {\r\n        "codex": {\r\n'
            '            "command": "laneway",\r\n            "args": ["mcp"]\r\n        }\r\n    }\r\n}',
        ),
        (
            '{\n  "mcpServers": {\n    "x": {},\n  },\n}\n',
            '{\n  "mcpServers": {\n    "x": {},\n    "codex": {\n      "command": "laneway",\n'
            '      "args": ["mcp"]\n    },\n  },\n}\n',
        ),
    ],
    ids=["comments-and-tabs", "one-line", "crlf", "trailing-commas"],
)
def test_an_entry_is_added_in_the_files_own_way(before: str, after: str) -> None:
    """Its indentation, its ends of lines, its commas; comments stay with what they are about."""
    assert put(before, JSON, KEYS, ENTRY) == after


def test_only_what_differs_in_an_entry_is_touched() -> None:
    """Comments inside of it stay, and so do keys that we know nothing of."""
    text = '{"codex": {\n "command": "codex", // old\n "args": ["-m", /* fast */ "x", "mcp-server"], "t": 1}}'
    entry = {"command": "laneway", "args": ["-m", "y", "mcp-server"], "t": 1}
    assert put(text, JSON, ("codex",), entry) == text.replace('"codex",', '"laneway",').replace('"x"', '"y"')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{\n  "a": 1,\n  "codex": {} // mine\n}\n', '{\n  "a": 1\n}\n'),
        ('{\n  "codex": {\n    "x": 1\n  },\n  // of a\n  "a": 1\n}\n', '{\n  // of a\n  "a": 1\n}\n'),
        ('{"a": 1, "codex": {}}', '{"a": 1}'),
        ('{"codex": {}, "a": 1}', '{"a": 1}'),
        ('{"codex": {}}', "{}"),
        ('{\n  "a": 1, // a\n  "codex": {},\n}\n', '{\n  "a": 1, // a\n}\n'),
    ],
)
def test_an_entry_is_removed_with_its_comma(before: str, after: str) -> None:
    """And with nothing else, not even the comment of its neighbour."""
    assert drop(before, JSON, ("codex",)) == after


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"mcpServers": {"codex": {}, "codex": {}}}', "the key 'codex' is there twice"),
        ('{"mcpServers": {}, "mcpServers": {}}', "the key 'mcpServers' is there twice"),
        ('{"mcpServers": []}', "its 'mcpServers' is not a table"),
        ('{"mcpServers": null}', "its 'mcpServers' is not a table"),
        ("[]", "it is not an object with keys"),
        ("7", "it is not an object with keys"),
        ('{"a": 1', "Expecting"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text: str, why: str) -> None:
    """With the reason, and with no new text."""
    with pytest.raises(ValueError, match=why):
        put(text, JSON, KEYS, ENTRY)


# ── any JSON ───────────────────────────────────────────────────────────────

names = st.text(alphabet='ab"\\/é \n{}', max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
trees = st.dictionaries(names, values, max_size=4)
comments = st.sampled_from(["", " ", "\n", "// x, }\n", '/* " , } */', "\n  // y\n"])


def laid_out(tree: Any, draw: Callable[[st.SearchStrategy[str]], str]) -> str:
    """A tree as somebody may have written it, comments and trailing commas included."""
    match tree:
        case dict() | list():
            items = tree.items() if isinstance(tree, dict) else [(None, each) for each in tree]
            parts = [
                draw(comments)
                + (f"{json.dumps(key)}{draw(comments)}:{draw(comments)}" if key is not None else "")
                + laid_out(value, draw)
                + draw(comments)
                for key, value in items
            ]
            last = draw(st.sampled_from(["", ","])) + draw(comments) if parts else draw(comments)
            opened, closed = "{}" if isinstance(tree, dict) else "[]"
            return opened + ",".join(parts) + last + closed
        case _:
            return json.dumps(tree)


@given(data=st.data(), tree=trees, others=st.dictionaries(names, st.just({"command": "x"}), max_size=3))
def test_any_json_can_be_edited_and_edited_back(data: st.DataObject, tree: Any, others: Any) -> None:
    """Whatever its layout: no comment is lost, and removing the entry gives back what it said."""
    tree = {**tree, "mcpServers": others}
    text = laid_out(tree, data.draw)
    others.pop("codex", None)
    text = text if parse(text, JSON) == tree else laid_out(tree, data.draw)
    added = put(text, JSON, KEYS, ENTRY)
    assert parse(added, JSON) == {**tree, "mcpServers": {**others, "codex": ENTRY}}
    assert [added.count(word) for word in ("// x", "/* ", "// y")] == [
        text.count(word) for word in ("// x", "/* ", "// y")
    ]
    changed = put(added, JSON, KEYS, {"command": "other", "env": {"A": "1"}})
    assert look(parse(changed, JSON), KEYS) == {"command": "other", "env": {"A": "1"}}
    assert parse(drop(changed, JSON, KEYS), JSON) == tree


# ── TOML ───────────────────────────────────────────────────────────────────

SERVERS = ("mcp_servers", "codex")
FORMS = [
    '[mcp_servers.codex]\ncommand = "codex" # why\nargs = ["mcp-server"]\n',
    '[mcp_servers.codex]\ncommand = "codex"\n\n[mcp_servers.codex.env]\nA = "1"\n\n[b]\nc = 1\n',
    '[mcp_servers]\ncodex = { command = "codex", args = ["mcp-server"] }\nx = { command = "y" }\n',
    'mcp_servers = { codex = {command = "codex"}, x = {command = "y"} }\n',
    'mcp_servers.codex.command = "codex"\nz = 2024-01-01 10:00:00\n',
    "[mcp_servers]\ncodex.command = 'codex'\ncodex.args = [\n 'a', # b ]\n 'mcp-server',\n]\n[x]\n",
    '["mcp_servers".\'codex\']\ncommand = """codex"""\n# last',
    "# only this\r\n[a]\r\nb = 1\r\n",
    "",
]


@pytest.mark.parametrize("text", FORMS)
def test_every_way_to_write_a_table_is_understood(text: str) -> None:
    """Changed in place, or added at the end; comments stay, and it can be removed again."""
    old = look(parse(text, TOML), SERVERS) or {}
    new = {**old, "command": "laneway", "args": ["mcp", 'a"b\n']}
    changed = put(text, TOML, SERVERS, new)
    assert look(parse(changed, TOML), SERVERS) == new
    assert changed.count("#") == text.count("#") - text.count("# b ]")
    removed = parse(drop(changed, TOML, SERVERS), TOML)
    assert look(removed, SERVERS) is None
    rest = {key: value for key, value in parse(text, TOML).items() if key != "mcp_servers"}
    assert {key: value for key, value in removed.items() if key != "mcp_servers"} == rest


def test_a_toml_entry_is_added_at_the_end() -> None:
    """Where it is inside of no other table."""
    assert put('model = "x" # mine\n', TOML, SERVERS, ENTRY) == (
        'model = "x" # mine\n\n[mcp_servers.codex]\ncommand = "laneway"\nargs = ["mcp"]\n'
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[t]\n# why\na = 1\n\n[u]\n", '[t]\n# why\na = 1\nb = "x"\n\n[u]\n'),
        ("[t.inner]\na = 1 # why\n", '[t.inner]\na = 1 # why\n\n[t]\nb = "x"\n'),
        ("t.inner.a = 1\n[u]\nc = 1\n", 't.inner.a = 1\nt.b = "x"\n[u]\nc = 1\n'),
        ("t = { a = 1 }\n", 't = { a = 1, b = "x" }\n'),
        ("[t]\nb = 'y' # why\n", '[t]\nb = "x" # why\n'),
    ],
)
def test_a_single_key_is_set_in_the_table_as_it_is_written(before: str, after: str) -> None:
    """Under its header, dotted, inline, or under a header of its own where only inner tables have one."""
    assert put(before, TOML, ("t", "b"), "x") == after


@pytest.mark.parametrize("text", ["mcp_servers = 7\n", "= 1\n", "[[mcp_servers]]\na = 1\n", 'a = "\n'])
def test_toml_that_has_no_place_for_a_server_is_refused(text: str) -> None:
    """Or that is none."""
    with pytest.raises(ValueError):
        put(text, TOML, SERVERS, ENTRY)


@given(name=st.text(min_size=1, max_size=8), word=st.text(max_size=8))
def test_any_name_and_any_word_survive_the_way_into_toml(name: str, word: str) -> None:
    """Quotes, newlines and control characters are spelled out."""
    entry = {"command": word, "args": [word]}
    try:
        (name + word).encode()
    except UnicodeEncodeError:
        return  # no file can hold it
    changed = put("[a]\nb = 1\n", TOML, ("mcp_servers", name), entry)
    assert parse(changed, TOML) == {"a": {"b": 1}, "mcp_servers": {name: entry}}


@given(text=st.text(alphabet="[]{}.=\"'\n #,ab1") | st.text(alphabet='{}[]":,/*\\ \nab1'))
def test_any_text_is_edited_or_refused(text: str) -> None:
    """Nothing but a `ValueError` ever comes out of it."""
    for file, keys in ((JSON, KEYS), (TOML, SERVERS)):
        try:
            assert look(parse(put(text, file, keys, ENTRY), file), keys) == ENTRY
        except ValueError:
            pass


def test_tables_around_the_last_one_go_with_it_if_they_have_no_header_of_their_own() -> None:
    """`[laneway.chat.telegram]` alone makes three tables."""
    alone = '# mine\n[laneway.chat.telegram]\ntoken = "x"\n'
    assert drop(alone, TOML, ("laneway", "chat", "telegram")).strip() == "# mine"
    beside = f"[laneway]\n\n{alone}"
    assert parse(drop(beside, TOML, ("laneway", "chat", "telegram")), TOML) == {"laneway": {}}
