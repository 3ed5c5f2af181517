"""The REST API of the fake Discord, on aiohttp: messages, threads, commands, answers to interactions."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import BodyPartReader, web

from laneway.core.ports import Clock
from laneway.testing.call_faults import CallFaults
from laneway.testing.fake_discord.calls import DiscordCall
from laneway.testing.fake_discord.checks import (
    ARCHIVE_MINUTES,
    ARCHIVED,
    HAS_THREAD,
    LOCKED,
    MAX_FILE_BYTES,
    MAX_NAME,
    MISSING_ACCESS,
    MISSING_RIGHTS,
    NOT_OURS,
    TOO_LARGE,
    UNKNOWN_CHANNEL,
    UNKNOWN_MESSAGE,
    DiscordRefusal,
    bad_form,
    check_commands,
    check_message,
    check_text,
    pings_of,
)
from laneway.testing.fake_discord.gateway import (
    CONTENT_FLAG,
    GUILDS,
    MESSAGE_CONTENT,
    DiscordGateway,
)
from laneway.testing.fake_discord.interactions import (
    DEFERRED_MESSAGE,
    MESSAGE,
    UPDATE,
    DiscordInteraction,
    FakeInteractions,
)
from laneway.testing.fake_discord.limits import DiscordLimits
from laneway.testing.fake_discord.world import (
    ATTACH,
    CREATE_THREADS,
    DM,
    EPHEMERAL,
    HISTORY,
    MANAGE_THREADS,
    REACT,
    SEND,
    SEND_IN_THREADS,
    THREAD,
    VIEW,
    DiscordChannel,
    DiscordFile,
    DiscordMessage,
    DiscordWorld,
    Json,
)

NONCE_S = 300.0
"""How long a nonce is remembered: "the past few minutes"."""
Handler = Callable[[web.Request], Awaitable[Any]]


class DiscordRest:
    def __init__(
        self,
        world: DiscordWorld,
        gateway: DiscordGateway,
        token: str,
        base_url: str,
        clock: Clock,
        limits: DiscordLimits,
        answer_clock: Clock,
    ) -> None:
        self.world, self.gateway, self.limits = world, gateway, limits
        self.interactions = FakeInteractions(answer_clock)
        self.faults = CallFaults()
        self.calls: list[DiscordCall] = []
        self.refused: list[DiscordRefusal] = []
        """What was refused because the request was wrong."""
        self._token, self._base_url, self._clock = token, base_url, clock
        self.on_change: Callable[[], None] = lambda: None
        """Called when something that people see has changed."""

    def routes(self) -> list[web.RouteDef]:
        """Paths in braces are as in Discord's documents."""
        table: list[tuple[str, str, Handler]] = [
            ("GET", "/users/@me", self._me),
            ("GET", "/oauth2/applications/@me", self._application),
            ("GET", "/applications/@me", self._application),
            ("GET", "/gateway", self._gateway_url),
            ("GET", "/gateway/bot", self._gateway_url),
            ("POST", "/users/@me/channels", self._open_dm),
            ("GET", "/applications/{app}/commands", self._get_commands),
            ("PUT", "/applications/{app}/commands", self._put_commands),
            ("GET", "/channels/{channel}", self._get_channel),
            ("PATCH", "/channels/{channel}", self._edit_channel),
            ("POST", "/channels/{channel}/typing", self._typing),
            ("GET", "/channels/{channel}/messages", self._history),
            ("POST", "/channels/{channel}/messages", self._send),
            ("GET", "/channels/{channel}/messages/{message}", self._get_message),
            ("PATCH", "/channels/{channel}/messages/{message}", self._edit),
            ("DELETE", "/channels/{channel}/messages/{message}", self._delete),
            ("PUT", "/channels/{channel}/messages/{message}/reactions/{emoji}/@me", self._react),
            ("DELETE", "/channels/{channel}/messages/{message}/reactions/{emoji}/@me", self._unreact),
            ("POST", "/channels/{channel}/threads", self._new_thread),
            ("POST", "/channels/{channel}/messages/{message}/threads", self._new_thread),
            ("PUT", "/channels/{channel}/thread-members/@me", self._join),
            ("GET", "/guilds/{guild}/threads/active", self._active_threads),
            ("POST", "/interactions/{interaction}/{token}/callback", self._answer),
            ("POST", "/webhooks/{app}/{token}", self._follow_up),
            ("GET", "/webhooks/{app}/{token}/messages/@original", self._original),
            ("PATCH", "/webhooks/{app}/{token}/messages/@original", self._edit_original),
            ("DELETE", "/webhooks/{app}/{token}/messages/@original", self._delete_original),
        ]
        routes = [web.route(m, f"/api/v10{path}", self._wrapped(m, path, h)) for m, path, h in table]
        return [
            *routes,
            web.get("/attachments/{channel}/{file}/{name}", self._file),
            web.get("/gateway/", self.gateway.serve),
            web.get("/gateway", self.gateway.serve),
        ]

    def _wrapped(self, method: str, path: str, handler: Handler) -> Callable[..., Awaitable[web.Response]]:
        route = f"{method} {path}"
        is_free = path.startswith(("/interactions/", "/webhooks/"))  # under no limit of the bot

        async def serve(request: web.Request) -> web.Response:
            call = DiscordCall(route=route, path=request.path, at=self._clock.now())
            self.calls.append(call)
            if not is_free and request.headers.get("Authorization") != f"Bot {self._token}":
                return _answer(call, 401, {"message": "401: Unauthorized", "code": 0})
            headers: dict[str, str] = {"Via": "1.1 google"}
            if not is_free:
                verdict = self.limits.check(route, request.match_info.get("channel", ""))
                headers = verdict.headers
                if verdict.retry_after_s:
                    body = {
                        "message": "You are being rate limited.",
                        "retry_after": round(verdict.retry_after_s, 3),
                        "global": verdict.is_global,
                    }
                    return _answer(call, 429, body, headers)
            fault = self.faults.take(route)
            if fault is not None and not fault.takes_effect:
                return self._broken(request, call, fault.status)
            try:
                body = await handler(request)
            except DiscordRefusal as refusal:
                self.refused.append(refusal)
                return _answer(call, refusal.status, refusal.to_json(), headers)
            if fault is not None:
                return self._broken(request, call, fault.status)
            held = self.faults.take_held(route)
            if held is not None:
                held.reached.set()
                await held.release.wait()
            self.on_change()
            return _answer(call, 204 if body is None else 200, body, headers)

        return serve

    def _broken(self, request: web.Request, call: DiscordCall, status: int) -> web.Response:
        if not status and request.transport is not None:
            request.transport.abort()
        call.status = status
        return web.Response(status=status or 500, text="<html>upstream</html>", content_type="text/html")

    # ── the bot itself ─────────────────────────────────────────────────────

    async def _me(self, request: web.Request) -> Json:
        return {**self.world.bot.to_json(), "verified": True, "mfa_enabled": False, "locale": "en-US"}

    async def _application(self, request: web.Request) -> Json:
        return self.world.application_json(CONTENT_FLAG if self.gateway.content_allowed else 0)

    async def _gateway_url(self, request: web.Request) -> Json:
        limit = {"total": 1000, "remaining": 999, "reset_after": 86_400_000, "max_concurrency": 1}
        return {"url": self.gateway.url, "shards": 1, "session_start_limit": limit}

    async def _open_dm(self, request: web.Request) -> Json:
        user = self.world.users.get(str((await _body(request)).get("recipient_id")))
        if user is None:
            raise bad_form("recipient_id", "CHANNEL_RECIPIENT_INVALID", "Invalid recipient")
        return self.world.channel_json(self.world.dm_with(user))

    async def _get_commands(self, request: web.Request) -> list[Json]:
        return self.world.commands

    async def _put_commands(self, request: web.Request) -> list[Json]:
        commands = json.loads(await request.text())
        check_commands(commands)
        self.world.commands = [
            {
                "type": 1,
                **command,
                "id": self.world.new_id(),
                "application_id": self.world.application_id,
                "version": self.world.new_id(),
                "default_member_permissions": None,
            }
            for command in commands
        ]
        return self.world.commands

    # ── channels and threads ───────────────────────────────────────────────

    def _channel(self, request: web.Request, *rights: int) -> DiscordChannel:
        channel = self.world.channels.get(request.match_info["channel"])
        if channel is None or channel.is_deleted:
            raise UNKNOWN_CHANNEL
        has = channel.rights
        if channel.type == THREAD:
            assert channel.parent_id is not None
            has &= self.world.channels[channel.parent_id].rights
        if not has & VIEW:
            raise MISSING_ACCESS
        if channel.type != DM and any(not has & right for right in rights):
            raise MISSING_RIGHTS
        return channel

    async def _get_channel(self, request: web.Request) -> Json:
        return self.world.channel_json(self._channel(request))

    async def _edit_channel(self, request: web.Request) -> Json:
        channel = self._channel(request)
        data = await _body(request)
        may_manage = bool(channel.rights & MANAGE_THREADS)
        if channel.type != THREAD:
            raise MISSING_RIGHTS
        if set(data) - {"archived"} and not may_manage and channel.owner_id != self.world.bot.user_id:
            raise MISSING_RIGHTS
        if channel.is_locked and not may_manage:
            raise LOCKED
        if channel.is_archived and data.get("archived") is not False:
            raise ARCHIVED
        check_text(data, "name", 0, MAX_NAME)
        channel.name = data.get("name", channel.name)
        channel.is_archived = data.get("archived", channel.is_archived)
        shown = self.world.channel_json(channel)
        await self.gateway.dispatch("THREAD_UPDATE", shown, needs=GUILDS)
        return shown

    async def _new_thread(self, request: web.Request) -> Json:
        parent = self._channel(request, CREATE_THREADS)
        data = await _body(request)
        check_text(data, "name", 1, MAX_NAME)
        if data.get("auto_archive_duration", 4320) not in ARCHIVE_MINUTES:
            raise bad_form("auto_archive_duration", "BASE_TYPE_CHOICES", f"Must be one of {ARCHIVE_MINUTES}.")
        if parent.type == THREAD or parent.type == DM:
            raise DiscordRefusal(400, 50024, "Cannot execute action on this channel type")
        starter = request.match_info.get("message")
        if starter is None:
            if data.get("type") != THREAD:
                raise bad_form("type", "BASE_TYPE_CHOICES", "Must be 11: only public threads are known here.")
            thread_id = self.world.new_id()
        else:
            self._message(parent, starter)
            if starter in self.world.channels:
                raise HAS_THREAD
            thread_id = starter
        thread = self.add_thread(parent, data["name"], thread_id, self.world.bot.user_id)
        shown = self.world.channel_json(thread)
        member = self.world.thread_member(thread)
        await self.gateway.dispatch(
            "THREAD_CREATE", {**shown, "newly_created": True, "member": member}, needs=GUILDS
        )
        return {**shown, "member": member}

    def add_thread(self, parent: DiscordChannel, name: str, thread_id: str, owner_id: str) -> DiscordChannel:
        thread = DiscordChannel(
            channel_id=thread_id,
            type=THREAD,
            name=name,
            parent_id=parent.channel_id,
            owner_id=owner_id,
            created_at=self.world.wall(),
            members={owner_id},
        )
        self.world.channels[thread_id] = thread
        return thread

    async def _join(self, request: web.Request) -> None:
        thread = self._channel(request)
        if thread.is_archived:
            raise ARCHIVED
        thread.members.add(self.world.bot.user_id)

    async def _active_threads(self, request: web.Request) -> Json:
        if request.match_info["guild"] != self.world.guild_id:
            raise MISSING_ACCESS
        threads = [thread for thread in self.world.threads() if not thread.is_archived]
        members = [self.world.thread_member(t) for t in threads if self.world.bot.user_id in t.members]
        return {"threads": [self.world.channel_json(thread) for thread in threads], "members": members}

    # ── messages ───────────────────────────────────────────────────────────

    def _message(self, channel: DiscordChannel, message_id: str) -> DiscordMessage:
        message = channel.messages.get(message_id)
        if message is None or message.is_deleted or message.for_user:
            raise UNKNOWN_MESSAGE
        return message

    async def _typing(self, request: web.Request) -> None:
        self._channel(request, SEND)

    async def _history(self, request: web.Request) -> list[Json]:
        channel = self._channel(request)
        if channel.type != DM and not channel.rights & HISTORY:
            return []
        limit = int(request.query.get("limit", 50))
        if not 1 <= limit <= 100:
            message = "Value should be between 1 and 100."
            raise bad_form("limit", "NUMBER_TYPE_MAX", message)
        messages = self.world.visible(channel)
        if "after" in request.query:
            later = [m for m in messages if int(m.message_id) > int(request.query["after"])]
            messages = later[:limit]
        else:
            before = int(request.query.get("before", 1 << 63))
            messages = [m for m in messages if int(m.message_id) < before][-limit:]
        return [self.message_json(message) for message in reversed(messages)]

    def message_json(self, message: DiscordMessage) -> Json:
        shows = bool(self.gateway.intents & MESSAGE_CONTENT) or self.gateway.content_allowed
        return self.world.message_json(message, base_url=self._base_url, shows_words=shows)

    async def _get_message(self, request: web.Request) -> Json:
        channel = self._channel(request, HISTORY)
        return self.message_json(self._message(channel, request.match_info["message"]))

    async def _send(self, request: web.Request) -> Json:
        channel = self._channel(request)
        right = SEND_IN_THREADS if channel.type == THREAD else SEND
        self._channel(request, right)
        data, files = await self._read(request, channel)
        check_message(data, len(files), is_new=True)
        if channel.is_locked and not channel.rights & MANAGE_THREADS:
            raise LOCKED
        nonce = data.get("nonce")
        if nonce is not None and data.get("enforce_nonce"):
            for known in channel.messages.values():
                if known.nonce == str(nonce) and self.world.wall() - known.at < NONCE_S:
                    return self.message_json(known)
        if channel.is_archived:
            channel.is_archived = False  # Discord reopens a thread by itself for a message
            await self.gateway.dispatch("THREAD_UPDATE", self.world.channel_json(channel), needs=GUILDS)
        return self.message_json(await self.add(channel, data, files))

    async def add(
        self, channel: DiscordChannel, data: Json, files: list[DiscordFile], *, for_user: str = ""
    ) -> DiscordMessage:
        """A message of the bot, and the event of it."""
        reference = data.get("message_reference")
        if reference is not None:
            reference = {"channel_id": channel.channel_id, **{k: str(v) for k, v in reference.items()}}
            if not reference["message_id"].isdecimal():
                why = f'Value "{reference["message_id"]}" is not snowflake.'
                raise bad_form("message_reference.message_id", "NUMBER_TYPE_COERCE", why)
            known = reference["message_id"] in channel.messages
            if not known and data["message_reference"].get("fail_if_not_exists", True):
                raise bad_form("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
            reference = reference if known else None
        content = data.get("content") or ""
        message = DiscordMessage(
            message_id=self.world.new_id(),
            channel_id=channel.channel_id,
            author=self.world.bot,
            at=self.world.wall(),
            versions=[content],
            components=data.get("components") or [],
            embeds=data.get("embeds") or [],
            files=files,
            flags=data.get("flags") or 0,
            type=19 if reference else 0,
            reference=reference,
            nonce=None if data.get("nonce") is None else str(data["nonce"]),
            for_user=for_user,
            pings=pings_of(data, content),
        )
        channel.messages[message.message_id] = message
        self.on_change()
        if not for_user:
            await self.gateway.dispatch_message("MESSAGE_CREATE", message, channel)
        return message

    async def _read(self, request: web.Request, channel: DiscordChannel) -> tuple[Json, list[DiscordFile]]:
        """The body of a message, and the files that come with it."""
        if request.content_type != "multipart/form-data":
            return await _body(request), []
        data: Json = {}
        files: list[DiscordFile] = []
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader):
                raise DiscordRefusal(400, 50035, "Invalid Form Body")
            raw = bytes(await part.read())
            if part.name == "payload_json":
                data = json.loads(raw)
                continue
            if len(raw) > MAX_FILE_BYTES:
                raise TOO_LARGE
            name = part.filename or "file"
            kind = part.headers.get("Content-Type", "application/octet-stream")
            files.append(DiscordFile(file_id=self.world.new_id(), name=name, data=raw, content_type=kind))
        self._channel(request, ATTACH)
        for file in files:
            self.world.files[file.file_id] = file
        return data, files

    async def _edit(self, request: web.Request) -> Json:
        channel = self._channel(request)
        message = self._message(channel, request.match_info["message"])
        if message.author is not self.world.bot:
            raise NOT_OURS
        if channel.is_archived:
            raise ARCHIVED
        data, files = await self._read(request, channel)
        check_message(data, len(files), is_new=False)
        await self.change(message, data)
        return self.message_json(message)

    async def change(self, message: DiscordMessage, data: Json) -> None:
        if "content" in data:
            message.versions.append(data["content"] or "")
        if "components" in data:
            message.components = data["components"] or []
        if "embeds" in data:
            message.embeds = data["embeds"] or []
        message.edited_at = self.world.wall()
        self.on_change()
        if not message.for_user:
            channel = self.world.channels[message.channel_id]
            await self.gateway.dispatch_message("MESSAGE_UPDATE", message, channel)

    async def _delete(self, request: web.Request) -> None:
        channel = self._channel(request)
        message = self._message(channel, request.match_info["message"])
        if message.author is not self.world.bot:
            raise MISSING_RIGHTS
        message.is_deleted = True

    async def _react(self, request: web.Request) -> None:
        channel = self._channel(request, REACT, HISTORY)
        message = self._message(channel, request.match_info["message"])
        if channel.is_archived:
            raise ARCHIVED
        message.reactions.setdefault(request.match_info["emoji"], set()).add(self.world.bot.user_id)

    async def _unreact(self, request: web.Request) -> None:
        channel = self._channel(request)
        message = self._message(channel, request.match_info["message"])
        emoji = request.match_info["emoji"]
        users = message.reactions.get(emoji, set())
        if self.world.bot.user_id not in users:
            raise DiscordRefusal(404, 10014, "Unknown Emoji")
        users.discard(self.world.bot.user_id)

    async def _file(self, request: web.Request) -> web.Response:
        file = self.world.files.get(request.match_info["file"])
        if file is None:
            return web.Response(status=404)
        return web.Response(body=file.data, content_type=file.content_type)

    # ── answers to interactions ────────────────────────────────────────────

    async def _answer(self, request: web.Request) -> Json | None:
        data = await _body(request)
        info = request.match_info
        interaction = self.interactions.answer(info["interaction"], info["token"], data)
        message = None
        if data["type"] == MESSAGE:
            message = await self._respond(interaction, data.get("data") or {})
        elif data["type"] == DEFERRED_MESSAGE:
            flags = (data.get("data") or {}).get("flags", 0)
            interaction.responses.append(
                await self.add(
                    interaction.channel,
                    {"flags": flags | 128},
                    [],
                    for_user=interaction.user.user_id if flags & EPHEMERAL else "",
                )
            )
        elif data["type"] == UPDATE:
            assert interaction.message is not None
            message = interaction.message
            await self.change(message, data.get("data") or {})
        interaction.changed.set()
        if request.query.get("with_response") not in ("1", "true"):
            return None
        callback: Json = {"id": interaction.interaction_id, "type": interaction.type}
        shown: Json = {"type": data["type"]}
        if message is not None:
            callback["response_message_id"] = message.message_id
            shown["message"] = self.message_json(message)
        return {"interaction": callback, "resource": shown}

    async def _respond(self, interaction: DiscordInteraction, data: Json) -> DiscordMessage:
        is_private = bool((data.get("flags") or 0) & EPHEMERAL)
        for_user = interaction.user.user_id if is_private else ""
        message = await self.add(interaction.channel, data, [], for_user=for_user)
        interaction.responses.append(message)
        interaction.changed.set()
        return message

    async def _follow_up(self, request: web.Request) -> Json:
        interaction = self.interactions.by_token(request.match_info["token"])
        data, files = await self._read_free(request)
        check_message(data, len(files), is_new=True)
        waiting = [message for message in interaction.responses if message.flags & 128]
        if waiting:  # the first one takes the place of "… is thinking"
            return await self._fill(interaction, waiting[0], data)
        return self.message_json(await self._respond(interaction, data))

    async def _fill(self, interaction: DiscordInteraction, message: DiscordMessage, data: Json) -> Json:
        message.flags &= ~128
        await self.change(message, data)
        interaction.changed.set()
        return self.message_json(message)

    async def _read_free(self, request: web.Request) -> tuple[Json, list[DiscordFile]]:
        if request.content_type == "multipart/form-data":
            raise bad_form("files", "UNSUPPORTED", "the fake takes no files here")
        return await _body(request), []

    def _first_response(self, request: web.Request) -> tuple[DiscordInteraction, DiscordMessage]:
        interaction = self.interactions.by_token(request.match_info["token"])
        candidates = [message for message in interaction.responses if not message.is_deleted]
        if not candidates and interaction.message is not None and interaction.answer_type in (6, 7):
            candidates = [interaction.message]
        if not candidates:
            raise UNKNOWN_MESSAGE
        return interaction, candidates[0]

    async def _original(self, request: web.Request) -> Json:
        return self.message_json(self._first_response(request)[1])

    async def _edit_original(self, request: web.Request) -> Json:
        interaction, message = self._first_response(request)
        data, files = await self._read_free(request)
        check_message(data, len(files), is_new=False)
        return await self._fill(interaction, message, data)

    async def _delete_original(self, request: web.Request) -> None:
        interaction, message = self._first_response(request)
        message.is_deleted = True
        interaction.changed.set()


def _answer(call: DiscordCall, status: int, body: Any, headers: dict[str, str] | None = None) -> web.Response:
    call.status = status
    if body is None:
        return web.Response(status=status, headers=headers)
    # Without a charset: clients compare the whole header.
    with_type = {**(headers or {}), "Content-Type": "application/json"}
    return web.Response(status=status, body=json.dumps(body).encode(), headers=with_type)


async def _body(request: web.Request) -> Json:
    try:
        data = json.loads(await request.text() or "{}")
    except ValueError:
        raise DiscordRefusal(400, 50109, "The request body contains invalid JSON.") from None
    if not isinstance(data, dict):
        raise DiscordRefusal(400, 50035, "Invalid Form Body")
    return data
