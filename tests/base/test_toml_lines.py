"""Lines of keys: whatever the layout, the line is the one an editor shows."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from laneway.base.toml_lines import TomlLines, too_deep

TEXT = '''\
a = 1
b.c = "x # not a comment"   # [no.table]

[ one . "two.three" ]
"qu\\u006fted" = """
[fake]
d = 1 ""\\"
"""
e = [
  "]", # ]
  { f = 1 }, [2,
  3],
]
'l it' = \'\'\'
'' [fake2]
\'\'\'
[[many]]
g = { h = { i = 1 } }
[[many]]
g = 2
'''


def test_every_layout_that_toml_allows() -> None:
    """Quoted and dotted keys, long strings, lists over several lines, comments with brackets."""
    tomllib.loads(TEXT)
    lines = TomlLines(TEXT)
    wanted = {
        ("a",): 1,
        ("b", "c"): 2,
        ("one", "two.three"): 4,
        ("one", "two.three", "quoted"): 5,
        ("one", "two.three", "e"): 9,
        ("one", "two.three", "l it"): 14,
        ("many",): 17,
        ("many", "g"): 18,
        ("many", "g", "h", "i"): 18,
        ("one", "two.three", "not there"): 4,
        ("nowhere",): None,
        ("fake",): None,
        ("fake2",): None,
    }
    assert {keys: lines.find(keys) for keys in wanted} == wanted


KEY = st.text("ab-1_", min_size=1, max_size=4)
VALUES = st.sampled_from(
    [
        "1",
        "'#'",
        '"[x]"',
        '"\\""',
        "[\n1, # ]\n]",
        '"""\nk = 1\n\\""""',
        "'''\n[t]\n'''",
        "{ k = [\n'}'] }",
        "[]",
    ]
)
BLANKS = st.sampled_from(["", "\n", "# k = 1\n", "  \r\n", "#'\"\n"])


@given(st.lists(st.tuples(BLANKS, KEY, VALUES), unique_by=lambda entry: entry[1]), KEY)
def test_a_key_is_found_on_the_line_it_was_written(entries: list[tuple[str, str, str]], table: str) -> None:
    """Composed of pieces that are hard to skip."""
    text, wanted = f"[{table}]\n", {}
    for blank, key, value in entries:
        text += blank
        wanted[table, key] = text.count("\n") + 1
        text += f"{key} = {value}\n"
    tomllib.loads(text)
    lines = TomlLines(text)
    assert {keys: lines.find(keys) for keys in wanted} == wanted


@given(st.text() | st.text("\"'[]{}#=.\\\n a"))
def test_no_text_makes_it_fail(text: str) -> None:
    """It also meets text that is no TOML."""
    TomlLines(text).find(("a", "b"))
    too_deep(text)


def test_a_key_of_many_parts_is_seen_before_it_costs_memory() -> None:
    """And prose with full stops is not mistaken for one."""
    assert too_deep("x = 1\n" + "a." * 40 + "b = 1") == 2
    assert too_deep("x = 1\n[" + '"a b" . ' * 40 + "b]") == 2
    assert too_deep('x = "' + "A sentence. " * 100 + '"') is None
    assert too_deep("a" * 200_000) is None
