"""`DiscordWriter`: sends and edits the posts of conversations in Discord's threads, one outcome for each.

A message is sent with a nonce made of its place and key: if the answer to it got lost, the same call again
makes no second message. Nobody is ever notified by what a text says, and links are not fetched.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
from pathlib import Path

import msgspec

from laneway.doors.chat.messages import Place
from laneway.doors.chat.outbox import (
    ChatPace,
    PostHeld,
    PostOutcome,
    PostRefused,
    PostSent,
    ServiceOffline,
)
from laneway.doors.chat.platforms.bots.access import BotAccess
from laneway.doors.chat.platforms.bots.pictures import DiffPictures, as_text, instead_of_pictures
from laneway.doors.chat.platforms.bots.pieces import pieces
from laneway.doors.chat.platforms.bots.posts import BotPost, PostLimits
from laneway.doors.chat.platforms.discord.api import (
    HAS_THREAD,
    INVALID_FORM,
    MISSING_ACCESS,
    MISSING_RIGHTS,
    NO_MENTIONS,
    THREAD_ARCHIVED,
    THREAD_LOCKED,
    TOO_LARGE,
    UNKNOWN_CHANNEL,
    UNKNOWN_MESSAGE,
    DiscordAnswer,
    DiscordApi,
    DiscordUpload,
    Json,
)
from laneway.doors.chat.platforms.discord.components import rows
from laneway.doors.chat.platforms.discord.markdown import for_discord
from laneway.doors.chat.platforms.discord.private_chats import PrivateChats
from laneway.rendering.diff_images.drawn import DrawnDiff

log = logging.getLogger(__name__)

NAME = "discord"
MAX_MESSAGE_CHARS = 2000
"""Discord counts code points."""
MAX_UPLOAD_BYTES = 10 * 1024 * 1024
PACE = ChatPace(edit_s=1.2, call_s=1.0, burst=4)
"""Five messages and five edits in five seconds are allowed in one channel; when they are used up, the
answers say so, and the outbox waits."""
NO_PREVIEWS, SILENT = 1 << 2, 1 << 12
SILENT_KINDS = frozenset({"work", "plan", "banner", "diff", "gallery"})
"""Kinds that make no sound."""
REACTIONS = {
    "begun": "👀",
    "queued": "🕒",
    "held": "⏳",
    "steered": "↪️",
    "answered": "✅",
    "kept": "📎",
    "done": "✅",
    "refused": "❌",
}
GONE = frozenset({UNKNOWN_CHANNEL, MISSING_ACCESS, MISSING_RIGHTS, THREAD_LOCKED})
"""Refusals that hold for everything in a channel."""
NO_FILES = "I have no permission to attach files here"
WHY_GONE = {
    UNKNOWN_CHANNEL: "it was deleted",
    THREAD_LOCKED: "it is locked",
}


class DiscordWriter:
    """The port `BotWriter`."""

    def __init__(
        self,
        api: DiscordApi,
        access: BotAccess,
        private: PrivateChats,
        pictures: DiffPictures | None = None,
    ) -> None:
        self._api = api
        self._access = access
        self.private = private
        self._pictures = pictures
        self._told_gone: set[str] = set()
        """Threads of which their channel was told that they cannot be written to."""

    @property
    def name(self) -> str:
        return NAME

    @property
    def limits(self) -> PostLimits:
        return PostLimits(units=MAX_MESSAGE_CHARS, measure=len)

    def rate_key(self, place: Place) -> str:
        return place.topic or place.chat

    def pace(self, place: Place) -> ChatPace:
        return PACE

    def may_show(self, place: Place) -> bool:
        if not place.topic:
            return self.private.user_of(place.chat) in self._access.users
        return bool({place.chat, place.topic} & self._access.chats)

    async def deliver(self, place: Place, post: BotPost, ref: str) -> PostOutcome:
        match post.kind:
            case "receipt":
                return await self._react(place, post, ref)
            case "unbutton":
                return await self._remove_buttons(place, post.target)
            case "file":
                return PostSent(ref) if ref else await self._send_file(place, post)
            case "gallery":
                return PostSent(ref) if ref else await self._send_gallery(place, post)
            case _:
                return await self._edit(place, post, ref) if ref else await self._send(place, post)

    # ── messages ───────────────────────────────────────────────────────────

    async def _send(
        self, place: Place, post: BotPost, *, with_buttons: bool = True, instead_of: str = ""
    ) -> PostOutcome:
        """`instead_of`: the id of a message that is gone, whose nonce Discord may still know."""
        body = _body(post, with_buttons=with_buttons)
        body |= {
            "flags": NO_PREVIEWS | (SILENT if post.kind in SILENT_KINDS else 0),
            "nonce": _nonce(place, post.key + instead_of),
            "enforce_nonce": True,
        }
        if post.target.isdecimal():  # a tap has no message of its own
            body["message_reference"] = {"message_id": post.target, "fail_if_not_exists": False}
        answer = await self._api.call("POST", f"/channels/{self.rate_key(place)}/messages", body)
        if answer.is_done and _differs(answer, body):
            # An earlier process has sent this message already, with what it knew then.
            return await self._edit(place, post, answer.body["id"])
        if answer.code == INVALID_FORM and body["components"] and with_buttons:
            log.warning("Discord refused the buttons of a message: %s", answer.why)
            return await self._send(place, post, with_buttons=False, instead_of=instead_of)
        return await self._done(place, answer)

    async def _edit(self, place: Place, post: BotPost, ref: str) -> PostOutcome:
        channel = self.rate_key(place)
        path = _message_path(channel, ref)
        body = _body(post)
        answer = await self._api.call("PATCH", path, body)
        if answer.code == THREAD_ARCHIVED:
            opened = await self._api.call("PATCH", f"/channels/{channel}", {"archived": False})
            if not opened.is_done:
                return await self._done(place, opened)
            answer = await self._api.call("PATCH", path, body)
        if answer.code == UNKNOWN_MESSAGE and post.is_stored:
            # Somebody has deleted it; what must arrive is sent anew.
            return await self._send(place, post, instead_of=ref)
        return await self._done(place, answer, ref)

    async def _send_file(self, place: Place, post: BotPost) -> PostOutcome:
        try:
            data = post.body.encode() if not post.path else await asyncio.to_thread(_read, Path(post.path))
        except OSError as problem:
            why = problem.strerror or "it cannot be read"
            return await self._send(place, _without_file(post, why))
        if len(data) > MAX_UPLOAD_BYTES:
            size = f"{len(data) / 1024 / 1024:,.0f} MB are more than Discord takes"
            return await self._send(place, _without_file(post, size))
        upload = DiscordUpload(post.name or Path(post.path).name or "file", data)
        return await self._send_uploads(place, post, [upload], _without_file(post, NO_FILES))

    async def _send_gallery(self, place: Place, post: BotPost) -> PostOutcome:
        """Discord shows the pictures of one message side by side."""
        drawn = await self._pictures.draw(post.diff) if self._pictures is not None else DrawnDiff()
        if not drawn.pictures:
            return await self._send_file(place, instead_of_pictures(post))
        uploads = [DiscordUpload(f"changes-{at}.png", data) for at, data in enumerate(drawn.pictures, 1)]
        text = pieces(as_text(post), self.limits)[0]
        return await self._send_uploads(place, post, uploads, text)

    async def _send_uploads(
        self, place: Place, post: BotPost, uploads: list[DiscordUpload], without: BotPost
    ) -> PostOutcome:
        """`without`: what is shown where files may not be attached."""
        body = _body(post)
        flags = NO_PREVIEWS | (SILENT if post.kind in SILENT_KINDS else 0)
        body |= {"flags": flags, "nonce": _nonce(place, post.key), "enforce_nonce": True}
        path = f"/channels/{self.rate_key(place)}/messages"
        answer = await self._api.call("POST", path, body, files=uploads)
        if answer.code in (MISSING_RIGHTS, TOO_LARGE) or answer.status == 413:
            return await self._send(place, without)
        return await self._done(place, answer)

    async def _react(self, place: Place, post: BotPost, ref: str) -> PostOutcome:
        emoji = REACTIONS[post.receipt]
        if not post.target.isdecimal():
            return PostSent(emoji)  # a tap: what it did can be seen
        # The message that a thread was opened for stands in the channel, and has the thread's id.
        channel = place.chat if post.target == place.topic else self.rate_key(place)
        path = f"{_message_path(channel, post.target)}/reactions"
        if ref and ref != emoji:
            await self._api.call("DELETE", f"{path}/{ref}/@me")
        answer = await self._api.call("PUT", f"{path}/{emoji}/@me")
        if answer.is_down or answer.retry_after_s is not None:
            return await self._done(place, answer, emoji)
        return PostSent(emoji)  # a reaction that may not be made is no loss

    async def _remove_buttons(self, place: Place, message_id: str) -> PostOutcome:
        path = _message_path(self.rate_key(place), message_id)
        answer = await self._api.call("PATCH", path, {"components": []})
        if answer.is_down or answer.retry_after_s is not None:
            return await self._done(place, answer, message_id)
        return PostSent(message_id)  # a message that is gone has no buttons either

    # ── outcomes ───────────────────────────────────────────────────────────

    async def _done(self, place: Place, answer: DiscordAnswer, ref: str = "") -> PostOutcome:
        if answer.is_done:
            return PostSent(ref or str(answer.body["id"]), rest_s=answer.rest_s)
        if answer.retry_after_s is not None:
            return PostHeld(answer.retry_after_s, is_global=answer.is_global)
        if answer.is_down:
            log.warning("Discord could not be reached: %s", answer.why)
            return ServiceOffline()
        is_gone = answer.code in GONE
        if is_gone and place.topic and place.topic not in self._told_gone:
            self._told_gone.add(place.topic)
            await self._tell_channel(place, WHY_GONE.get(answer.code, "I have no permission to write there"))
        return PostRefused(answer.why, is_chat_gone=is_gone)

    async def _tell_channel(self, place: Place, why: str) -> None:
        text = f"I cannot write in <#{place.topic}>: {why}. Begin another conversation by mentioning me here."
        body = {"content": text, "allowed_mentions": NO_MENTIONS}
        answer = await self._api.call("POST", f"/channels/{place.chat}/messages", body)
        if not answer.is_done:
            log.warning("%s: %s; its channel could not be told: %s", place.key, why, answer.why)


async def open_thread(api: DiscordApi, channel_id: str, message_id: str, name: str) -> DiscordAnswer:
    """A thread from a message; it has the message's id. One that is there already will do."""
    path = f"{_message_path(channel_id, message_id)}/threads"
    answer = await api.call("POST", path, {"name": name, "auto_archive_duration": 10_080})
    if answer.code == HAS_THREAD:
        return DiscordAnswer(status=200, body={"id": message_id})
    return answer


def _message_path(channel_id: str, message_id: str) -> str:
    return f"/channels/{channel_id}/messages/{message_id}"


def _body(post: BotPost, *, with_buttons: bool = True) -> Json:
    drawn = for_discord(post.text)
    return {
        "content": drawn if len(drawn) <= MAX_MESSAGE_CHARS else post.text[:MAX_MESSAGE_CHARS],
        "components": rows(post) if with_buttons else [],
        "allowed_mentions": NO_MENTIONS,
    }


def _nonce(place: Place, key: str) -> str:
    digest = hashlib.sha256(f"{place.key}|{key}".encode()).digest()
    return base64.b32encode(digest[:15]).decode().rstrip("=")


def _differs(answer: DiscordAnswer, body: Json) -> bool:
    """Whether what the service has is not what was sent. It cuts blanks off the ends."""
    if not isinstance(answer.body, dict):
        return False
    has_other_words = str(answer.body.get("content", "")).strip() != str(body["content"]).strip()
    return has_other_words or len(answer.body.get("components") or []) != len(body["components"])


def _without_file(post: BotPost, why: str) -> BotPost:
    text = f"{post.text}\n📄 {post.name}: {why}.".strip()
    return msgspec.structs.replace(post, kind="told", text=text, path="", body="")


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_UPLOAD_BYTES + 1)
