"""Rendered Markdown: readable, block by block, and nothing in it that a terminal would obey."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.terminal.blocks import Block
from laneway.terminal.markdown import MarkdownAnswer, rendered
from tests.terminal.test_screen import is_clean

SGR = re.compile(r"\x1b\[[0-9;]*m")


def text_of(markdown: str, columns: int = 80) -> str:
    """As a person reads it."""
    return SGR.sub("", rendered(Block("text", markdown), columns))


@given(
    st.text(alphabet=st.one_of(st.characters(), st.sampled_from("#*`_[]()<>&;\x1b\n|-~!1.")), max_size=200)
)
def test_whatever_a_model_writes_only_colours_reach_the_terminal(text: str) -> None:
    """Escapes are made visible."""
    assert is_clean(text_of(text))


@pytest.mark.parametrize("entity", ["&#27;[2J", "&#x1b;c", "&#13;gone", "&#x202e;", "&#155;0m", "&rlm;"])
def test_an_entity_does_not_smuggle_a_control_character(entity: str) -> None:
    """The parser makes characters of them behind our first look."""
    for kind in (f"a {entity} b", f"[{entity}](http://x/{entity})", f"`{entity}`", f"![{entity}]({entity})"):
        assert is_clean(text_of(kind))


def test_a_link_shows_where_it_leads() -> None:
    """And is no link that a terminal hides."""
    assert text_of("[the docs](http://evil.example/x)") == "the docs (http://evil.example/x)\n"
    assert "\x1b]8" not in rendered(Block("text", "[a](http://b)"), 80)


@pytest.mark.parametrize("text", ["Vec<T> and <b>bold</b>", "a <http://x.org> b", "<script>x</script>"])
def test_what_looks_like_a_tag_is_not_lost(text: str) -> None:
    """Code in prose has many of them."""
    assert text_of(text) == text + "\n"


def test_a_heading_stands_at_the_margin_without_its_signs() -> None:
    """Whatever its level."""
    assert SGR.sub("", rendered(Block("heading", "## The *fix* ##"), 80)) == "The fix\n"


class Window(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_blocks_come_as_they_are_finished_with_one_empty_line_between_them() -> None:
    """Items of a list stand together."""
    out = Window()
    answer = MarkdownAnswer(out)
    seen = []
    for piece in ("# One\n", "\nHello **you", "** there.\n\n", "- a\n- b\n", "- c\n\nEnd"):
        answer.write(piece)
        seen.append(SGR.sub("", out.getvalue()))
    answer.end_message()
    assert seen[0] == seen[1] == "One\n"
    assert seen[2] == "One\n\nHello you there.\n"
    assert SGR.sub("", out.getvalue()) == "One\n\nHello you there.\n\n • a\n • b\n • c\n\nEnd\n"
