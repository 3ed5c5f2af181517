"""Markdown as a tree of a few known elements, for the page and for exported files. Raw HTML is text.

Needs `markdown-it-py`, which comes with `laneway[web]`. A node is a text, or `[tag, attributes, *nodes]`;
the page makes elements of it one by one, and never parses HTML.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from laneway.base.plain import plain, plain_code

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Node: TypeAlias = "str | list[Any]"

MAX_MARKDOWN_CHARS = 200_000
"""Of one text that is parsed; a longer one is shown as it is."""
MAX_NESTING = 30
"""Of lists and quotes. Deeper ones are a trick."""
TAGS = frozenset(
    {"p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a"}
    | {"h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"}
)
_VOID = frozenset({"br", "hr"})
_LINKS = ("http://", "https://", "mailto:")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # `commonmark` has raw HTML on; here it is text. Images are links: nothing remote is ever loaded.
    options = {"html": False, "linkify": False, "typographer": False, "maxNesting": MAX_NESTING}
    return (
        MarkdownIt("commonmark", options)
        .enable(["table", "strikethrough"])
        .disable(["html_block", "html_inline"])
    )


def markdown_tree(text: str) -> list[Node]:
    """Foreign text: hidden characters are shown."""
    if len(text) > MAX_MARKDOWN_CHARS:
        return [["pre", {}, plain(text)]]
    return _nodes(iter(_parser().parse(plain(text))), "")


def tree_html(nodes: Iterable[Node]) -> str:
    """The tree as HTML, for a file that is shown elsewhere."""
    return "".join(_html(node) for node in nodes)


def _html(node: Node) -> str:
    if isinstance(node, str):
        return escape(node)
    tag, attributes, *children = node
    shown = "".join(f' {name}="{escape(str(value))}"' for name, value in (attributes or {}).items())
    if tag == "a":
        shown += ' rel="noopener noreferrer"'
    return f"<{tag}{shown}>" if tag in _VOID else f"<{tag}{shown}>{tree_html(children)}</{tag}>"


def _nodes(tokens: Any, until: str) -> list[Node]:
    """The nodes up to the token that closes the element they are in."""
    nodes: list[Node] = []
    for token in tokens:
        if token.nesting == -1:
            break
        if token.nesting == 1:
            children = _nodes(tokens, token.tag)
            if token.hidden:
                nodes.extend(children)
            else:
                nodes.append(_element(token, children))
        else:
            nodes.extend(_leaf(token))
    return nodes


def _element(token: Token, children: list[Node]) -> Node:
    if token.tag == "a":
        return _link(str(token.attrGet("href") or ""), children)
    tag = token.tag if token.tag in TAGS else "p"
    start = token.attrGet("start")
    return [tag, {"start": start} if tag == "ol" and isinstance(start, int) else {}, *children]


def _link(href: str, children: list[Node]) -> Node:
    if not href.lower().startswith(_LINKS):
        return ["code", {}, *(children or [plain_code(href)])]
    return ["a", {"href": plain_code(href)}, *(children or [plain_code(href)])]


def _leaf(token: Token) -> list[Node]:
    match token.type:
        case "inline":
            return _nodes(iter(token.children or ()), "")
        case "text" | "html_inline" | "html_block" | "text_special":
            return [token.content]
        case "softbreak":
            return ["\n"]
        case "hardbreak":
            return [["br", {}]]
        case "hr":
            return [["hr", {}]]
        case "code_inline":
            return [["code", {}, plain_code(token.content)]]
        case "fence" | "code_block":
            return [["pre", {}, ["code", {}, token.content.removesuffix("\n")]]]
        case "image":
            return [_link(str(token.attrGet("src") or ""), [f"Image: {token.content}"])]
        case _:
            return [token.content] if token.content else []
