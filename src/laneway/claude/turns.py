"""The turns of one thread: which input began which turn, and when it ends.

Claude Code has no turn ids, and reports the fate of each input under its uuid: queued, started,
completed, cancelled. From that follow the turns: an input of a turn begins one, another input joins the
running turn, or begins one of its own if it came too late. A turn can also begin by itself, when
something in the background has ended. Pure but for its own memory; knows no process and no file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal
from uuid import uuid4

import msgspec

from laneway.base.engines import CLAUDE
from laneway.base.errors import EngineCannot, EngineError, EngineRefused
from laneway.claude.inputs import Content, content_of, text_of
from laneway.claude.translate import ENGINE_LOST, MessageTranslator
from laneway.core.model import Accepted, Event, Failure, Status, UserSaid
from laneway.core.offers import Compaction
from laneway.core.ports import TextPart, TurnSpec

COMPACT = "/compact"
_ABORTED = "aborted"


class Input:
    """One thing that a person said. The futures are for whoever sent it."""

    def __init__(self, uuid: str, ticket: str, content: Content, text: str, *, is_turn: bool) -> None:
        self.uuid = uuid
        self.ticket = ticket
        self.content = content
        self.text = text
        self.is_turn = is_turn
        """Whether it asks for a turn of its own; else it is meant for the running one."""
        self.state: Literal["sent", "queued", "started"] = "sent"
        self.is_accepted = False
        self.has_been_said = False
        self.echo: UserSaid | None = None
        """How it came back, until that can be told."""
        self.resent = 0
        self.is_beginning_again = False
        """Whether it was sent again after its turn had begun, and this has not been reported again."""
        self.turn_id: str | None = None
        loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[str] = loop.create_future()
        """The id of its turn."""
        self.taken: asyncio.Future[None] = loop.create_future()
        """Claude Code has read it."""

    def fail(self, error: EngineError) -> None:
        for future in (self.begun, self.taken):
            if not future.done():
                future.set_exception(error)
                future.exception()  # not everybody waits for both


def input_of(ticket: str, spec: TurnSpec, context: str) -> Input:
    """The input that asks for a turn. Raises what Claude Code cannot do."""
    if spec.permit is not None:
        raise EngineCannot(CLAUDE, "change its access from turn to turn", "Start another session.")
    match spec.special_turn:
        case None:
            content = content_of(spec.parts, context)
            return Input(str(uuid4()), ticket, content, text_of(spec.parts), is_turn=True)
        case Compaction():
            content = content_of((TextPart(COMPACT),))
            return Input(str(uuid4()), ticket, content, COMPACT, is_turn=True)
        case _:
            raise EngineCannot(CLAUDE, "review as Codex does", "Ask for a review in your own words.")


class ThreadTurns:
    """Called on the reader, in the order of the messages."""

    def __init__(self, translator: MessageTranslator, emit: Callable[[Event], None]) -> None:
        self._translator = translator
        self._emit = emit
        self._inputs: dict[str, Input] = {}
        """By uuid: those that are not over yet."""

    def expect(self, given: Input) -> None:
        self._inputs[given.uuid] = given

    def forget(self, given: Input) -> None:
        self._inputs.pop(given.uuid, None)

    @property
    def waiting(self) -> list[Input]:
        """Inputs that no turn has taken up."""
        return [each for each in self._inputs.values() if each.state != "started"]

    @property
    def unaccepted(self) -> list[Input]:
        return [each for each in self._inputs.values() if not each.is_accepted]

    @property
    def is_beginning_again(self) -> bool:
        """Whether a turn was lost in a crash, and the next process has not taken it up yet."""
        return any(each.is_beginning_again for each in self._inputs.values())

    # ── what Claude Code reports ───────────────────────────────────────────

    def lifecycle(self, message: dict[str, Any], frame: bytes) -> None:
        given = self._inputs.get(str(message.get("command_uuid")))
        if given is None:
            return
        match message.get("state"):
            case "queued":
                given.state = "queued" if given.state == "sent" else given.state
                if not given.taken.done():
                    given.taken.set_result(None)
            case "started":
                self._begin(given, frame)
            case "cancelled" if given.state != "started":
                self.forget(given)
                given.fail(EngineRefused("the input", 0, "it was taken back", engine=CLAUDE))
            case "completed" if given.resent and (given.is_beginning_again or given.state != "started"):
                self._end_repeated(given, frame)
            case "completed" | "cancelled" if given.is_accepted:
                self.forget(given)

    def _begin(self, given: Input, frame: bytes) -> None:
        if given.state == "started":
            given.is_beginning_again = False
            return  # it was sent again after a crash, in the middle of its turn
        given.state = "started"
        if given.is_turn or self._translator.turn_id is None:
            # A turn that began by itself may be running: what comes from now on answers this input.
            ticket = given.ticket if given.is_turn else None
            self._translator.begin(given.uuid, ticket, frame)
        given.turn_id = self._translator.turn_id
        self._tell_said(given)
        for future, value in ((given.taken, None), (given.begun, given.turn_id)):
            if not future.done():
                future.set_result(value)  # type: ignore[arg-type]
        if given.is_accepted:
            self._tell_accepted(given)

    def _end_repeated(self, given: Input, frame: bytes) -> None:
        """It stood in the transcript already, so Claude Code leaves out what was sent again."""
        given.is_accepted, given.is_beginning_again = True, False
        if given.state == "started":
            self._tell_accepted(given)
        else:
            self._begin(given, frame)
        self.forget(given)
        if given.is_turn:
            text = f"{CLAUDE} ended unexpectedly after it had written down the prompt."
            self._translator.finish("failed", Failure(kind=ENGINE_LOST, message=text), frame=frame)

    def echo(self, message: dict[str, Any], frame: bytes) -> bool:
        """An input comes back; false if it is none of ours."""
        given = self._inputs.get(str(message.get("uuid")))
        if given is None or given.has_been_said:
            return given is not None
        given.has_been_said = True
        said = message.get("message")
        content = said.get("content") if isinstance(said, dict) else None
        given.echo = UserSaid(turn_id="", item_id=given.uuid, text=given.text, content=content, frame=frame)
        if given.turn_id is not None or self._translator.turn_id is not None:
            self._tell_said(given)
        return True

    def _tell_said(self, given: Input) -> None:
        """What waits behind a turn comes back before it begins the next one: then this is told."""
        said, given.echo = given.echo, None
        if said is not None:
            turn_id = str(given.turn_id or self._translator.turn_id)
            self._emit(msgspec.structs.replace(said, turn_id=turn_id))

    def accept(self, uuids: set[str]) -> None:
        """These inputs stand in the transcript."""
        for given in [each for each in self._inputs.values() if each.uuid in uuids]:
            given.is_accepted = True
            if given.turn_id is not None:
                self._tell_accepted(given)

    def begin_accepted(self) -> None:
        """The process has ended: what stands in the transcript had begun, though that was not reported."""
        for given in list(self._inputs.values()):
            if given.is_accepted and given.state != "started":
                self._begin(given, b"")

    def _tell_accepted(self, given: Input) -> None:
        self._emit(Accepted(turn_id=str(given.turn_id), client_id=given.ticket))
        if given.turn_id != self._translator.turn_id:
            self.forget(given)  # its turn is over

    def ensure_turn(self) -> None:
        """Something of a turn has come: if none is running, one has begun by itself."""
        if self._translator.turn_id is None:
            self._translator.begin(f"own-{uuid4()}")

    def result(self, message: dict[str, Any], frame: bytes) -> Status | None:
        """The running turn has ended; returns how, none if no turn was running."""
        turn_id = self._translator.turn_id
        if turn_id is None:
            return None
        status, failure = outcome_of(message, self._translator.failure)
        text = message.get("result") if status == "completed" else None
        for given in list(self._inputs.values()):
            if given.turn_id == turn_id and given.is_accepted:
                self.forget(given)
        self._translator.finish(status, failure, text if isinstance(text, str) else None, frame)
        return status


def outcome_of(message: dict[str, Any], told: Failure | None) -> tuple[Status, Failure | None]:
    """How a turn ended, by its `result`; `told` is the error that stood in for an answer."""
    if str(message.get("terminal_reason") or "").startswith(_ABORTED):
        return "interrupted", None
    if message.get("is_error") is not True:
        return "completed", None
    if told is not None:
        return "failed", told
    errors = message.get("errors")
    problems = [str(error) for error in errors] if isinstance(errors, list) else []
    text = "; ".join(problems) or str(message.get("result") or "no reason given")
    status = message.get("api_error_status")
    kind = str(message.get("subtype") or "other")
    return "failed", Failure(
        kind="other" if kind == "success" else kind,
        message=text,
        http_status=status if isinstance(status, int) else None,
    )
