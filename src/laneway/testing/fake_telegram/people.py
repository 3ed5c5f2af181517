"""People of the fake Telegram: they write, reply, quote, forward, edit, send files, press buttons, stop."""

from __future__ import annotations

import re
from collections.abc import Sequence

from laneway.testing.fake_telegram.checks import units
from laneway.testing.fake_telegram.methods import BotApiTap
from laneway.testing.fake_telegram.server import BotApiServer
from laneway.testing.fake_telegram.world import (
    BotApiChat,
    BotApiContent,
    BotApiDraft,
    BotApiMessage,
    BotApiUser,
    BotApiWorld,
    Json,
)

_COMMAND = re.compile(r"(?<!\S)/[A-Za-z0-9_]{1,32}(?:@\w+)?")
_MENTION = re.compile(r"(?<!\w)@\w{4,32}")


class BotApiClientError(Exception):
    """The person's own client shows that it did not work."""


class BotApiPerson:
    def __init__(self, world: BotApiWorld, server: BotApiServer, user: BotApiUser) -> None:
        self.user = user
        self._world, self._server = world, server

    @property
    def user_id(self) -> str:
        return str(self.user.user_id)

    def write(
        self,
        chat: BotApiChat,
        text: str,
        *,
        topic: int = 0,
        reply_to: BotApiMessage | None = None,
        quote: str = "",
        forwarded_from: str = "",
    ) -> BotApiMessage:
        content = BotApiContent(text=text, entities=tuple(entities_of(text)))
        message = self._world.add_message(chat, self.user, content)
        message.thread_id, message.reply_to = topic, reply_to
        message.quote, message.forwarded_from = quote, forwarded_from
        self._send(message)
        return message

    def send_files(
        self,
        chat: BotApiChat,
        files: Sequence[tuple[str, bytes]],
        caption: str = "",
        *,
        as_photos: bool = True,
        album: str = "",
        topic: int = 0,
    ) -> list[BotApiMessage]:
        """One message for each; an album if there are several, or if it is named."""
        sent: list[BotApiMessage] = []
        for index, (name, content) in enumerate(files):
            kind = "" if as_photos else {"txt": "text/plain", "png": "image/png"}.get(name.split(".")[-1], "")
            file = self._world.add_file(name, content, kind)
            words = caption if index == 0 else ""
            shown = BotApiContent(
                text=words, entities=tuple(entities_of(words)), file=file.file_id, is_photo=as_photos
            )
            message = self._world.add_message(chat, self.user, shown)
            message.thread_id = topic
            sent.append(message)
        for message in sent:
            message.album = album or (f"album-{sent[0].message_id}" if len(sent) > 1 else "")
            self._send(message)
        return sent

    def edit(self, message: BotApiMessage, text: str) -> None:
        message.versions.append(BotApiContent(text=text, entities=tuple(entities_of(text))))
        self._world.add_update(edited_message=self._world.message_json(message))
        self._server.tell_updates()

    def _send(self, message: BotApiMessage) -> None:
        self._world.add_update(message=self._world.message_json(message))
        self._server.tell_updates()

    # ── buttons ────────────────────────────────────────────────────────────

    def press(self, message: BotApiMessage, label: str) -> BotApiTap:
        """Press the button with this label."""
        buttons = [button for row in message.now.keyboard for button in row if button["text"] == label]
        if not buttons or message.is_deleted:
            raise BotApiClientError(f"there is no button {label!r}, but {message.labels}")
        return self.press_data(message, buttons[0]["callback_data"])

    def press_data(self, message: BotApiMessage, data: str, *, is_old: bool = False) -> BotApiTap:
        """Press a button that this person's client still shows; of an old message Telegram tells little."""
        tap = BotApiTap(str(10**15 + len(self._server.methods.taps)))
        self._server.methods.taps[tap.tap_id] = tap
        told: Json = self._world.message_json(message)
        if is_old:
            told = {"chat": message.chat.to_json(), "message_id": message.message_id, "date": 0}
        self._world.add_update(
            callback_query={
                "id": tap.tap_id,
                "from": self.user.to_json(),
                "chat_instance": str(message.chat.chat_id),
                "message": told,
                "data": data,
            }
        )
        self._server.tell_updates()
        return tap

    def stop(self, draft: BotApiDraft) -> None:
        """Press Telegram's own Stop button of a draft."""
        if not (draft.is_shown and draft.can_stop):
            raise BotApiClientError("there is nothing to stop")
        thread = {"message_thread_id": draft.thread_id} if draft.thread_id else {}
        draft.is_shown = False
        self._world.add_update(
            stopped_message_generation={"chat": draft.chat.to_json(), "draft_id": draft.draft_id, **thread}
        )
        self._server.tell_updates()


def entities_of(text: str) -> list[Json]:
    """Commands and mentions, as clients find them."""
    found: list[Json] = []
    for pattern, kind in ((_COMMAND, "bot_command"), (_MENTION, "mention")):
        for match in pattern.finditer(text):
            if kind == "mention" and text[: match.start()].rstrip() != text[: match.start()].rstrip("/"):
                continue
            begin = units(text[: match.start()])
            found.append({"type": kind, "offset": begin, "length": units(match[0])})
    spans = [
        (each["offset"], each["offset"] + each["length"]) for each in found if each["type"] == "bot_command"
    ]
    return [
        each
        for each in found
        if each["type"] == "bot_command" or not any(b <= each["offset"] < e for b, e in spans)
    ]
