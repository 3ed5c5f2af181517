"""Markdown cut into blocks as it streams: each line once, in order, and never too early."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.terminal.blocks import MAX_CODE_LINES, Block, MarkdownBlocks

LINES = [
    "word",
    "",
    "# head",
    "- a",
    "  - b",
    "1. x",
    "```py",
    "```",
    "  indented",
    "> quote",
    "| a | b |",
    "---",
    "~~~",
]
texts = st.lists(st.sampled_from(LINES), max_size=30).map("\n".join)


def blocks(*pieces: str) -> list[Block]:
    found = MarkdownBlocks()
    return [block for piece in pieces for block in found.feed(piece)] + found.end()


@given(texts)
def test_every_line_comes_once_and_in_order(text: str) -> None:
    """Only empty lines are left out."""
    joined = "\n".join(block.text for block in blocks(text))
    assert [line for line in joined.split("\n") if line.strip()] == [
        line for line in text.split("\n") if line.strip()
    ]


@given(texts, st.integers(min_value=1, max_value=7))
def test_the_blocks_do_not_depend_on_how_the_text_came(text: str, size: int) -> None:
    """A letter at a time, or all at once."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert blocks(*pieces) == blocks(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo\n\nthree\n", [Block("text", "one\ntwo"), Block("text", "three")]),
        ("# Head\ntext", [Block("heading", "# Head"), Block("text", "text")]),
        (
            "```py\nx = 1\n\ny = 2\n```\nbehind",
            [Block("code", "```py\nx = 1\n\ny = 2\n```"), Block("text", "behind")],
        ),
        (
            "intro:\n- a\n  - b\n- c",
            [Block("text", "intro:"), Block("item", "- a\n  - b"), Block("item", "- c", True)],
        ),
        ("1. a\n\n   more\n\n2. b", [Block("item", "1. a\n\n   more"), Block("item", "2. b", True)]),
        ("- a\n\nbehind", [Block("item", "- a"), Block("text", "behind")]),
        (
            "- a\n  ```\n  x\n\n  y\n  ```\n- b",
            [Block("item", "- a\n  ```\n  x\n\n  y\n  ```"), Block("item", "- b", True)],
        ),
        ("the year\n1984. it was", [Block("text", "the year\n1984. it was")]),
        ("````\n```\n````", [Block("code", "````\n```\n````")]),
        ("| a |\n|---|\n| 1 |\n\nx", [Block("text", "| a |\n|---|\n| 1 |"), Block("text", "x")]),
    ],
)
def test_a_block_ends_where_markdown_ends_it(text: str, expected: list[Block]) -> None:
    """Paragraphs, headings, code, lists, tables."""
    assert blocks(text) == expected


def test_a_finished_block_is_not_kept_waiting() -> None:
    """Before the next one is complete, or begun."""
    found = MarkdownBlocks()
    assert found.feed("one\n\ntw") == [Block("text", "one")]
    assert found.feed("o\n# H") == []
    assert found.feed("ead\n") == [Block("text", "two"), Block("heading", "# Head")]


def test_long_code_comes_in_parts() -> None:
    """Each can be rendered by itself, and none is repeated."""
    lines = [f"line {number}" for number in range(2 * MAX_CODE_LINES + 10)]
    parts = blocks("```py\n" + "\n".join(lines) + "\n```\n")
    assert len(parts) == 3
    assert all(part.text.startswith("```py\n") and part.text.endswith("\n```") for part in parts)
    assert [part.goes_on for part in parts] == [False, True, True]
    assert [line for part in parts for line in part.text.split("\n")[1:-1]] == lines
