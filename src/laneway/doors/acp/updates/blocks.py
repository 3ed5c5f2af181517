"""Content of tool calls: text, media, and what tools of others return, made fit for ACP.

Pure. A block that ACP knows is passed on, with the fields that ACP names and no others; whatever
else a tool returns is shown as the JSON that it is. Nothing is left out without a word.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from laneway.base.plain import fenced
from laneway.rendering.as_code import as_json
from laneway.rendering.outputs import shortened

Content = dict[str, Any]
"""One ACP `ToolCallContent`."""

MAX_MEDIA_CHARS = 20 * 1024 * 1024
"""Base64 in one tool call, all its blocks together: with the text, one line that clients still read."""

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,", re.IGNORECASE)
_SIGNATURES = (
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
)
"""How the base64 of each kind of image begins."""


def text(words: str) -> Content:
    return {"type": "content", "content": {"type": "text", "text": words}}


def file_link(path: str) -> Content:
    """A file on this machine; the path is absolute."""
    name = PurePath(path).name or path
    return {
        "type": "content",
        "content": {"type": "resource_link", "name": name, "uri": PurePath(path).as_uri()},
    }


def image_type(data: str) -> str:
    """What kind of image this base64 holds; PNG, which Codex makes, if it does not tell."""
    return next((mime for start, mime in _SIGNATURES if data.startswith(start)), "image/png")


def is_base64(data: Any) -> bool:
    if not isinstance(data, str) or not data:
        return False
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        return False
    return True


class ContentBudget:
    """How much one tool call may still say."""

    def __init__(self, max_chars: int) -> None:
        self.text_chars = max_chars
        self.media_chars = MAX_MEDIA_CHARS

    def text(self, words: str) -> str:
        cut = shortened(words, self.text_chars)
        self.text_chars -= min(self.text_chars, len(words))
        return cut

    def has_room_for(self, data: str) -> bool:
        if len(data) > self.media_chars:
            return False
        self.media_chars -= len(data)
        return True


def tool_results(blocks: Any, max_chars: int) -> list[Content]:
    """What an MCP server or a tool of Codex's client returned, block by block."""
    if blocks is None:
        return []
    budget = ContentBudget(max_chars)
    return [_shown(block, budget) for block in (blocks if isinstance(blocks, list) else [blocks])]


def _shown(block: Any, budget: ContentBudget) -> Content:
    kind = block.get("type") if isinstance(block, dict) else None
    make = _MAKERS.get(kind) if isinstance(kind, str) else None
    made = make(block, budget) if make else None
    if made is None:
        return text(fenced(budget.text(as_json(block)), "json"))
    noted = _annotations(block.get("annotations"))
    if noted:
        made["annotations"] = noted
    return {"type": "content", "content": made}


def _text(block: dict[str, Any], budget: ContentBudget) -> dict[str, Any] | None:
    words = block.get("text")
    return {"type": "text", "text": budget.text(words)} if isinstance(words, str) else None


def _media(block: dict[str, Any], budget: ContentBudget) -> dict[str, Any] | None:
    data, mime = block.get("data"), block.get("mimeType")
    if not isinstance(mime, str) or not isinstance(data, str):
        return None
    return _bounded_media(str(block["type"]), data, mime, budget)


def _bounded_media(kind: str, data: str, mime: str, budget: ContentBudget) -> dict[str, Any]:
    # Some servers wrap their base64 at 76 characters; a strict client would not take it.
    data = "".join(data.split())
    if not is_base64(data):
        return {"type": "text", "text": f"This {kind} ({mime}) is not valid base64 and is left out."}
    if not budget.has_room_for(data):
        return {
            "type": "text",
            "text": f"This {kind} ({mime}, {len(data):,} characters) is too large to show.",
        }
    return {"type": kind, "data": data, "mimeType": mime}


def _link(block: dict[str, Any], budget: ContentBudget) -> dict[str, Any] | None:
    uri = block.get("uri")
    if not isinstance(uri, str):
        return None
    name = block.get("name")
    made: dict[str, Any] = {
        "type": "resource_link",
        "name": name if isinstance(name, str) else uri,
        "uri": uri,
    }
    made |= {
        key: block[key] for key in ("title", "description", "mimeType") if isinstance(block.get(key), str)
    }
    size = block.get("size")
    if isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**63:
        made["size"] = size
    return made


def _resource(block: dict[str, Any], budget: ContentBudget) -> dict[str, Any] | None:
    inner = block.get("resource")
    if not isinstance(inner, dict) or not isinstance(inner.get("uri"), str):
        return None
    made: dict[str, Any] = {"uri": inner["uri"]}
    if isinstance(inner.get("mimeType"), str):
        made["mimeType"] = inner["mimeType"]
    if isinstance(inner.get("text"), str):
        made["text"] = budget.text(inner["text"])
    elif is_base64(inner.get("blob")) and budget.has_room_for(inner["blob"]):
        made["blob"] = inner["blob"]
    else:
        return {"type": "resource_link", "name": inner["uri"], "uri": inner["uri"]}
    return {"type": "resource", "resource": made}


def _by_url(kind: str, field: str) -> Callable[[dict[str, Any], ContentBudget], dict[str, Any] | None]:
    """Codex's own blocks carry media as a URL: the data itself, or where it is."""

    def make(block: dict[str, Any], budget: ContentBudget) -> dict[str, Any] | None:
        url = block.get(field)
        if not isinstance(url, str):
            return None
        found = _DATA_URL.match(url)
        if found:
            return _bounded_media(kind, url[found.end() :], found[1], budget)
        return {"type": "resource_link", "name": kind, "uri": budget.text(url)}

    return make


_MAKERS: dict[str, Callable[[dict[str, Any], ContentBudget], dict[str, Any] | None]] = {
    "text": _text,
    "inputText": _text,
    "input_text": _text,
    "image": _media,
    "audio": _media,
    "resource_link": _link,
    "resource": _resource,
    "inputImage": _by_url("image", "imageUrl"),
    "input_image": _by_url("image", "image_url"),
    "inputAudio": _by_url("audio", "audioUrl"),
    "input_audio": _by_url("audio", "audio_url"),
}


def _annotations(given: Any) -> dict[str, Any]:
    """What of MCP's annotations ACP knows as well."""
    if not isinstance(given, dict):
        return {}
    made: dict[str, Any] = {}
    audience = given.get("audience")
    if isinstance(audience, list):
        made["audience"] = [who for who in audience if who in ("user", "assistant")]
    if isinstance(given.get("lastModified"), str):
        made["lastModified"] = given["lastModified"]
    priority = given.get("priority")
    if isinstance(priority, (int, float)) and not isinstance(priority, bool):
        made["priority"] = priority
    return made
