"""Sentences of ours reach people whole: none looks like a secret to the redaction of errors and logs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from laneway.base.redact import redact

SOURCE = Path(__file__).resolve().parent.parent / "src" / "laneway"
FILES = sorted([*SOURCE.glob("cli/**/*.py"), *SOURCE.glob("app/**/*.py"), *SOURCE.glob("base/**/*.py")])


def sentences(tree: ast.AST) -> Iterator[str]:
    """The texts of a module, values as a word; no docstrings, which nobody but readers of the code sees."""
    hidden: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            hidden.add(node.value)
        if isinstance(node, ast.JoinedStr):
            hidden.update(node.values)
            if node not in hidden:
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "value" for part in node.values
                )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in hidden:
            yield node.value


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_sentence_is_redacted_by_mistake(file: Path) -> None:
    """As in "no terminal to ask for the token: pass it by …", where a word went missing."""
    assert [text for text in sentences(ast.parse(file.read_text())) if redact(text) != text] == []


def test_the_search_finds_such_a_sentence() -> None:
    """In an f-string, too; not in a docstring."""
    tree = ast.parse('"""The token: a docstring."""\nraise Oops(f"Give the token: pass it by {name}.")')
    assert list(sentences(tree)) == ["Give the token: pass it by value."]
    assert redact("Give the token: pass it by value.") == "Give the token: [redacted] it by value."
