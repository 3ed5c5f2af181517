"""`DiscordInteractions`: buttons, dialogs and slash commands, each answered within Discord's three seconds.

The first answer goes out before anything is done that may take long; what is to be said later follows it,
for its sender alone. Whoever may not speak gets no answer.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import discord

from laneway.base.errors import LanewayError
from laneway.doors.chat.messages import Place, TapResult
from laneway.doors.chat.outputs import QuestionShown
from laneway.doors.chat.platforms.bots.access import BotAccess, Strangers
from laneway.doors.chat.platforms.bots.inbound import BotMessage, BotTap
from laneway.doors.chat.platforms.bots.place_views import STALE, BotPlaceViews
from laneway.doors.chat.platforms.bots.words import escaped
from laneway.doors.chat.platforms.discord.api import MESSAGE, NO_MENTIONS, DiscordApi, Json, private_message
from laneway.doors.chat.platforms.discord.commands import PRIVATE, words_of
from laneway.doors.chat.platforms.discord.components import (
    DIALOG,
    WORDS,
    filled,
    form_dialog,
    form_values,
    words_dialog,
)
from laneway.doors.chat.platforms.discord.incoming_message import thread_name
from laneway.doors.chat.platforms.discord.places import ChannelFacts, facts_of
from laneway.doors.chat.platforms.discord.private_chats import PrivateChats
from laneway.doors.chat.platforms.discord.writer import MAX_MESSAGE_CHARS, NAME, NO_PREVIEWS, open_thread
from laneway.doors.chat.ports import Chat

log = logging.getLogger(__name__)

LOOK_S = 2.0
"""For looking up a question before its dialog is opened: a dialog must be the first answer."""
_DEFERRED_UPDATE, _MODAL = 6, 9
NOT_HERE = "Conversations live in threads. Mention me here, or use the command of a lane, to begin one."
NO_FORM = "Please answer it by a message that replies to the question."
FAILED = "⚠️ That did not work. The log of Laneway says why."
BUSY = "That took too long: please press it again."


class DiscordInteractions:
    def __init__(
        self,
        views: BotPlaceViews,
        chat: Chat,
        access: BotAccess,
        strangers: Strangers,
        api: DiscordApi,
        tasks: asyncio.TaskGroup,
        lanes: frozenset[str],
        private: PrivateChats,
    ) -> None:
        """`lanes`: the names of commands that begin a conversation where there is none."""
        self._views, self._chat, self._access, self._strangers = views, chat, access, strangers
        self._api, self._tasks, self._lanes, self._private = api, tasks, lanes, private
        self._answered: set[int] = set()

    def on_interaction(self, interaction: discord.Interaction) -> None:
        self._tasks.create_task(self._handle(interaction))

    async def _handle(self, interaction: discord.Interaction) -> None:
        facts = facts_of(interaction.channel)
        user = interaction.user
        data: Any = interaction.data or {}
        if facts is None or not facts.may_speak(self._access, str(user.id)):
            chat_id = str(interaction.channel_id) if facts is None else facts.chat_id
            what = "a command" if interaction.type is discord.InteractionType.application_command else "a tap"
            self._strangers.turned_away(str(user.id), user.display_name, chat_id, what=what)
            return
        try:
            match interaction.type:
                case discord.InteractionType.application_command:
                    await self._command(interaction, facts, data)
                case discord.InteractionType.component if str(data.get("custom_id")).startswith(DIALOG):
                    await self._open_dialog(interaction, facts, data["custom_id"].removeprefix(DIALOG))
                case discord.InteractionType.component | discord.InteractionType.modal_submit:
                    await self._tap(interaction, facts, data)
                case _:
                    log.warning("an interaction of an unknown kind: %s", interaction.type)
        except LanewayError as problem:
            text = f"⚠️ {problem}"
            if interaction.id in self._answered:
                await self._tell(interaction, text)
            else:
                await self._respond(interaction, MESSAGE, private_message(text))
        except Exception:  # a door's request: one odd tap must not end the platform
            log.exception("an interaction could not be handled")
            if interaction.id not in self._answered:
                await self._respond(interaction, MESSAGE, private_message(FAILED))
        finally:
            self._answered.discard(interaction.id)

    # ── buttons and dialogs ────────────────────────────────────────────────

    async def _tap(self, interaction: discord.Interaction, facts: ChannelFacts, data: Any) -> None:
        await self._respond(interaction, _DEFERRED_UPDATE)
        place, custom_id = facts.place, str(data.get("custom_id", "")).removeprefix(DIALOG)
        if place is None or interaction.message is None:
            await self._tell(interaction, STALE)
            return
        ref = str(interaction.message.id)
        words, values = "", {}
        if interaction.type is discord.InteractionType.modal_submit:
            given = filled(data.get("components"))
            words = str(given.get(WORDS) or "")
            if WORDS not in given:
                shown = await self._question(place, ref)
                if shown is None:
                    await self._tell(interaction, STALE)
                    return
                values = form_values(shown.question, given)
        result = await self._views.tap(
            BotTap(
                place=place,
                tap_id=str(interaction.id),
                user_id=str(interaction.user.id),
                name=interaction.user.display_name,
                data=custom_id,
                ref=ref,
                words=words,
                values=values,
            )
        )
        await self._tell_result(interaction, result)

    async def _tell_result(self, interaction: discord.Interaction, result: TapResult) -> None:
        """What took effect can be seen; else the person is told why not."""
        if not result.is_done:
            await self._tell(interaction, result.text or STALE)

    async def _open_dialog(self, interaction: discord.Interaction, facts: ChannelFacts, data: str) -> None:
        """The question's fields, or one for words. It must be the first answer, and nothing may take long."""
        place, message = facts.place, interaction.message
        shown: QuestionShown | None = None
        if place is not None and message is not None:
            try:
                async with asyncio.timeout(LOOK_S):
                    shown = await self._question(place, str(message.id))
            except TimeoutError:
                await self._respond(interaction, MESSAGE, private_message(BUSY))
                return
        if shown is None or place is None or message is None:
            await self._respond(interaction, MESSAGE, private_message(STALE))
            if place is not None and message is not None:
                (await self._views.view_of(place)).remove_buttons(str(message.id))
            return
        title = f"Question {shown.number}"
        is_form = data.count(":") == 1
        dialog = form_dialog(data, title, shown.question) if is_form else words_dialog(data, title)
        if dialog is None:
            await self._respond(interaction, MESSAGE, private_message(NO_FORM))
        else:
            await self._respond(interaction, _MODAL, dialog)

    async def _question(self, place: Place, ref: str) -> QuestionShown | None:
        """The open question of a post of ours."""
        post = await self._views.post_of(place, ref)
        if post is None or not post.question or not (post.buttons or post.dialogs):
            return None
        state = await self._chat.state(post.conversation_id)
        return next((each for each in state.questions if each.number == post.question), None)

    # ── slash commands ─────────────────────────────────────────────────────

    async def _command(self, interaction: discord.Interaction, facts: ChannelFacts, data: Any) -> None:
        words, name = words_of(data), str(data.get("name"))
        if facts.place is None and name not in self._lanes:
            await self._respond(interaction, MESSAGE, private_message(NOT_HERE))
            return
        echo: Json = {
            "content": f"› {escaped(words)}"[:MAX_MESSAGE_CHARS],
            "allowed_mentions": NO_MENTIONS,
            "flags": NO_PREVIEWS,
        }
        if name in PRIVATE:
            echo = private_message(f"› /{name}")
        message_id = await self._respond(interaction, MESSAGE, echo)
        place = facts.place
        if place is None:
            place = await self._new_thread(interaction, facts.channel_id, message_id, words)
        if place is None:
            return
        if facts.kind == "private":
            await self._private.note(facts.channel_id, str(interaction.user.id))
        await self._views.take(
            BotMessage(
                place=place,
                message_id=message_id or str(interaction.id),
                user_id=str(interaction.user.id),
                name=interaction.user.display_name,
                text=words,
            )
        )

    async def _new_thread(
        self, interaction: discord.Interaction, channel_id: str, message_id: str, words: str
    ) -> Place | None:
        if not message_id:
            return None  # its sender saw that it failed
        answer = await open_thread(self._api, channel_id, message_id, thread_name(words))
        if not answer.is_done:
            await self._tell(interaction, f"⚠️ I could not open a thread here: {answer.why}")
            return None
        return Place(platform=NAME, chat=channel_id, topic=str(answer.body["id"]))

    # ── answers ────────────────────────────────────────────────────────────

    async def _respond(self, interaction: discord.Interaction, kind: int, data: Json | None = None) -> str:
        """The first answer; returns the id of the message that it has made, if any."""
        self._answered.add(interaction.id)
        return await self._api.respond(
            interaction.application_id, interaction.id, interaction.token, kind, data
        )

    async def _tell(self, interaction: discord.Interaction, text: str) -> None:
        await self._api.tell(interaction.application_id, interaction.token, text)
