"""What a scope covers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.jobs.globs import covers


@pytest.mark.parametrize(
    ("glob", "covered", "not_covered"),
    [
        ("src", ["src", "src/a.py", "src/x/y"], ["srcs", "a/src", "sr"]),
        ("./src/", ["src", "src/a.py"], ["srcs"]),
        ("src/*.py", ["src/a.py", "src/.py"], ["src/x/a.py", "src/a.pyc", "a.py"]),
        ("**/*.py", ["a.py", "x/a.py", "x/y/a.py"], ["a.txt"]),
        ("src/**", ["src/a", "src/x/y"], ["a"]),
        ("src/**/test_*", ["src/test_a", "src/x/y/test_b.py"], ["src/a", "test_a"]),
        ("a?c", ["abc"], ["ac", "a/c", "abbc"]),
        ("[ab].txt", ["a.txt", "b.txt"], ["c.txt", "ab.txt"]),
        ("[!ab].txt", ["c.txt"], ["a.txt", "/.txt"]),
        ("[b-a]x", [], ["ax", "bx", "-x"]),
        ("[!b-a]x", ["ax"], ["/x"]),
        ("[a-\\\\]x", [], ["ax", "\\\\x"]),
        ("a[b", ["a[b"], ["ab"]),
        ("x+y.(1)", ["x+y.(1)"], ["xxy.1"]),
        (".", ["anything", "a/b"], []),
        ("*", ["a", "a/b"], []),
    ],
)
def test_a_scope_covers_what_it_names_and_all_below(
    glob: str, covered: list[str], not_covered: list[str]
) -> None:
    """As people expect it of a shell, and of git."""
    assert [path for path in covered if not covers([glob], path)] == []
    assert [path for path in not_covered if covers([glob], path)] == []


@given(st.text(alphabet="ab/*?[]!^-\\.&~|", max_size=12), st.text(alphabet="ab/.-", max_size=8))
def test_no_scope_is_an_error(glob: str, path: str) -> None:
    """It comes from a model."""
    covers([glob], path)
