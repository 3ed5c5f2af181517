"""What a user once said, as content blocks: the way back from `laneway.doors.acp.sessions.prompts`.

Pure. Takes an input as Codex keeps it, whichever program sent it. What has no block of its own is
named in words; nothing is left out in silence.
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
_HARMLESS_MARK = re.compile(r"\[\\(/?)(?=ACP_RESOURCE)", re.IGNORECASE)
_WRAPPED = re.compile(
    r'\[ACP_RESOURCE(?:_LINK)? uri="[^"\n]*"[^\]\n]*\](?:.*?\[/ACP_RESOURCE(?:_LINK)?\]|.*)', re.DOTALL
)
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,", re.IGNORECASE)


def blocks(said: UserSaid, max_image_chars: int | None = None) -> list[Block]:
    """One block for each part of the input; an image whose base64 is longer than this is only named."""
    if not isinstance(said.content, list):
        return [_text(said.text)] if said.text else []
    return [block for part in said.content if (block := _block(part, max_image_chars)) is not None]


def words(text: str) -> str:
    """A text without the resources that were wrapped into it."""
    return _WRAPPED.sub("", text)


def _block(part: Any, max_image_chars: int | None) -> Block | None:
    match part:
        case {"type": "text", "text": str(text)}:
            return _unwrapped(text) if text else None
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


def _unwrapped(text: str) -> Block:
    link = _LINK.fullmatch(text)
    if link:
        return {"type": "resource_link", "uri": link[1], "name": link[2] or link[1]}
    wrapped = _RESOURCE.fullmatch(text)
    if wrapped is None or _MARK.search(wrapped[3]):
        return _text(text)
    resource = {"uri": wrapped[1], "text": _HARMLESS_MARK.sub(r"[\1", wrapped[3])}
    if wrapped[2]:
        resource["mimeType"] = wrapped[2]
    return {"type": "resource", "resource": resource}


def _image(url: str, max_chars: int | None) -> Block:
    found = _DATA_URL.match(url)
    if found is None:
        if "://" not in url:
            return _text("[an image that cannot be shown]")
        return {"type": "resource_link", "name": "image", "uri": url}
    data = url[found.end() :]
    if max_chars is not None and len(data) > max_chars:
        return _text(f"[an image of {len(data) * 3 // 4:,} bytes, which is left out of older turns]")
    if not is_base64(data):
        return _text("[an image that cannot be shown]")
    return {"type": "image", "data": data, "mimeType": found[1]}


def _file(path: str, name: str) -> Block:
    if not PurePath(path).is_absolute():
        return _text(f"[{name}: {path}]")
    return {"type": "resource_link", "name": name, "uri": PurePath(path).as_uri()}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}
