"""The chat as a part of the page: requests for conversations, messages, buttons, uploads, files, exports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from laneway.base.clock import LoopClock
from laneway.base.errors import ConversationUnknown
from laneway.base.plain import label, plain
from laneway.core.conversations import ConversationRecord
from laneway.core.ports import Clock
from laneway.doors.chat.files_out import read_file_out
from laneway.doors.chat.messages import Incoming, ReplyTarget, Sender, Tap
from laneway.doors.chat.outputs import FileShown, Shown
from laneway.doors.chat.platforms.web.export import export_html
from laneway.doors.chat.platforms.web.output_json import (
    PLATFORM,
    item_json,
    question_json,
    searchable,
    status_json,
    whole_output,
)
from laneway.doors.chat.platforms.web.shown_conversations import MAX_BACKLOG_ITEMS, ShownConversations
from laneway.doors.chat.platforms.web.uploads import MAX_UPLOAD_BYTES, MAX_UPLOADS, Uploads, is_image
from laneway.doors.chat.ports import Chat, ChatState
from laneway.doors.page_parts import PageFeed, PageRefused, PageReply, PageRequest, json_reply, unknown

MAX_TEXT_CHARS = 400_000
"""Of one message."""
MAX_MESSAGE_BYTES = 5 * 1024 * 1024
"""Of the same as JSON, in which a character takes up to twelve bytes."""
MAX_FOUND = 200
"""Places that a search shows."""
AROUND_CHARS = 60
"""Of the text around what was found."""
CLEAN_S = 3600.0
"""Between two looks for old uploads."""
UPLOAD_S = 120.0
"""For 20 MB to arrive."""


class NewMessage(msgspec.Struct, forbid_unknown_fields=True):
    text: str = ""
    uploads: list[str] = []
    """Ids of files that were uploaded before …"""
    names: list[str] = []
    """… and their names, as far as they are known."""
    question: int | None = None
    lane: str | None = None


class PressedButton(msgspec.Struct, forbid_unknown_fields=True):
    data: str
    words: str = ""
    values: dict[str, Any] = {}


class ChatPart:
    """Joined to the page by whoever composes both."""

    name = "chat"
    title = "Conversations"
    static = Path(__file__).with_name("static")

    def __init__(
        self,
        chat: Chat,
        uploads: Path,
        *,
        cwd: Path | None = None,
        sender: str = "you",
        clock: Clock | None = None,
    ) -> None:
        """`uploads` is the folder that they are kept in; `sender` the name that others see.

        The page opens with the latest conversation of `cwd`, or a new one.
        """
        self._chat = chat
        self._cwd = cwd
        self._uploads = Uploads(uploads)
        self._sender = Sender(platform=PLATFORM, user_id="owner", name=sender, is_owner=True)
        self._clock = clock
        self._shown: ShownConversations
        self._approved: set[tuple[str, int]] = set()

    @asynccontextmanager
    async def running(self, feed: PageFeed) -> AsyncIterator[None]:
        self._shown = ShownConversations(self._chat, feed, self._clock or LoopClock())
        cleaning = asyncio.create_task(self._clean())
        try:
            yield
        finally:
            cleaning.cancel()
            await self._shown.close()

    async def _clean(self) -> None:
        while True:
            await asyncio.to_thread(self._uploads.remove_old)
            await asyncio.sleep(CLEAN_S)

    # ── requests ───────────────────────────────────────────────────────────

    async def get(self, request: PageRequest) -> PageReply:
        try:
            match request.path:
                case ("conversations",):
                    return await self._list()
                case ("conversations", conversation_id):
                    return await self._open(conversation_id, request.whole("before", 0))
                case ("conversations", conversation_id, "commands"):
                    return await self._commands(conversation_id)
                case ("conversations", conversation_id, "search"):
                    return await self._search(conversation_id, request.query("q") or "")
                case ("conversations", conversation_id, "export"):
                    return await self._export(conversation_id)
                case ("conversations", conversation_id, "outputs", number):
                    return await self._output(conversation_id, _number(number))
                case ("conversations", conversation_id, "files", number):
                    return await self._file(conversation_id, _number(number))
        except ConversationUnknown:
            raise unknown("conversation") from None
        raise unknown()

    async def post(self, request: PageRequest) -> PageReply:
        try:
            match request.path:
                case ("conversations",):
                    state = await self._shown.new()
                    return json_reply(_record(state.record))
                case ("conversations", conversation_id, "messages"):
                    return await self._take(conversation_id, request)
                case ("conversations", conversation_id, "taps"):
                    return await self._tap(conversation_id, request)
                case ("conversations", conversation_id, "files", number, "approve"):
                    await self._shown.open(conversation_id)
                    self._approved.add((conversation_id, _number(number)))
                    return json_reply({})
                case ("uploads",):
                    return await self._upload(request)
        except ConversationUnknown:
            raise unknown("conversation") from None
        raise unknown()

    # ── conversations ──────────────────────────────────────────────────────

    async def _list(self) -> PageReply:
        listed = [_record(record) for record in await self._chat.latest()]
        return json_reply({"cwd": plain(str(self._cwd or "")), "conversations": listed})

    async def _open(self, conversation_id: str, before: int) -> PageReply:
        joined, state = await self._shown.open(conversation_id)
        end = before or state.last_number + 1
        first = max(1, end - MAX_BACKLOG_ITEMS)
        stored = await self._chat.outputs(conversation_id, first - 1, min(MAX_BACKLOG_ITEMS, end - first))
        body: dict[str, Any] = {
            **_record(state.record),
            "first": first,
            "items": [item_json(each, joined.cwd) for each in stored if each.number < end],
        }
        if not before:
            body |= {
                "last": state.last_number,
                "status": status_json(state.status),
                "questions": [question_json(each, joined.cwd) for each in state.questions],
                "live": joined.live.snapshot(),
            }
        return json_reply(body)

    async def _commands(self, conversation_id: str) -> PageReply:
        await self._shown.open(conversation_id)
        return json_reply(
            [
                {
                    "name": each.name,
                    "description": label(each.description),
                    "kind": each.kind,
                    "lane": each.lane,
                }
                for each in self._chat.commands(conversation_id)
            ]
        )

    async def _search(self, conversation_id: str, words: str) -> PageReply:
        await self._shown.open(conversation_id)
        wanted = words.strip().casefold()
        found: list[dict[str, Any]] = []
        if wanted:
            async for shown in self._stored(conversation_id):
                text = searchable(shown)
                at = text.casefold().find(wanted)
                if at >= 0:
                    start = max(0, at - AROUND_CHARS)
                    snippet = plain(text[start : at + len(wanted) + AROUND_CHARS])
                    found.append({"n": shown.number, "at": shown.at, "text": " ".join(snippet.split())})
        return json_reply({"found": found[-MAX_FOUND:], "count": len(found)})

    async def _export(self, conversation_id: str) -> PageReply:
        joined, state = await self._shown.open(conversation_id)
        items = [item_json(shown, joined.cwd) async for shown in self._stored(conversation_id)]
        html = await asyncio.to_thread(export_html, _record(state.record), items)
        return _download(html.encode(), f"conversation-{conversation_id}.html")

    async def _stored(self, conversation_id: str) -> AsyncIterator[Shown]:
        after = 0
        while batch := await self._chat.outputs(conversation_id, after):
            for shown in batch:
                yield shown
            after = batch[-1].number

    async def _numbered(self, conversation_id: str, number: int) -> tuple[Shown, ChatState]:
        _, state = await self._shown.open(conversation_id)
        stored = await self._chat.outputs(conversation_id, number - 1, 1) if number > 0 else []
        if not stored or stored[0].number != number:
            raise unknown("output")
        return stored[0], state

    async def _output(self, conversation_id: str, number: int) -> PageReply:
        shown, _ = await self._numbered(conversation_id, number)
        whole = whole_output(shown)
        if whole is None:
            raise unknown("output")
        return json_reply({"text": whole})

    # ── what people send ───────────────────────────────────────────────────

    async def _take(self, conversation_id: str, request: PageRequest) -> PageReply:
        message = await request.value(NewMessage, MAX_MESSAGE_BYTES)
        if len(message.text) > MAX_TEXT_CHARS:
            raise PageRefused(413, f"A message has at most {MAX_TEXT_CHARS:,} characters")
        if len(message.uploads) > MAX_UPLOADS:
            raise PageRefused(413, f"A message has at most {MAX_UPLOADS} files")
        paths = [self._uploaded(upload_id) for upload_id in message.uploads]
        text = "\n".join(filter(None, [message.text, *_named_files(paths, message.names)]))
        images = tuple(path for path in paths if is_image(path))
        if not text.strip() and not images:
            raise PageRefused(422, "There is nothing in this message")
        await self._shown.open(conversation_id)
        reply = None
        if message.question is not None or message.lane is not None:
            reply = ReplyTarget(question=message.question, lane=message.lane)
        input_id = await self._chat.take(
            Incoming(
                place=self._shown.place_of(conversation_id),
                message_id=request.key,
                sender=self._sender,
                text=text,
                images=images,
                reply=reply,
                conversation_id=conversation_id,
            )
        )
        return json_reply({"input": input_id})

    def _uploaded(self, upload_id: str) -> Path:
        path = self._uploads.find(upload_id)
        if path is None:
            raise PageRefused(422, "A file of this message is not there any more: add it again")
        return path

    async def _tap(self, conversation_id: str, request: PageRequest) -> PageReply:
        pressed = await request.value(PressedButton)
        await self._shown.open(conversation_id)
        result = await self._chat.tap(
            Tap(
                place=self._shown.place_of(conversation_id),
                sender=self._sender,
                data=pressed.data,
                words=pressed.words,
                values=pressed.values,
                conversation_id=conversation_id,
            )
        )
        return json_reply({"text": plain(result.text), "done": result.is_done, "stale": result.is_stale})

    async def _upload(self, request: PageRequest) -> PageReply:
        name = unquote(request.header("x-file-name") or "file")
        upload = await self._uploads.keep(request.pieces(MAX_UPLOAD_BYTES, UPLOAD_S), name)
        return json_reply(upload)

    # ── files of lanes ─────────────────────────────────────────────────────

    async def _file(self, conversation_id: str, number: int) -> PageReply:
        shown, state = await self._numbered(conversation_id, number)
        if not isinstance(shown.output, FileShown):
            raise unknown("file")
        is_approved = shown.output.is_approved or (conversation_id, number) in self._approved
        folder = Path(state.record.cwd)
        file = await asyncio.to_thread(read_file_out, shown.output.path, folder, is_approved=is_approved)
        if file.problem:
            body = {"error": plain(file.problem), "needs_approval": file.needs_approval}
            return json_reply(body, file.status)
        return _download(file.content, shown.output.name)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise unknown("output")
    return int(text)


def _record(record: ConversationRecord) -> dict[str, Any]:
    return {
        "id": record.conversation_id,
        "title": label(record.title) or "New conversation",
        "cwd": plain(record.cwd),
        "lane": record.default_lane,
        "created_at": record.created_at,
        "used_at": record.used_at,
    }


def _named_files(paths: list[Path], names: list[str]) -> list[str]:
    """What is no image is named to the model, which can read it."""
    names = [*names, *[""] * len(paths)]
    return [
        f"[Attached file: {path} (named {label(name) or 'without a name'})]"
        for path, name in zip(paths, names, strict=False)
        if not is_image(path)
    ]


def _download(content: bytes, name: str) -> PageReply:
    """Never shown by the browser as a page of ours."""
    disposition = f"attachment; filename*=UTF-8''{quote(Path(name).name or 'file', safe='')}"
    return PageReply(
        body=content,
        content_type="application/octet-stream",
        headers=(("content-disposition", disposition),),
    )
