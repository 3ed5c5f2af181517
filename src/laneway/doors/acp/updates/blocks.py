"""Content blocks of tool calls: text, file links, and the results of MCP tools converted to ACP.

Pure. A block of a type that ACP has is passed on with the fields that ACP has; any other result is
shown as JSON. Where something is left out, a sentence says so.
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
"""Base64 in all blocks of one tool call: with the text, still a message that clients can read."""

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,", re.IGNORECASE)
_SIGNATURES = (
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
)
"""The first characters of the base64 of each image type."""


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
    """The MIME type of a base64 image; PNG, which Codex makes, if it is not recognised."""
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
    """How much text and media one tool call may still contain."""

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
    """The results of an MCP server or of a client's tool, block by block."""
    if blocks is None:
        return []
    budget = ContentBudget(max_chars)
    return [_content(block, budget) for block in (blocks if isinstance(blocks, list) else [blocks])]


def _content(block: Any, budget: ContentBudget) -> Content:
    kind = block.get("type") if isinstance(block, dict) else None
    convert = _CONVERTERS.get(kind) if isinstance(kind, str) else None
    acp_block = convert(block, budget) if convert else None
    if acp_block is None:
        return text(fenced(budget.text(as_json(block)), "json"))
    annotations = _annotations(block.get("annotations"))
    if annotations:
        acp_block["annotations"] = annotations
    return {"type": "content", "content": acp_block}


def _text(block: dict[str, Any], budget: ContentBudget) -> dict[str, Any] | None:
    words = block.get("text")
    return {"type": "text", "text": budget.text(words)} if isinstance(words, str) else None


def _media(block: dict[str, Any], budget: ContentBudget) -> dict[str, Any] | None:
    data, mime = block.get("data"), block.get("mimeType")
    if not isinstance(mime, str) or not isinstance(data, str):
        return None
    return _bounded_media(str(block["type"]), data, mime, budget)


def _bounded_media(kind: str, data: str, mime: str, budget: ContentBudget) -> dict[str, Any]:
    # Some servers wrap their base64 at 76 characters, which strict clients refuse.
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
    link: dict[str, Any] = {
        "type": "resource_link",
        "name": name if isinstance(name, str) else uri,
        "uri": uri,
    }
    link |= {
        key: block[key] for key in ("title", "description", "mimeType") if isinstance(block.get(key), str)
    }
    size = block.get("size")
    if isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**63:
        link["size"] = size
    return link


def _resource(block: dict[str, Any], budget: ContentBudget) -> dict[str, Any] | None:
    source = block.get("resource")
    if not isinstance(source, dict) or not isinstance(source.get("uri"), str):
        return None
    resource: dict[str, Any] = {"uri": source["uri"]}
    if isinstance(source.get("mimeType"), str):
        resource["mimeType"] = source["mimeType"]
    if isinstance(source.get("text"), str):
        resource["text"] = budget.text(source["text"])
    elif is_base64(source.get("blob")) and budget.has_room_for(source["blob"]):
        resource["blob"] = source["blob"]
    else:
        return {"type": "resource_link", "name": source["uri"], "uri": source["uri"]}
    return {"type": "resource", "resource": resource}


def _by_url(kind: str, field: str) -> Callable[[dict[str, Any], ContentBudget], dict[str, Any] | None]:
    """A converter for Codex's own blocks, which have media as a `data:` URL or a link."""

    def convert(block: dict[str, Any], budget: ContentBudget) -> dict[str, Any] | None:
        url = block.get(field)
        if not isinstance(url, str):
            return None
        match = _DATA_URL.match(url)
        if match:
            return _bounded_media(kind, url[match.end() :], match[1], budget)
        return {"type": "resource_link", "name": kind, "uri": budget.text(url)}

    return convert


_CONVERTERS: dict[str, Callable[[dict[str, Any], ContentBudget], dict[str, Any] | None]] = {
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


def _annotations(mcp_annotations: Any) -> dict[str, Any]:
    """Those of MCP's annotations that ACP has as well."""
    if not isinstance(mcp_annotations, dict):
        return {}
    annotations: dict[str, Any] = {}
    audience = mcp_annotations.get("audience")
    if isinstance(audience, list):
        annotations["audience"] = [who for who in audience if who in ("user", "assistant")]
    if isinstance(mcp_annotations.get("lastModified"), str):
        annotations["lastModified"] = mcp_annotations["lastModified"]
    priority = mcp_annotations.get("priority")
    if isinstance(priority, (int, float)) and not isinstance(priority, bool):
        annotations["priority"] = priority
    return annotations
