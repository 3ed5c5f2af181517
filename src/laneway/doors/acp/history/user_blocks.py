"""Converts a recorded prompt back into content blocks: the reverse of `laneway.doors.acp.sessions.prompts`.

Pure. Takes the input as Codex recorded it, whichever program sent it. A part without a block of its
own is named in text; none is silently left out.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from laneway.core.model import UserSaid
from laneway.doors.acp.updates.blocks import is_base64

Block = dict[str, Any]

_RESOURCE = re.compile(
    r'\[ACP_RESOURCE uri="([^"\n]*)"(?: mime="([^"\n]*)")?\]\n(.*)\n\[/ACP_RESOURCE\]', re.DOTALL
)
_LINK = re.compile(r'\[ACP_RESOURCE_LINK uri="([^"\n]*)" name="([^"\n]*)"\]\n\[/ACP_RESOURCE_LINK\]')
_MARK = re.compile(r"\[/?ACP_RESOURCE", re.IGNORECASE)
_ESCAPED_MARK = re.compile(r"\[\\(/?)(?=ACP_RESOURCE)", re.IGNORECASE)
_WRAPPED = re.compile(
    r'\[ACP_RESOURCE(?:_LINK)? uri="[^"\n]*"[^\]\n]*\](?:.*?\[/ACP_RESOURCE(?:_LINK)?\]|.*)', re.DOTALL
)
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,", re.IGNORECASE)


def blocks(message: UserSaid, max_image_chars: int | None = None) -> list[Block]:
    """One block for each part of the prompt; an image with more base64 than this is only named."""
    if not isinstance(message.content, list):
        return [_text(message.text)] if message.text else []
    return [block for part in message.content if (block := _block(part, max_image_chars)) is not None]


def without_resources(text: str) -> str:
    """The text without embedded resources and links."""
    return _WRAPPED.sub("", text)


def _block(part: Any, max_image_chars: int | None) -> Block | None:
    match part:
        case {"type": "text", "text": str(text)}:
            return _text_block(text) if text else None
        case {"type": "image", "url": str(url)}:
            return _image(url, max_image_chars)
        case {"type": "localImage", "path": str(path)}:
            return _file(path, "image")
        case {"type": "mention", "name": str(name), "path": str(path)}:
            return _file(path, name)
        case {"type": "skill", "name": str(name)}:
            return _text(f"${name}")
        case {"type": str(kind)}:
            return _text(f"[{kind}]")
        case _:
            return _text("[something that cannot be shown]")


def _text_block(text: str) -> Block:
    link = _LINK.fullmatch(text)
    if link:
        return {"type": "resource_link", "uri": link[1], "name": link[2] or link[1]}
    embedded = _RESOURCE.fullmatch(text)
    if embedded is None or _MARK.search(embedded[3]):
        return _text(text)
    resource = {"uri": embedded[1], "text": _ESCAPED_MARK.sub(r"[\1", embedded[3])}
    if embedded[2]:
        resource["mimeType"] = embedded[2]
    return {"type": "resource", "resource": resource}


def _image(url: str, max_chars: int | None) -> Block:
    match = _DATA_URL.match(url)
    if match is None:
        if "://" not in url:
            return _text("[an image that cannot be shown]")
        return {"type": "resource_link", "name": "image", "uri": url}
    data = url[match.end() :]
    if max_chars is not None and len(data) > max_chars:
        return _text(f"[an image of {len(data) * 3 // 4:,} bytes, which is left out of older turns]")
    if not is_base64(data):
        return _text("[an image that cannot be shown]")
    return {"type": "image", "data": data, "mimeType": match[1]}


def _file(path: str, name: str) -> Block:
    if not PurePath(path).is_absolute():
        return _text(f"[{name}: {path}]")
    return {"type": "resource_link", "name": name, "uri": PurePath(path).as_uri()}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}
