"""Sends pictures as one album; a single one as a photo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laneway.doors.chat.platforms.telegram.api import TelegramApi, Upload
from laneway.doors.chat.platforms.telegram.entities import EntityText

MAX_ALBUM = 10
"""Pictures; an album has two at least."""


async def send_album(
    api: TelegramApi, address: Mapping[str, Any], caption: EntityText, pictures: Sequence[bytes]
) -> str:
    """The id of its first message, which has the caption. Makes no sound. Raises what `call` raises."""
    words = {"caption": caption.text, "caption_entities": caption.entities or None}
    words = {key: value for key, value in words.items() if value}
    files = {f"p{at}": Upload(f"changes-{at}.png", data) for at, data in enumerate(pictures[:MAX_ALBUM], 1)}
    params: dict[str, Any] = {**address, "disable_notification": True}
    if len(files) == 1:
        sent = await api.call("sendPhoto", {**params, **words, "photo": "attach://p1"}, files)
        return str(sent["message_id"])
    media = [
        {"type": "photo", "media": f"attach://{name}", **(words if name == "p1" else {})} for name in files
    ]
    album = await api.call("sendMediaGroup", {**params, "media": media}, files)
    return str(album[0]["message_id"])
