"""What the fake Discord knows: users, one guild, channels, threads and messages, and their JSON.

Plain state, without HTTP. Ids are snowflakes, which carry their time, as Discord's do.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

Json = dict[str, Any]

EPOCH_MS = 1_420_070_400_000
TEXT, DM, THREAD = 0, 1, 11
"""Types of channels."""
VIEW, SEND, HISTORY, ATTACH, REACT = 1 << 10, 1 << 11, 1 << 16, 1 << 15, 1 << 6
MANAGE_THREADS, CREATE_THREADS, SEND_IN_THREADS = 1 << 34, 1 << 35, 1 << 38
ALL_RIGHTS = VIEW | SEND | HISTORY | ATTACH | REACT | CREATE_THREADS | SEND_IN_THREADS
"""What the invite link of a bot asks for."""
EPHEMERAL = 64
ISO = "%Y-%m-%dT%H:%M:%S.%f+00:00"


class DiscordUser(msgspec.Struct, kw_only=True):
    user_id: str
    name: str
    is_bot: bool = False

    def to_json(self) -> Json:
        return {
            "id": self.user_id,
            "username": self.name,
            "discriminator": "0",
            "global_name": None if self.is_bot else self.name,
            "avatar": None,
            "bot": self.is_bot,
        }


class DiscordFile(msgspec.Struct, kw_only=True):
    file_id: str
    name: str
    data: bytes
    content_type: str


class DiscordMessage(msgspec.Struct, kw_only=True):
    """`versions` are all its contents, the present one last."""

    message_id: str
    channel_id: str
    author: DiscordUser
    at: float
    versions: list[str]
    components: list[Json] = []
    embeds: list[Json] = []
    files: list[DiscordFile] = []
    flags: int = 0
    type: int = 0
    reference: Json | None = None
    snapshots: list[Json] = []
    nonce: str | None = None
    interaction: Json | None = None
    for_user: str = ""
    """Who alone sees it, if it is ephemeral."""
    pings: set[str] = set()
    """Who was notified: ids, `everyone`, and `reply` for the author of what it replies to."""
    reactions: dict[str, set[str]] = {}
    edited_at: float | None = None
    is_deleted: bool = False

    @property
    def content(self) -> str:
        return self.versions[-1]

    @property
    def buttons(self) -> list[Json]:
        """Those that can be pressed, of all rows."""
        return [
            part
            for row in self.components
            for part in row.get("components", [])
            if part["type"] == 2 and not part.get("disabled")
        ]


class DiscordChannel(msgspec.Struct, kw_only=True):
    channel_id: str
    type: int
    name: str
    parent_id: str | None = None
    recipient: DiscordUser | None = None
    owner_id: str = ""
    created_at: float = 0.0
    is_archived: bool = False
    is_locked: bool = False
    is_deleted: bool = False
    members: set[str] = set()
    messages: dict[str, DiscordMessage] = {}
    rights: int = ALL_RIGHTS
    """What the bot may do here."""
    sees: set[str] | None = None
    """Who sees it; none for everybody."""


class DiscordWorld:
    """Everything, in memory."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self.wall = wall
        self._last_id = 0
        self.users: dict[str, DiscordUser] = {}
        self.channels: dict[str, DiscordChannel] = {}
        self.files: dict[str, DiscordFile] = {}
        self.commands: list[Json] = []
        self.bot = DiscordUser(user_id=self.new_id(), name="laneway", is_bot=True)
        self.application_id = self.bot.user_id
        self.guild_id = self.new_id()
        self.owner = self.add_user("server-owner")

    def new_id(self, at: float | None = None) -> str:
        """A snowflake, larger than all before unless a time of the past is given."""
        made = int((self.wall() if at is None else at) * 1000 - EPOCH_MS) << 22
        if at is None:
            made = max(made, self._last_id + 1)
            self._last_id = made
        else:
            made += sum(len(channel.messages) for channel in self.channels.values()) % 4000
        return str(made)

    def add_user(self, name: str) -> DiscordUser:
        user = DiscordUser(user_id=self.new_id(), name=name)
        self.users[user.user_id] = user
        return user

    def add_channel(self, name: str, rights: int = ALL_RIGHTS) -> DiscordChannel:
        channel = DiscordChannel(
            channel_id=self.new_id(), type=TEXT, name=name, rights=rights, created_at=self.wall()
        )
        self.channels[channel.channel_id] = channel
        return channel

    def dm_with(self, user: DiscordUser) -> DiscordChannel:
        for channel in self.channels.values():
            if channel.recipient is user:
                return channel
        channel = DiscordChannel(channel_id=self.new_id(), type=DM, name="", recipient=user)
        self.channels[channel.channel_id] = channel
        return channel

    def threads(self, parent_id: str | None = None) -> list[DiscordChannel]:
        return [
            channel
            for channel in self.channels.values()
            if channel.type == THREAD and not channel.is_deleted and parent_id in (None, channel.parent_id)
        ]

    def visible(self, channel: DiscordChannel, user_id: str = "") -> list[DiscordMessage]:
        """The messages that a user sees, in order."""
        return [
            message
            for message in sorted(channel.messages.values(), key=lambda m: int(m.message_id))
            if not message.is_deleted and message.for_user in ("", user_id)
        ]

    # ── JSON ───────────────────────────────────────────────────────────────

    def channel_json(self, channel: DiscordChannel) -> Json:
        last = max(channel.messages, key=int, default=None)
        if channel.type == DM:
            assert channel.recipient is not None
            return {
                "id": channel.channel_id,
                "type": DM,
                "last_message_id": last,
                "recipients": [channel.recipient.to_json()],
                "flags": 0,
            }
        common = {
            "id": channel.channel_id,
            "type": channel.type,
            "guild_id": self.guild_id,
            "name": channel.name,
            "parent_id": channel.parent_id,
            "last_message_id": last,
            "rate_limit_per_user": 0,
            "flags": 0,
        }
        if channel.type == TEXT:
            return {**common, "position": 0, "permission_overwrites": [], "topic": None, "nsfw": False}
        created = stamp(channel.created_at)
        return {
            **common,
            "owner_id": channel.owner_id,
            "message_count": len(channel.messages),
            "total_message_sent": len(channel.messages),
            "member_count": len(channel.members),
            "thread_metadata": {
                "archived": channel.is_archived,
                "locked": channel.is_locked,
                "auto_archive_duration": 4320,
                "archive_timestamp": created,
                "create_timestamp": created,
            },
        }

    def message_json(self, message: DiscordMessage, *, base_url: str, shows_words: bool = True) -> Json:
        """`shows_words`: whether the reader may see the content, without the privileged intent it may not."""
        shown = shows_words or message.author is self.bot or f"<@{self.bot.user_id}>" in message.content
        shown = shown or self.channels[message.channel_id].type == DM
        data: Json = {
            "id": message.message_id,
            "channel_id": message.channel_id,
            "author": message.author.to_json(),
            "content": message.content if shown else "",
            "timestamp": stamp(message.at),
            "edited_timestamp": None if message.edited_at is None else stamp(message.edited_at),
            "tts": False,
            "mention_everyone": "everyone" in message.pings,
            "mentions": [
                self.anyone(user_id).to_json()
                for user_id in re.findall(r"<@!?(\d+)>", message.content)
                if self.knows(user_id)
            ],
            "mention_roles": [],
            "attachments": [self.file_json(file, message, base_url) for file in message.files if shown],
            "embeds": message.embeds if shown else [],
            "pinned": False,
            "type": message.type,
            "flags": message.flags,
            "components": message.components if shown else [],
        }
        if message.nonce is not None:
            data["nonce"] = message.nonce
        if message.snapshots:
            data["message_snapshots"] = message.snapshots
        if message.reference is not None:
            data["message_reference"] = message.reference
            replied = self.channels[message.reference["channel_id"]].messages.get(
                message.reference["message_id"]
            )
            if message.type == 19:
                data["referenced_message"] = (
                    None if replied is None else self.message_json(replied, base_url=base_url)
                )
        if message.interaction is not None:
            data["interaction_metadata"] = message.interaction
        if message.author is self.bot:
            data["application_id"] = self.application_id
        return data

    def file_json(self, file: DiscordFile, message: DiscordMessage, base_url: str) -> Json:
        url = f"{base_url}/attachments/{message.channel_id}/{file.file_id}/{file.name}"
        return {
            "id": file.file_id,
            "filename": file.name,
            "size": len(file.data),
            "url": url,
            "proxy_url": url,
            "content_type": file.content_type,
        }

    def guild_json(self) -> Json:
        everyone = {
            "id": self.guild_id,
            "name": "@everyone",
            "color": 0,
            "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
            "hoist": False,
            "position": 0,
            "permissions": str(ALL_RIGHTS),
            "managed": False,
            "mentionable": False,
            "flags": 0,
        }
        return {
            "id": self.guild_id,
            "name": "workshop",
            "icon": None,
            "owner_id": self.owner.user_id,
            "unavailable": False,
            "member_count": 3,
            "roles": [everyone],
            "emojis": [],
            "stickers": [],
            "features": [],
            "channels": [
                self.channel_json(channel)
                for channel in self.channels.values()
                if channel.type == TEXT and channel.rights & VIEW and not channel.is_deleted
            ],
            "threads": [
                {**self.channel_json(thread), "member": self.thread_member(thread)}
                for thread in self.threads()
                if not thread.is_archived and self.bot.user_id in thread.members
            ],
            "members": [self.member_json(self.bot)],
        }

    def member_json(self, user: DiscordUser) -> Json:
        return {
            "user": user.to_json(),
            "nick": None,
            "avatar": None,
            "roles": [],
            "joined_at": stamp(self.wall()),
            "deaf": False,
            "mute": False,
            "flags": 0,
            "permissions": str(ALL_RIGHTS),
        }

    def thread_member(self, thread: DiscordChannel) -> Json:
        return {
            "id": thread.channel_id,
            "user_id": self.bot.user_id,
            "join_timestamp": stamp(thread.created_at),
            "flags": 0,
        }

    def application_json(self, flags: int) -> Json:
        return {
            "id": self.application_id,
            "name": "laneway",
            "icon": None,
            "description": "",
            "bot_public": False,
            "bot_require_code_grant": False,
            "owner": self.owner.to_json(),
            "verify_key": "0" * 64,
            "team": None,
            "flags": flags,
        }

    def knows(self, user_id: str) -> bool:
        return user_id == self.bot.user_id or user_id in self.users

    def anyone(self, user_id: str) -> DiscordUser:
        return self.bot if user_id == self.bot.user_id else self.users[user_id]


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(ISO)
