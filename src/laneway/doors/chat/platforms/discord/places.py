"""Channels of Discord as places of conversations: what each is, who may speak there, which thread is ours."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import discord
import msgspec

from laneway.doors.chat.messages import Place
from laneway.doors.chat.platforms.bots.access import BotAccess
from laneway.doors.chat.platforms.discord.writer import NAME

ChannelKind: TypeAlias = Literal["private", "channel", "thread", "other"]


class ChannelFacts(msgspec.Struct, frozen=True, kw_only=True):
    channel_id: str
    kind: ChannelKind
    parent_id: str = ""
    """Of a thread: its channel."""
    owner_id: str = ""
    """Of a thread: who opened it."""

    @property
    def place(self) -> Place | None:
        """None for a channel, in which conversations get a thread each."""
        match self.kind:
            case "private":
                return Place(platform=NAME, chat=self.channel_id)
            case "thread":
                return Place(platform=NAME, chat=self.parent_id, topic=self.channel_id)
            case _:
                return None

    def may_speak(self, access: BotAccess, user_id: str) -> bool:
        """Whether this user may speak to us here. A thread is allowed by its channel, or by itself."""
        if self.kind == "other":
            return False
        is_private = self.kind == "private"
        return any(
            access.may_speak(user_id, chat_id, is_private=is_private)
            for chat_id in (self.channel_id, self.parent_id)
        )

    @property
    def chat_id(self) -> str:
        """By which people list it."""
        return self.parent_id or self.channel_id


def facts_of(channel: Any) -> ChannelFacts | None:
    """Of a channel as discord.py has it; none for one that it does not know."""
    match channel:
        case discord.Thread():
            return ChannelFacts(
                channel_id=str(channel.id),
                kind="thread",
                parent_id=str(channel.parent_id),
                owner_id=str(channel.owner_id),
            )
        case discord.DMChannel():
            return ChannelFacts(channel_id=str(channel.id), kind="private")
        case discord.TextChannel():
            return ChannelFacts(channel_id=str(channel.id), kind="channel")
        case discord.abc.GuildChannel() | discord.GroupChannel():
            return ChannelFacts(channel_id=str(channel.id), kind="other")
        case _:
            return None


def facts_from_json(channel: Any) -> ChannelFacts:
    """Of a channel as the REST API describes it."""
    kinds: dict[int, ChannelKind] = {0: "channel", 5: "channel", 1: "private", 10: "thread", 11: "thread"}
    kind = kinds.get(channel.get("type"), "thread" if channel.get("type") == 12 else "other")
    return ChannelFacts(
        channel_id=str(channel["id"]),
        kind=kind,
        parent_id=str(channel.get("parent_id") or "") if kind == "thread" else "",
        owner_id=str(channel.get("owner_id") or ""),
    )
