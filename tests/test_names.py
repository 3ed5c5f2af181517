"""Names of classes: each stands for one thing in the whole of `src`, private ones included."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"


def defined_twice(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """By class name, where it is defined, if more than once; also inside functions and other classes."""
    places: dict[str, list[str]] = defaultdict(list)
    for file, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{file}:{node.lineno}")
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def test_no_two_classes_have_the_same_name() -> None:
    """Whoever searches for a name finds one definition, and an import can be read without its module."""
    sources = {str(path.relative_to(SOURCE)): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
    assert defined_twice(sources) == {}


def test_a_second_class_of_a_name_would_be_seen() -> None:
    """Also a private one, and one inside a function."""
    sources = {
        "a.py": "class _Page: ...",
        "b.py": "def f():\n    class _Page: ...",
        "c.py": "class Page: ...",
    }
    assert defined_twice(sources) == {"_Page": ["a.py:1", "b.py:2"]}
