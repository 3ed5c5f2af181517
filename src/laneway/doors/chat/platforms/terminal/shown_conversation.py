"""One conversation at one terminal: takes what is typed, and draws what comes, for every kind of terminal.

Typed lines are messages, or answers to the question in front: the oldest open one, unless a line begins with
the number of another (`#2 blue`). Commands are messages always. What a secret question is answered with goes
nowhere else.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from laneway.base.errors import ConversationUnknown, LanewayError, UsageError
from laneway.core.background import TaskSet
from laneway.doors.chat.messages import Incoming, Place, Sender, Tap
from laneway.doors.chat.outputs import (
    AnyOutput,
    InputReceipt,
    QuestionOver,
    QuestionShown,
    Shown,
    StatusNow,
    TurnEnded,
)
from laneway.doors.chat.platforms.terminal.dialog import SKIP, Again, Filled, Picked, QuestionDialog, Skipped
from laneway.doors.chat.platforms.terminal.transcript import Paper, Transcript
from laneway.doors.chat.ports import Chat, ChatState

NAME = "terminal"
RECALLED = 40
"""Outputs that are shown of a conversation that one goes on with: a screen or two."""
LATEST = 200
"""Conversations among which the latest of a folder is looked for."""
_COMMAND = re.compile(r"/[^\s/]+(?=\s|\Z)")
_NUMBERED = re.compile(r"\s*#(\d{1,6})(?:[\s:.)]+(.*))?", re.DOTALL)


class TerminalScreen(Paper, Protocol):
    """What draws a conversation, and is told what has changed."""

    @property
    def max_question_rows(self) -> int: ...
    def changed(self) -> None:
        """Something that is not written out has changed: the status, a live row, the question in front."""
        ...

    def leave(self, code: int) -> None:
        """The conversation is to be left."""
        ...


def _is_recalled(output: AnyOutput) -> bool:
    """Questions that are open are asked; the others are over. That nobody can answer one any more is news."""
    if isinstance(output, QuestionOver):
        return output.how == "void"
    return not isinstance(output, QuestionShown)


def new_place() -> Place:
    """Each run of the program is a place of its own."""
    return Place(NAME, f"{os.getpid()}-{os.urandom(4).hex()}")


def local_sender() -> Sender:
    """Whoever sits at the terminal."""
    return Sender(platform=NAME, user_id=str(os.getuid()), name="you", is_owner=True)


class ShownConversation:
    """A `View`, and all that a screen needs."""

    def __init__(self, chat: Chat, screen: TerminalScreen, cwd: Path, *, is_live: bool) -> None:
        self.chat = chat
        self.place = new_place()
        self.transcript = Transcript(screen, self.place, str(cwd), is_live=is_live)
        self.conversation_id = ""
        self.status = StatusNow(default_lane="", active_lane=None)
        self.has_failed = False
        """Whether a turn failed, or a message was not taken."""
        self.dialogs: list[QuestionDialog] = []
        """The open questions, the oldest first; that one is in front."""
        self._screen = screen
        self._cwd = cwd
        self._sender = local_sender()
        self._message_ids = (f"{self.place.chat}-{number}" for number in itertools.count(1))
        self._tasks = TaskSet()
        self._in_front: QuestionDialog | None = None
        self._held: list[Shown] | None = None
        """What came while earlier outputs are being read: it is shown after them. None: nothing is read."""
        self.has_spoken = False
        """Whether anything was sent: else there is nothing to go on with."""
        self.on_front: Callable[[QuestionDialog | None], None] = lambda dialog: None
        """Called when another question comes to the front, or none is left."""

    @property
    def front(self) -> QuestionDialog | None:
        return self._in_front

    # ── opening and leaving ────────────────────────────────────────────────

    async def open(self, resume: str | None) -> ChatState:
        """Join a new conversation, or the one to go on with; empty for the latest of the folder."""
        conversation_id = await self._latest() if resume == "" else resume
        try:
            self._held = None if conversation_id is None else []
            state = await self.chat.join(self.place, self, conversation_id)
        except ConversationUnknown as problem:
            raise UsageError(
                f"{problem} `--resume` without an id continues the latest one in this folder."
            ) from None
        await self._begin(state, recalls=conversation_id is not None)
        return state

    async def _latest(self) -> str:
        for record in await self.chat.latest(LATEST):
            if record.cwd == str(self._cwd):
                return record.conversation_id
        raise UsageError(f"There is no conversation in {self._cwd} yet: leave out --resume.")

    async def _begin(self, state: ChatState, *, recalls: bool) -> None:
        self.conversation_id = state.record.conversation_id
        self.transcript.cwd = state.record.cwd
        self.status = state.status
        if recalls:
            self.has_spoken = True
            shown = await self.chat.outputs(self.conversation_id, max(state.last_number - RECALLED, 0))
            for each in shown:
                if _is_recalled(each.output):
                    self.transcript.show(each.output)
            if state.status.active_lane is None:
                self.transcript.settle()
            self._release(shown[-1].number if shown else 0)
        for text in state.texts:
            if text.kind == "text":
                self.transcript.partial(text.part, text.lane, text.text)
        for question in state.questions:
            self._ask(question)
        self._screen.changed()

    def _release(self, last: int) -> None:
        """Show what came meanwhile, and was not among what was read."""
        held, self._held = self._held or [], None
        for each in held:
            if each.number > last or not each.number or not _is_recalled(each.output):
                self.show(each)

    async def close(self) -> None:
        self.chat.leave(self.place, self)
        await self._tasks.cancel()

    # ── a view ─────────────────────────────────────────────────────────────

    def show(self, shown: Shown) -> None:
        if self._held is not None:
            self._held.append(shown)
            return
        match shown.output:
            case StatusNow() as status:
                self.status = status
                if status.active_lane is None:
                    self.transcript.settle()
            case QuestionShown() as question:
                self._ask(question)
            case QuestionOver(number=number):
                self._forget(number)
            case TurnEnded(status="failed") | TurnEnded(stopped_by="silence"):
                self.has_failed = True
            case InputReceipt(kind="refused", place=place) if place == self.place:
                self.has_failed = True
            case _:
                pass
        self.transcript.show(shown.output)
        self._screen.changed()

    def on_moved(self, conversation_id: str) -> None:
        self._held = []
        self._tasks.spawn(self._move(conversation_id), "showing another conversation")

    async def _move(self, conversation_id: str) -> None:
        self.dialogs.clear()
        self._bring_front()
        self.transcript.settle()
        try:
            state = await self.chat.state(conversation_id)
            self.transcript.note(f"conversation {conversation_id}")
            await self._begin(state, recalls=True)
        except LanewayError as problem:
            self._release(0)
            self.transcript.note(str(problem))

    # ── what is typed ──────────────────────────────────────────────────────

    async def typed(self, text: str) -> None:
        """A message or an answer. Raises what the chat raises."""
        dialog = self._in_front
        is_command = _COMMAND.match(text) is not None
        if is_command and text.split()[0].lower() == "/quit" and not (dialog and dialog.is_secret):
            await self.chat.quit(self.conversation_id)
            self._screen.leave(0)
        elif dialog is not None and (dialog.is_secret or not is_command):
            dialog, text = (dialog, text) if dialog.is_secret else self._named(dialog, text)
            if text:
                await self._answer(dialog, text)
        elif text.strip():
            await self.take(text)

    async def send(self, text: str) -> None:
        """`typed`, for a screen that goes on whatever happens."""
        try:
            await self.typed(text)
        except LanewayError as problem:
            self.transcript.note(str(problem))
        self._screen.changed()

    async def take(self, text: str) -> None:
        self.has_spoken = True
        await self.chat.take(
            Incoming(
                place=self.place,
                message_id=next(self._message_ids),
                sender=self._sender,
                text=text,
                conversation_id=self.conversation_id,
            )
        )

    async def stop(self) -> None:
        await self.take("/stop")

    # ── questions ──────────────────────────────────────────────────────────

    def _ask(self, shown: QuestionShown) -> None:
        if all(dialog.shown.number != shown.number for dialog in self.dialogs):
            self.dialogs.append(QuestionDialog(shown, self.transcript.cwd))
        self._bring_front()

    def _forget(self, number: int) -> None:
        self.dialogs = [dialog for dialog in self.dialogs if dialog.shown.number != number]
        self._bring_front()

    def _named(self, front: QuestionDialog, text: str) -> tuple[QuestionDialog, str]:
        """The question that a line names by its number, brought to the front, and the rest of the line."""
        match = _NUMBERED.fullmatch(text)
        number, rest = (int(match[1]), (match[2] or "").strip()) if match is not None else (0, "")
        named = next((dialog for dialog in self.dialogs if dialog.shown.number == number), None)
        if named is None or (named is front and not rest):
            return front, text
        self.dialogs.remove(named)
        self.dialogs.insert(0, named)
        self._bring_front()
        return named, "" if named.is_secret else rest

    def _bring_front(self) -> None:
        """Draw the oldest question, if it is not the one in front already."""
        front = self.dialogs[0] if self.dialogs else None
        if front is self._in_front:
            return
        self._in_front = front
        if front is not None:
            rows = front.opening(self._screen.canvas, self._screen.max_question_rows)
            self.transcript.question(front.shown, rows)
            if front.problem:
                self.transcript.note(front.problem)
        self.on_front(front)

    async def _answer(self, dialog: QuestionDialog, text: str) -> None:
        shown = dialog.shown
        match dialog.type(text, self._screen.canvas):
            case Again(rows):
                if rows:
                    self.transcript.question(shown, list(rows))
                self._screen.changed()
            case Skipped():
                await self._deliver(dialog, self._tap(f"q:{shown.number}", words=SKIP))
            case Picked(index, words):
                await self._deliver(dialog, self._tap(shown.buttons[index].data, words=words))
            case Filled(values):
                await self._deliver(dialog, self._tap(f"q:{shown.number}", values=values))

    async def _deliver(self, dialog: QuestionDialog, tap: Tap) -> None:
        result = await self.chat.tap(tap)
        if not result.is_done:
            self.transcript.note(result.text)
        if result.is_done or result.is_stale:
            self._forget(dialog.shown.number)
        elif dialog in self.dialogs:  # asked again from its beginning
            self.dialogs[self.dialogs.index(dialog)] = QuestionDialog(dialog.shown, self.transcript.cwd)
            self._bring_front()

    def _tap(self, data: str, *, words: str = "", values: dict[str, object] | None = None) -> Tap:
        return Tap(
            place=self.place,
            sender=self._sender,
            data=data,
            words=words,
            values=values or {},
            conversation_id=self.conversation_id,
        )
