"""What a person says, in the form that Claude Code takes: content blocks, and images as base64.

Checked before anything is sent. Pure, but that images are read from their files.
"""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import Path
from typing import Any

from laneway.base.engines import CLAUDE
from laneway.base.errors import EngineCannot, UsageError
from laneway.core.ports import ImagePart, NativePart, Part, TextPart

MAX_IMAGE_BYTES = 5 * 1024 * 1024
"""Of one image: what Anthropic's API accepts."""
CONTEXT_START, CONTEXT_END = "<laneway-context>", "</laneway-context>"
"""Around the context of a turn, which is a block of its own in front of what the person says."""
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^,]*)?;base64,(.*)", re.DOTALL)

Content = list[dict[str, Any]]


def content_of(parts: tuple[Part, ...], context: str = "") -> Content:
    """Raises `UsageError` for an image that cannot be sent."""
    blocks = [_block(part) for part in parts]
    if not blocks:
        raise UsageError("There is nothing to send: the prompt is empty.")
    if not context:
        return blocks
    # The end mark cannot be forged: the context may carry what strangers wrote.
    safe = context.replace(CONTEXT_END, "< /laneway-context>")
    return [{"type": "text", "text": f"{CONTEXT_START}\n{safe}\n{CONTEXT_END}"}, *blocks]


def text_of(parts: tuple[Part, ...]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def _block(part: Part) -> dict[str, Any]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ImagePart(path=str(path)):
            return _image(_read(path), path)
        case ImagePart(url=str(url)):
            return _image(_decoded(url), "the image")
        case NativePart(value):
            return value
        case _:
            raise UsageError("An image needs a path or a URL.")


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_IMAGE_BYTES + 1)
    except OSError as problem:
        raise UsageError(f"The image {path} cannot be read: {problem.strerror}.") from problem


def _decoded(url: str) -> bytes:
    match = _DATA_URL.fullmatch(url)
    if match is None:
        raise EngineCannot(CLAUDE, "fetch images by their address", "Send the image itself.")
    try:
        return base64.b64decode(match[2], validate=True)
    except binascii.Error:
        raise UsageError("The image is no valid base64.") from None


def _image(data: bytes, name: str) -> dict[str, Any]:
    if len(data) > MAX_IMAGE_BYTES:
        raise UsageError(
            f"{name[:1].upper()}{name[1:]} is too large: {CLAUDE} takes images of up to"
            f" {MAX_IMAGE_BYTES // 2**20} MB."
        )
    media_type = next((kind for start, kind in _SIGNATURES if data.startswith(start)), None)
    if media_type is None and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        media_type = "image/webp"
    if media_type is None:
        raise UsageError(
            f"{name[:1].upper()}{name[1:]} is no image that {CLAUDE} takes: PNG, JPEG, GIF or WebP."
        )
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}
