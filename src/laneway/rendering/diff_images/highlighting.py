"""Colours code by pygments, whose expressions can take very long on hostile text."""

from __future__ import annotations

from collections.abc import Sequence

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import Token
from pygments.util import ClassNotFound

from laneway.rendering.diff_images.layout import StyledText

STYLES = {
    Token.Keyword: "keyword",
    Token.Keyword.Constant: "constant",
    Token.Name.Function: "name",
    Token.Name.Class: "name",
    Token.Name.Decorator: "name",
    Token.Name.Tag: "keyword",
    Token.Name.Attribute: "constant",
    Token.Name.Builtin: "builtin",
    Token.Name.Exception: "builtin",
    Token.Literal.String: "string",
    Token.Literal.Number: "constant",
    Token.Operator.Word: "keyword",
    Token.Comment: "muted",
    Token.Generic.Heading: "name",
    Token.Generic.Strong: "name",
}
"""Of kinds of tokens, and of those below them."""


class Highlighter:
    """A `Highlight` of `layout`."""

    def __init__(self) -> None:
        self._lexers: dict[str, Lexer | None] = {}

    def __call__(self, path: str, lines: Sequence[str]) -> list[tuple[StyledText, ...]]:
        lexer = self._lexer(path)
        if lexer is None:
            return [(StyledText(line),) for line in lines]
        coloured: list[list[StyledText]] = [[]]
        for kind, value in lexer.get_tokens("\n".join(lines)):
            for at, text in enumerate(value.split("\n")):
                if at:
                    coloured.append([])
                if text:
                    coloured[-1].append(StyledText(text, _style(kind)))
        coloured = coloured[: len(lines)]
        if ["".join(span.text for span in line) for line in coloured] != list(lines):
            return [
                (StyledText(line),) for line in lines
            ]  # it has changed the text: what was written is shown
        return [tuple(line) for line in coloured]

    def _lexer(self, path: str) -> Lexer | None:
        if path not in self._lexers:
            try:
                self._lexers[path] = get_lexer_for_filename(path, stripnl=False, ensurenl=False)
            except ClassNotFound:
                self._lexers[path] = None
        return self._lexers[path]


def _style(kind: object) -> str:
    while kind is not None:
        if kind in STYLES:
            return STYLES[kind]
        kind = getattr(kind, "parent", None)
    return ""
