"""Commands that concern more than one conversation: /new, /resume, /link, /join, /quit; and /attach."""

from __future__ import annotations

import secrets
from typing import Protocol

import msgspec
from msgspec.structs import replace

from laneway.base.errors import LanewayError
from laneway.base.plain import label, quoted
from laneway.core.conversations import ConversationRecord
from laneway.doors.chat.attachments import attached_path, image_problem
from laneway.doors.chat.conversation import Conversation
from laneway.doors.chat.conversation_letters import ControlDone, CutFound, InputTaken, RunControl
from laneway.doors.chat.conversation_state import CutTurn
from laneway.doors.chat.input_rules import NOTHING_CUT
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import Told

LINK_S = 600.0
"""For which a code works, once."""
MAX_LISTED = 20
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_CODE_LETTERS = 10
"""Fifty bits: nobody guesses one in ten minutes."""
_ONLY_OWNERS = frozenset({"attach", "link", "join", "resume"})
"""They reach files of this machine, or other conversations."""


class ControlledChat(Protocol):
    """The service, as far as commands need it."""

    async def create(self) -> Conversation: ...
    async def opened(self, conversation_id: str) -> Conversation: ...
    async def move(self, place: Place, conversation_id: str) -> Conversation: ...
    async def stored_cut(self, conversation_id: str, wanted: int, asking: int) -> CutTurn | None: ...
    async def latest(self, limit: int = 50) -> list[ConversationRecord]: ...
    def close_soon(self, conversation_id: str) -> None: ...
    def now(self) -> float: ...


class _LinkCode(msgspec.Struct, frozen=True):
    conversation_id: str
    until: float


class ChatControls:
    def __init__(self, chat: ControlledChat) -> None:
        self._chat = chat
        self._codes: dict[str, _LinkCode] = {}

    async def run(self, conversation: Conversation, command: RunControl) -> None:
        taken = command.taken
        if command.name in _ONLY_OWNERS and not taken.sender.is_owner:
            refusal = f"Only an owner may use /{command.name}."
            conversation.post(ControlDone(taken=taken, text=refusal, is_refused=True))
            return
        try:
            await self._run(conversation, command)
        except LanewayError as problem:
            conversation.post(ControlDone(taken=taken, text=label(str(problem), 400), is_refused=True))

    async def _run(self, conversation: Conversation, command: RunControl) -> None:
        place = command.taken.place
        match command.name:
            case "new":
                started = await self._chat.create()
                await self._move(conversation, command, started, "A new conversation.")
            case "resume":
                await self._resume(conversation, command)
            case "link":
                self._link(conversation, place)
                conversation.post(ControlDone(taken=command.taken))
            case "join":
                await self._join(conversation, command)
            case "attach":
                _attach(conversation, command)
            case "continue":
                await self._continue(conversation, command)
            case _:
                conversation.tell(Told(text="Every lane is stopped. The next message starts what it needs."))
                conversation.post(ControlDone(taken=command.taken))
                self._chat.close_soon(conversation.conversation_id)

    async def _move(self, source: Conversation, command: RunControl, target: Conversation, text: str) -> None:
        """The receipt is shown where the command was given, before the place shows something else."""
        place = command.taken.place
        source.post(ControlDone(taken=command.taken))
        await source.wait_shown()
        await self._chat.move(place, target.conversation_id)
        target.tell(Told(text=text, only=place))

    async def _resume(self, conversation: Conversation, command: RunControl) -> None:
        records = await self._chat.latest(MAX_LISTED)
        wanted, place = command.arguments.strip(), command.taken.place
        found = _chosen(records, wanted)
        if found is None:
            text = _listed(records, conversation.conversation_id, self._chat.now())
            if wanted:
                text = f"There is no conversation {quoted(wanted)}.\n\n{text}"
            conversation.tell(Told(text=text, only=place))
            conversation.post(ControlDone(taken=command.taken))
            return
        resumed = await self._chat.opened(found.conversation_id)
        text = f"Back in {quoted(found.title)} ({quoted(found.cwd)})."
        await self._move(conversation, command, resumed, text)

    def _link(self, conversation: Conversation, place: Place) -> None:
        now = self._chat.now()
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

    async def _join(self, conversation: Conversation, command: RunControl) -> None:
        code = command.arguments.strip().lower()
        link = self._codes.get(code)
        if link is None or link.until <= self._chat.now():
            text = "That code is not valid: codes work once, for ten minutes, in the Laneway that gave them."
            conversation.post(ControlDone(taken=command.taken, text=text, is_refused=True))
            return
        del self._codes[code]
        joined = await self._chat.opened(link.conversation_id)
        await self._move(conversation, command, joined, "This place shows the conversation now.")

    async def _continue(self, conversation: Conversation, command: RunControl) -> None:
        """A turn that was cut before this process began."""
        taken, wanted = command.taken, int(command.arguments)
        cut = await self._chat.stored_cut(conversation.conversation_id, wanted, taken.input_id)
        if cut is None:
            conversation.post(ControlDone(taken=taken, text=NOTHING_CUT, is_refused=True))
            return
        conversation.post(CutFound(cut))
        again = replace(taken, text=f"/continue {wanted}")
        conversation.post(InputTaken(taken=again, engine_commands=conversation.engine_commands()))


def _attach(conversation: Conversation, command: RunControl) -> None:
    path = attached_path(command.arguments, conversation.cwd)
    problem = image_problem(path) if path is not None else "Usage: /attach PATH"
    if problem is not None or path is None:
        conversation.post(ControlDone(taken=command.taken, text=problem or "", is_refused=True))
        return
    image = replace(command.taken, text="", images=(path,), reply=None)
    conversation.post(InputTaken(taken=image))


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
