"""Commands that concern more than one conversation: /new, /resume, /link, /join, /quit; and /attach."""

from __future__ import annotations

import secrets
import shlex
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace

from laneway.base.errors import LanewayError
from laneway.base.plain import label, quoted
from laneway.core.conversations import ConversationRecord
from laneway.doors.chat.conversation import Conversation
from laneway.doors.chat.conversation_letters import ControlDone, InputTaken, RunControl
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import Told

LINK_S = 600.0
"""For which a code works, once."""
MAX_LISTED = 20
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_CODE_LETTERS = 10
"""Fifty bits: nobody guesses one in ten minutes."""
_ONLY_OWNERS = frozenset({"attach", "link", "join", "resume"})
"""They reach files of this machine, or other conversations."""


class ChatHouse(Protocol):
    """The service, as far as commands need it."""

    async def create(self) -> Conversation: ...
    async def move(self, place: Place, conversation_id: str) -> Conversation: ...
    async def latest(self, limit: int = 50) -> list[ConversationRecord]: ...
    def close_soon(self, conversation_id: str) -> None: ...
    def now(self) -> float: ...


class _LinkCode(msgspec.Struct, frozen=True):
    conversation_id: str
    until: float


class ChatControls:
    def __init__(self, house: ChatHouse) -> None:
        self._house = house
        self._codes: dict[str, _LinkCode] = {}

    async def run(self, conversation: Conversation, command: RunControl) -> None:
        taken = command.taken
        if command.name in _ONLY_OWNERS and not taken.sender.is_owner:
            refusal = f"Only an owner may use /{command.name}."
            conversation.post(ControlDone(taken=taken, text=refusal, is_refused=True))
            return
        try:
            text = await self._run(conversation, command)
        except LanewayError as problem:
            conversation.post(ControlDone(taken=taken, text=label(str(problem), 400), is_refused=True))
            return
        if text is not None:
            conversation.post(ControlDone(taken=taken, text=text))

    async def _run(self, conversation: Conversation, command: RunControl) -> str | None:
        """What the receipt says; none if there is another one."""
        place = command.taken.place
        match command.name:
            case "new":
                started = await self._house.create()
                await self._house.move(place, started.conversation_id)
                started.tell(Told(text="A new conversation.", only=place))
            case "resume":
                await self._resume(conversation, command)
            case "link":
                self._link(conversation, place)
            case "join":
                return await self._join(conversation, command)
            case "attach":
                return self._attach(conversation, command)
            case _:
                conversation.tell(Told(text="Every lane is stopped. The next message starts what it needs."))
                self._house.close_soon(conversation.conversation_id)
        return ""

    async def _resume(self, conversation: Conversation, command: RunControl) -> None:
        records = await self._house.latest(MAX_LISTED)
        wanted, place = command.arguments.strip(), command.taken.place
        found = _chosen(records, wanted)
        if found is None:
            text = _listed(records, conversation.conversation_id, self._house.now())
            if wanted:
                text = f"There is no conversation {quoted(wanted)}.\n\n{text}"
            conversation.tell(Told(text=text, only=place))
            return
        resumed = await self._house.move(place, found.conversation_id)
        resumed.tell(Told(text=f"Back in {quoted(found.title)} ({quoted(found.cwd)}).", only=place))

    def _link(self, conversation: Conversation, place: Place) -> None:
        now = self._house.now()
        self._codes = {code: each for code, each in self._codes.items() if each.until > now}
        code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LETTERS))
        self._codes[code] = _LinkCode(conversation.conversation_id, now + LINK_S)
        conversation.tell(
            Told(
                text=f"`/join {code}` shows this conversation in another place of this Laneway, for ten"
                " minutes and once.",
                only=place,
            )
        )

    async def _join(self, conversation: Conversation, command: RunControl) -> str | None:
        place = command.taken.place
        link = self._codes.pop(command.arguments.strip().lower(), None)
        if link is None or link.until <= self._house.now():
            text = "That code is not valid: codes work once, for ten minutes, in the Laneway that gave them."
            conversation.post(ControlDone(taken=command.taken, text=text, is_refused=True))
            return None
        joined = await self._house.move(place, link.conversation_id)
        joined.tell(Told(text="This place shows the conversation now.", only=place))
        return ""

    def _attach(self, conversation: Conversation, command: RunControl) -> str | None:
        path = _path_of(command.arguments, conversation.cwd)
        problem = _image_problem(path) if path is not None else "Usage: /attach PATH"
        if problem is not None or path is None:
            conversation.post(ControlDone(taken=command.taken, text=problem or "", is_refused=True))
            return None
        image = replace(command.taken, text="", images=(path,), reply=None)
        conversation.post(InputTaken(taken=image))
        return None


def _chosen(records: list[ConversationRecord], wanted: str) -> ConversationRecord | None:
    """By its number in the list, or by its id."""
    if wanted.isdecimal() and 1 <= int(wanted) <= len(records):
        return records[int(wanted) - 1]
    return next((record for record in records if record.conversation_id == wanted), None)


def _listed(records: list[ConversationRecord], current: str, now: float) -> str:
    if not records:
        return "There is no earlier conversation."
    lines = []
    for number, record in enumerate(records, 1):
        here = ", this one" if record.conversation_id == current else ""
        lines.append(
            f"{number}. {quoted(record.title)} ({_ago(now - record.used_at)}{here}), {quoted(record.cwd)}"
        )
    return "\n".join([*lines, "", "`/resume NUMBER` goes on with one."])


def _ago(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        count = int(seconds // size)
        if count > 0:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def _path_of(arguments: str, cwd: Path) -> Path | None:
    """One path, quoted or not."""
    arguments = arguments.strip()
    if not arguments:
        return None
    if arguments[0] in "\"'":
        try:
            arguments = shlex.split(arguments)[0]
        except ValueError:
            return None
    return cwd / Path(arguments).expanduser()


def _image_problem(path: Path) -> str | None:
    if path.suffix.lower() not in _IMAGES:
        return f"{quoted(path.name)} is no image: PNG, JPEG, GIF and WebP are."
    if not path.is_file():
        return f"There is no file {quoted(str(path))}."
    return None
