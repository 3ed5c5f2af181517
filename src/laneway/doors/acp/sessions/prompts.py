"""Converts the content blocks of a `session/prompt` into parts of a turn. Pure.

Text stays as it is. Images become `data:` URLs, so that the history can show them again without a
temporary file. Resources and links are wrapped in marks that name their source. A block that cannot
be converted is refused with an error; none is silently left out.
"""

from __future__ import annotations

import binascii
import re
from typing import Any

from laneway.base.errors import RemoteError
from laneway.base.plain import code_label
from laneway.core.ports import ImagePart, Part, TextPart
from laneway.doors.acp.faults import bad_params

MAX_IMAGE_BYTES = 20 * 1024 * 1024
"""Of one decoded image: the limit of OpenAI's models. A larger one would fail after a long upload."""

MAX_TEXT_CHARS = 1 << 20
"""Of all texts of a prompt together: the limit of Codex."""

_IMAGE_TYPE = re.compile(r"image/[a-z0-9][a-z0-9.+-]*")
_MARK = re.compile(r"\[(/?)(?=ACP_RESOURCE)", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


NO_IMAGES = "{} cannot take images. Describe the image."
_MODEL_TAKES_NONE = "The current model takes no images. Choose another model, or describe the image."


def parts(blocks: Any, *, images: bool, no_images: str = _MODEL_TAKES_NONE) -> tuple[Part, ...]:
    """The parts for the `prompt` of a `session/prompt`.

    `images`: whether images are taken; `no_images` says why not.
    """
    if not isinstance(blocks, list):
        raise bad_params("The prompt must be a list of content blocks.")
    converted = tuple(part for block in blocks if (part := _part(block, images, no_images)) is not None)
    if not converted:
        raise bad_params("The prompt is empty. Write something first.")
    size = sum(len(part.text) for part in converted if isinstance(part, TextPart))
    if size > MAX_TEXT_CHARS:
        raise bad_params(
            f"The prompt has {size:,} characters, and Codex takes {MAX_TEXT_CHARS:,}. Name files instead."
        )
    return converted


def _part(block: Any, images: bool, no_images: str) -> Part | None:
    if not isinstance(block, dict):
        raise bad_params("Every content block of a prompt must be an object.")
    match block.get("type"):
        case "text":
            text = _string(block, "text")
            return TextPart(text) if text else None
        case "image":
            return _image(_string(block, "data"), _string(block, "mimeType"), images, no_images)
        case "resource_link":
            return _link(_string(block, "uri"), _string(block, "name"))
        case "resource":
            return _resource(block.get("resource"), images, no_images)
        case "audio":
            raise bad_params("Codex takes no audio. Send the words as text.")
        case kind:
            raise bad_params(f"There is no content block of the type {_quoted_value(kind)}.")


def _image(data: str, mime: str, images: bool, no_images: str) -> Part:
    if not images:
        raise bad_params(no_images)
    kind = mime.lower()
    if not _IMAGE_TYPE.fullmatch(kind):
        raise bad_params(f"{_quoted_value(mime)} is no type of an image.")
    if len(data) // 4 * 3 > MAX_IMAGE_BYTES + 2:  # more than the limit, whatever the padding
        raise _too_large()
    try:
        size = len(binascii.a2b_base64(data, strict_mode=True))
    except ValueError:
        raise bad_params("The data of an image is not valid base64.") from None
    if not size:
        raise bad_params("An image of the prompt has no data.")
    if size > MAX_IMAGE_BYTES:
        raise _too_large()
    return ImagePart(url=f"data:{kind};base64,{data}")


def _resource(resource: Any, images: bool, no_images: str) -> Part:
    if not isinstance(resource, dict):
        raise bad_params("A resource block needs a `resource` object.")
    uri, mime = _string(resource, "uri"), resource.get("mimeType")
    mime = mime if isinstance(mime, str) else ""
    if isinstance(resource.get("text"), str):
        kind = f' mime="{_attribute(mime)}"' if mime else ""
        return TextPart(
            f'[ACP_RESOURCE uri="{_attribute(uri)}"{kind}]\n{_escaped(resource["text"])}\n[/ACP_RESOURCE]'
        )
    blob = _string(resource, "blob")
    if mime.lower().startswith("image/"):
        return _image(blob, mime, images, no_images)
    if uri.lower().startswith("file:"):
        return _link(uri, uri.rpartition("/")[2])  # the model can read the file itself
    raise bad_params(f"The resource {_quoted_value(uri)} is neither text nor an image. Send it as a file.")


def _link(uri: str, name: str) -> Part:
    return TextPart(
        f'[ACP_RESOURCE_LINK uri="{_attribute(uri)}" name="{_attribute(name)}"]\n[/ACP_RESOURCE_LINK]'
    )


def _escaped(text: str) -> str:
    """The text with its marks escaped, so that it can neither close its own wrapping nor open another."""
    return _MARK.sub(r"[\\\1", text)


def _attribute(value: str) -> str:
    return _escaped(_CONTROL.sub(" ", value).replace('"', "%22"))


def _string(table: dict[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str):
        raise bad_params(f"A content block needs `{key}` as a string.")
    return value


def _too_large() -> RemoteError:
    return bad_params(f"An image may have {MAX_IMAGE_BYTES // 1024 // 1024} MiB. Make it smaller.")


def _quoted_value(value: Any) -> str:
    if isinstance(value, dict | list):
        return "that it names"  # its repr may be long, or nested too deeply for Python
    return code_label(repr(value), 80)
