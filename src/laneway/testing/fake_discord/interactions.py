"""Interactions of the fake Discord: taps, slash commands, dialogs, to be answered within three seconds."""

from __future__ import annotations

import asyncio
import secrets

import msgspec

from laneway.core.ports import Clock
from laneway.testing.fake_discord.checks import (
    ACKNOWLEDGED,
    UNKNOWN_INTERACTION,
    bad_form,
    check_commands,
    check_message,
    check_modal,
)
from laneway.testing.fake_discord.world import DiscordChannel, DiscordMessage, DiscordUser, Json

ANSWER_S = 3.0
"""For the first answer to an interaction …"""
TOKEN_S = 900.0
"""… and for all that follow it."""
COMMAND, COMPONENT, MODAL_SUBMIT = 2, 3, 5
PONG, MESSAGE, DEFERRED_MESSAGE, DEFERRED_UPDATE, UPDATE, MODAL = 1, 4, 5, 6, 7, 9

__all__ = ["ANSWER_S", "DiscordInteraction", "FakeInteractions", "check_commands"]


class DiscordInteraction(msgspec.Struct, kw_only=True):
    """What a person did, and how it was answered."""

    interaction_id: str
    token: str
    type: int
    user: DiscordUser
    channel: DiscordChannel
    began_at: float
    data: Json
    message: DiscordMessage | None = None
    from_modal_of: DiscordMessage | None = None
    answered_after_s: float | None = None
    answer_type: int | None = None
    modal: Json | None = None
    """The dialog that was opened."""
    responses: list[DiscordMessage] = []
    """Messages sent with it, the original one first."""
    changed: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    @property
    def is_late(self) -> bool:
        return self.answered_after_s is not None and self.answered_after_s > ANSWER_S

    @property
    def text(self) -> str:
        """All words that the person got as an answer."""
        return "\n".join(message.content for message in self.responses if not message.is_deleted)

    async def answered(self) -> DiscordInteraction:
        """Wait for the first answer of any kind."""
        while self.answer_type is None:
            self.changed.clear()
            await self.changed.wait()
        return self

    async def told(self) -> str:
        """Wait until the person was told something."""
        while not self.text.strip():
            self.changed.clear()
            await self.changed.wait()
        return self.text


class FakeInteractions:
    """All of them, by id and by token."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.all: list[DiscordInteraction] = []

    def add(
        self,
        interaction_id: str,
        kind: int,
        user: DiscordUser,
        channel: DiscordChannel,
        data: Json,
        message: DiscordMessage | None = None,
    ) -> DiscordInteraction:
        interaction = DiscordInteraction(
            interaction_id=interaction_id,
            token="interaction-" + secrets.token_hex(8),
            type=kind,
            user=user,
            channel=channel,
            began_at=self._clock.now(),
            data=data,
            message=message,
        )
        self.all.append(interaction)
        return interaction

    def by_token(self, token: str) -> DiscordInteraction:
        """One that was answered and whose token is still good."""
        for interaction in self.all:
            if interaction.token == token and interaction.answer_type is not None:
                if self._clock.now() - interaction.began_at > TOKEN_S:
                    break
                return interaction
        raise UNKNOWN_INTERACTION

    def answer(self, interaction_id: str, token: str, body: Json) -> DiscordInteraction:
        """The first answer; raises what Discord refuses."""
        interaction = next((each for each in self.all if each.interaction_id == interaction_id), None)
        if interaction is None or interaction.token != token:
            raise UNKNOWN_INTERACTION
        if interaction.answer_type is not None:
            raise ACKNOWLEDGED
        waited_s = self._clock.now() - interaction.began_at
        if waited_s > ANSWER_S:
            raise UNKNOWN_INTERACTION
        kind, data = body.get("type"), body.get("data") or {}
        allowed = {
            COMMAND: (MESSAGE, DEFERRED_MESSAGE, MODAL),
            COMPONENT: (MESSAGE, DEFERRED_MESSAGE, DEFERRED_UPDATE, UPDATE, MODAL),
            MODAL_SUBMIT: (MESSAGE, DEFERRED_MESSAGE, DEFERRED_UPDATE, UPDATE),
        }[interaction.type]
        if kind not in allowed:
            raise bad_form("type", "BASE_TYPE_CHOICES", f"Must be one of {allowed}.")
        if kind in (DEFERRED_UPDATE, UPDATE) and interaction.message is None:
            raise bad_form("type", "BASE_TYPE_CHOICES", "There is no message to update.")
        if kind == MODAL:
            check_modal(data)
            interaction.modal = data
        elif kind in (MESSAGE, UPDATE):
            check_message(data, 0, is_new=kind == MESSAGE)
        interaction.answer_type, interaction.answered_after_s = kind, waited_s
        return interaction

    @property
    def unanswered(self) -> list[DiscordInteraction]:
        """Those whose three seconds are over without an answer: the person saw "interaction failed"."""
        now = self._clock.now()
        return [each for each in self.all if each.answer_type is None and now - each.began_at > ANSWER_S]
