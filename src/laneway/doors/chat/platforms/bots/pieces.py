"""Cuts a post into as many messages as its service needs; very long ones become a file. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from laneway.base.plain import ELLIPSIS
from laneway.doors.chat.platforms.bots.posts import BotPost, PostLimits
from laneway.doors.chat.splitting import split_text, tail_of

NAMES = {"diff": "changes.diff", "question": "question.md"}
"""Of the file that replaces a long text, by kind."""
RESERVED_UNITS = 10
"""For the ellipsis, and the lines that open and close a code block."""


def pieces(post: BotPost, limits: PostLimits) -> list[BotPost]:
    """The messages in their order. The first has the post's own key, the last one its buttons."""
    if limits.measure(post.text) <= limits.units:
        return [post]
    if post.is_partial:
        # What is being written is read at its end; all of it is shown once it is complete.
        return [replace(post, text=_end(post.text, limits.units, limits))]
    texts = split_text(post.text, limits.units, limits.measure)
    if post.kind == "diff" or len(texts) > limits.max_messages:
        return _as_file(post, limits)
    last = len(texts) - 1
    return [
        replace(
            post,
            key=piece_key(post.key, index),
            text=text,
            buttons=post.buttons if index == last else (),
            dialogs=post.dialogs if index == last else (),
            diff=post.diff if index == 0 else "",
        )
        for index, text in enumerate(texts)
    ]


def piece_key(key: str, index: int) -> str:
    return key if index == 0 else f"{key}+{index}"


def _as_file(post: BotPost, limits: PostLimits) -> list[BotPost]:
    head = split_text(post.text, limits.units - 2, limits.measure)[0]
    body = post.diff or post.text
    file = replace(
        post,
        key=piece_key(post.key, 1),
        kind="file",
        text="",
        buttons=(),
        dialogs=(),
        body=body,
        diff="",
        name=NAMES.get(post.kind, "answer.md"),
    )
    first = replace(post, text=head, buttons=(), dialogs=(), diff=post.diff)
    if post.kind == "diff":
        return [replace(first, buttons=post.buttons), file]
    last = replace(post, key=piece_key(post.key, 2), text=_end(post.text, limits.units // 4, limits))
    return [first, file, last]


def _end(text: str, units: int, limits: PostLimits) -> str:
    """The end of a text; a code block that it begins in is opened again, and one that is open is closed."""
    tail = tail_of(text, units - RESERVED_UNITS, limits.measure)
    before = text[: len(text) - len(tail)]
    opening = "```\n" if _fences(before) % 2 else ""
    closing = "\n```" if _fences(text) % 2 else ""
    return f"{ELLIPSIS}\n{opening}{tail}{closing}"


def _fences(text: str) -> int:
    return sum(line.lstrip().startswith("```") for line in text.splitlines())
