"""Diffs as pictures: the port of whoever draws them, and the post that shows them."""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from laneway.doors.chat.platforms.bots import words
from laneway.doors.chat.platforms.bots.posts import BotPost
from laneway.rendering.diff_images.drawn import DrawnDiff

DIFF_FILE = "changes.diff"


class DiffPictures(Protocol):
    """Draws the changes of a turn."""

    async def draw(self, diff: str) -> DrawnDiff:
        """Raises nothing. No pictures: the diff is to be shown as text."""
        ...


def gallery_of(post: BotPost) -> BotPost:
    """In place of a post of a diff: what changed in one line, and the pictures."""
    return replace(post, kind="gallery", text=words.diff_summary(post.diff))


def as_text(post: BotPost) -> BotPost:
    """In place of a gallery: the diff as a code block."""
    return replace(post, kind="diff", text=words.diff_text(post.diff))


def whole_diff(post: BotPost) -> BotPost:
    """The file with the diff that its pictures show only a part of; it has a key of its own."""
    key = f"{post.key}+file"
    return replace(post, key=key, kind="file", text="", diff="", body=post.diff, name=DIFF_FILE)


def instead_of_pictures(post: BotPost) -> BotPost:
    """For a gallery that was stored by an earlier process and cannot be drawn any more."""
    return replace(post, kind="file", body=post.diff, diff="", name=DIFF_FILE)
