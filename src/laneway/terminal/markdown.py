"""Renders the model's Markdown on a terminal, block by block as the blocks are finished.

Needs `rich`, which comes with `laneway[terminal]` and is imported only here, in a thread while
Codex works. Nothing is printed twice or redrawn: a long answer scrolls.
"""

from __future__ import annotations

import importlib.util
import io
import re
from typing import TYPE_CHECKING, Any, TextIO

from laneway.base.plain import plain
from laneway.terminal.blocks import Block, MarkdownBlocks
from laneway.terminal.style import is_dumb, size

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_PROSE_COLUMNS = 100
"""Longer lines of prose are hard to read. Code and tables may have the whole width."""
CODE_THEME = "ansi_dark"
"""Uses the terminal's own colours, which fit any background."""
STYLES = {
    "markdown.code": "cyan",
    "markdown.code_block": "none",
    "markdown.link": "bold",
    "markdown.link_url": "underline",
    "markdown.block_quote": "italic",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
    "markdown.item.number": "none",
}
_SGR = re.compile(r"\x1b\[[0-9;]*m")
_HEADING = re.compile(r"^\s*(#{1,6})\s*(.*?)\s*#*\s*$", re.DOTALL)


def can_render(out: TextIO) -> bool:
    """Whether Markdown can be rendered there: a capable terminal, with the library installed."""
    return out.isatty() and not is_dumb() and importlib.util.find_spec("rich") is not None


def load() -> None:
    """Import the library, which takes a tenth of a second: call it in a thread."""
    import rich.console
    import rich.markdown
    import rich.syntax
    import rich.theme  # noqa: F401


class MarkdownAnswer:
    """An `AnswerWriter` that renders Markdown."""

    is_at_line_start = True
    """Unfinished blocks are not on the screen yet."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._blocks = MarkdownBlocks()
        self._is_first = True

    def write(self, text: str) -> None:
        for block in self._blocks.feed(text):
            self._print(block)

    def end_message(self) -> None:
        for block in self._blocks.end():
            self._print(block)
        self._is_first = True

    interrupt = end_message

    def _print(self, block: Block) -> None:
        gap = "" if self._is_first or block.goes_on else "\n"
        self._is_first = False
        self._out.write(gap + rendered(block, size(self._out)[0]))
        self._out.flush()


def rendered(block: Block, columns: int) -> str:
    """One block as lines for a terminal, without empty lines around it."""
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    is_prose = block.kind != "code" and not block.text.lstrip().startswith("|")
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        width=min(columns, MAX_PROSE_COLUMNS) if is_prose else columns,
        theme=Theme(STYLES),
        highlight=False,
    )
    text, style = block.text, "none"
    if block.kind == "heading" and (heading := _HEADING.match(text)):
        text, style = heading[2], "bold underline" if len(heading[1]) == 1 else "bold"
    # Links are written out: otherwise their text could hide where they lead.
    markdown = Markdown("", code_theme=CODE_THEME, hyperlinks=False, style=style)
    markdown.parsed = _parsed(text)
    with console.capture() as drawn:
        console.print(markdown)
    lines = [line.rstrip() for line in drawn.get().split("\n")]
    while lines and _is_empty(lines[0]):
        del lines[0]
    while lines and _is_empty(lines[-1]):
        del lines[-1]
    return "".join(f"{line}\n" for line in lines)


def _parsed(text: str) -> Any:
    """The text's tokens, without control characters that a terminal would obey."""
    from markdown_it import MarkdownIt

    # Tags are text: a renderer that understands no HTML would drop the `<T>` of a `Vec<T>`.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("autolink")
    tokens = parser.parse(plain(text))
    _tame(tokens)
    return tokens


def _tame(tokens: Sequence[Any]) -> None:
    """Remove control characters again after parsing, which has decoded entities like `&#13;`."""
    for token in tokens:
        token.content = plain(token.content)
        token.attrs = {name: plain(str(value)) for name, value in token.attrs.items()}
        _tame(token.children or ())


def _is_empty(line: str) -> bool:
    return not _SGR.sub("", line).strip()
