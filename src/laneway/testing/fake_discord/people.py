"""People of the fake Discord: they write, reply, forward, press buttons, fill in dialogs, type commands."""

from __future__ import annotations

from typing import Any

from laneway.testing.fake_discord.interactions import COMMAND, COMPONENT, MODAL_SUBMIT, DiscordInteraction
from laneway.testing.fake_discord.rest import DiscordRest
from laneway.testing.fake_discord.world import (
    DM,
    DiscordChannel,
    DiscordFile,
    DiscordMessage,
    DiscordUser,
    DiscordWorld,
    Json,
)


class DiscordClientError(Exception):
    """The person's own client shows that it did not work."""


class DiscordPerson:
    def __init__(self, world: DiscordWorld, rest: DiscordRest, user: DiscordUser, base_url: str) -> None:
        self.user = user
        self._world, self._rest, self._base_url = world, rest, base_url

    @property
    def user_id(self) -> str:
        return self.user.user_id

    async def write(
        self,
        channel: DiscordChannel,
        text: str,
        *,
        reply_to: DiscordMessage | None = None,
        files: tuple[tuple[str, bytes, str], ...] = (),
        at: float | None = None,
    ) -> DiscordMessage:
        """A message; `at` is a time of the past, for one that came while nobody listened."""
        stored = [
            DiscordFile(file_id=self._world.new_id(), name=name, data=data, content_type=kind)
            for name, data, kind in files
        ]
        for file in stored:
            self._world.files[file.file_id] = file
        message = DiscordMessage(
            message_id=self._world.new_id(at),
            channel_id=channel.channel_id,
            author=self.user,
            at=self._world.wall() if at is None else at,
            versions=[text],
            files=stored,
            type=19 if reply_to is not None else 0,
        )
        if reply_to is not None:
            message.reference = {
                "type": 0,
                "channel_id": reply_to.channel_id,
                "message_id": reply_to.message_id,
                "guild_id": self._world.guild_id,
            }
            message.pings = {"reply"}
        return await self._post(channel, message)

    async def forward(self, channel: DiscordChannel, text: str) -> DiscordMessage:
        """Somebody else's message, passed on without own words."""
        message = DiscordMessage(
            message_id=self._world.new_id(),
            channel_id=channel.channel_id,
            author=self.user,
            at=self._world.wall(),
            versions=[""],
        )
        snapshot = {
            "type": 0,
            "content": text,
            "embeds": [],
            "attachments": [],
            "timestamp": "2026-01-01T00:00:00.000000+00:00",
            "edited_timestamp": None,
            "flags": 0,
            "mentions": [],
            "mention_roles": [],
            "components": [],
        }
        message.snapshots = [{"message": snapshot}]
        message.reference = {
            "type": 1,
            "channel_id": channel.channel_id,
            "message_id": self._world.new_id(),
            "guild_id": self._world.guild_id,
        }
        return await self._post(channel, message)

    async def _post(self, channel: DiscordChannel, message: DiscordMessage) -> DiscordMessage:
        channel.messages[message.message_id] = message
        if channel.is_archived and not channel.is_locked:
            channel.is_archived = False
            await self._rest.gateway.dispatch("THREAD_UPDATE", self._world.channel_json(channel), needs=1)
        await self._rest.gateway.dispatch_message("MESSAGE_CREATE", message, channel)
        return message

    async def edit(self, message: DiscordMessage, text: str) -> None:
        message.versions.append(text)
        message.edited_at = self._world.wall()
        channel = self._world.channels[message.channel_id]
        await self._rest.gateway.dispatch_message("MESSAGE_UPDATE", message, channel)

    # ── interactions ───────────────────────────────────────────────────────

    async def press(self, message: DiscordMessage, label: str) -> DiscordInteraction:
        """Press the button with this label."""
        button = next((each for each in message.buttons if each["label"] == label), None)
        if button is None or message.is_deleted:
            labels = [each["label"] for each in message.buttons]
            raise DiscordClientError(f"there is no button {label!r}, but {labels}")
        return await self._press(message, button["custom_id"], 2)

    async def press_id(self, message: DiscordMessage, custom_id: str) -> DiscordInteraction:
        """Press a button that this person's client still shows, although it is gone by now."""
        return await self._press(message, custom_id, 2)

    async def choose(self, message: DiscordMessage, *labels: str) -> DiscordInteraction:
        """Choose options of the menu below a message."""
        menus = [part for row in message.components for part in row["components"] if part["type"] == 3]
        if not menus:
            raise DiscordClientError("there is no menu")
        values = [option["value"] for option in menus[0]["options"] if option["label"] in labels]
        if len(values) != len(labels):
            raise DiscordClientError(f"not all of {labels} can be chosen")
        return await self._press(message, menus[0]["custom_id"], 3, values)

    async def _press(
        self, message: DiscordMessage, custom_id: str, kind: int, values: list[str] | None = None
    ) -> DiscordInteraction:
        channel = self._world.channels[message.channel_id]
        if channel.is_archived:
            raise DiscordClientError("components of archived threads do not work")
        data: Json = {"custom_id": custom_id, "component_type": kind, "id": 1}
        if values is not None:
            data["values"] = values
        return await self._interact(COMPONENT, channel, data, message)

    async def submit(self, opened: DiscordInteraction, **fields: str | list[str]) -> DiscordInteraction:
        """Send the dialog that an interaction has opened; fields by their custom ids or their labels."""
        modal = opened.modal
        if modal is None:
            raise DiscordClientError("no dialog was opened")
        parts = []
        known = set()
        for part in modal["components"]:
            field = part["component"] if part["type"] == 18 else part["components"][0]
            names = {field["custom_id"], part.get("label"), field.get("label")} - {None}
            given = next((fields[name] for name in fields if name in names), None)
            known |= names
            if given is None and field.get("required", True):
                raise DiscordClientError(f"{sorted(map(str, names))} is required")
            filled = {"type": field["type"], "custom_id": field["custom_id"], "id": 2}
            if field["type"] == 3:
                filled["values"] = given or []
            else:
                text = str(given or "")
                if not (field.get("min_length") or 0) <= len(text) <= (field.get("max_length") or 4000):
                    raise DiscordClientError("the text is too short or too long")
                filled["value"] = text
            wrapped: Json = (
                {"type": 18, "id": 1, "component": filled}
                if part["type"] == 18
                else {"type": 1, "id": 1, "components": [filled]}
            )
            parts.append(wrapped)
        if unknown := set(fields) - known:
            raise DiscordClientError(f"the dialog has no fields {sorted(unknown)}")
        data = {"custom_id": modal["custom_id"], "components": parts}
        return await self._interact(MODAL_SUBMIT, opened.channel, data, opened.message)

    async def command(self, channel: DiscordChannel, name: str, **options: Any) -> DiscordInteraction:
        """A slash command, which must be one of those that the bot has registered."""
        found = next((each for each in self._world.commands if each["name"] == name), None)
        if found is None:
            raise DiscordClientError(f"there is no command /{name}")
        known = {option["name"]: option for option in found.get("options") or []}
        if unknown := set(options) - set(known):
            raise DiscordClientError(f"/{name} has no options {sorted(unknown)}")
        missing = [n for n, option in known.items() if option.get("required") and n not in options]
        if missing:
            raise DiscordClientError(f"/{name} needs {missing}")
        data: Json = {
            "id": found["id"],
            "name": name,
            "type": 1,
            "options": [
                {"name": key, "type": known[key]["type"], "value": value} for key, value in options.items()
            ],
        }
        return await self._interact(COMMAND, channel, data)

    async def odd_command(self, channel: DiscordChannel, data: Json) -> DiscordInteraction:
        """A command such as no client sends."""
        return await self._interact(COMMAND, channel, data)

    async def _interact(
        self, kind: int, channel: DiscordChannel, data: Json, message: DiscordMessage | None = None
    ) -> DiscordInteraction:
        interaction = self._rest.interactions.add(
            self._world.new_id(), kind, self.user, channel, data, message
        )
        shown: Json = {
            "id": interaction.interaction_id,
            "application_id": self._world.application_id,
            "type": kind,
            "token": interaction.token,
            "version": 1,
            "data": data,
            "channel": self._world.channel_json(channel),
            "channel_id": channel.channel_id,
            "app_permissions": str(channel.rights),
            "attachment_size_limit": 10 * 1024 * 1024,
            "authorizing_integration_owners": {"0": self._world.guild_id},
            "entitlements": [],
            "locale": "en-US",
            "context": 1 if channel.type == DM else 0,
        }
        if channel.type == DM:
            shown["user"] = self.user.to_json()
        else:
            shown |= {
                "guild_id": self._world.guild_id,
                "guild": {"id": self._world.guild_id, "locale": "en-US", "features": []},
                "guild_locale": "en-US",
                "member": self._world.member_json(self.user),
            }
        if message is not None:
            shown["message"] = self._world.message_json(message, base_url=self._base_url)
        await self._rest.gateway.dispatch("INTERACTION_CREATE", shown)
        return interaction
