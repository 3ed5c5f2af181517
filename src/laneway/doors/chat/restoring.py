"""What a restarted Laneway does about the stored messages of a conversation: run, offer or tell each. Pure.

Messages that waited run in order, unless they are old: those are offered. A turn that was cut is told and
can be continued; it is never repeated by itself, because nobody knows how far it came. What was told or
carried out before the end, and only not marked as such any more, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from laneway.core.conversations import InputRecord, InputState
from laneway.doors.chat.attachments import attached_path
from laneway.doors.chat.conversation_state import CutTurn, TakenInput
from laneway.doors.chat.messages import Incoming
from laneway.doors.chat.outputs import AnyOutput, InputReceipt, Said, Told, TurnEnded
from laneway.doors.chat.routing import command_of

_UNDER_WAY = ("begun", "accepted")
_OVER = frozenset({"done", "refused", "answered"})
"""Receipts after which nothing more becomes of a message."""


class RunAgain(msgspec.Struct, frozen=True):
    """It waited, and is acted upon now."""

    taken: TakenInput


class OfferAgain(msgspec.Struct, frozen=True):
    """It waited for too long."""

    cut: CutTurn


class TellCut(msgspec.Struct, frozen=True):
    """Its turn was cut."""

    input_id: int
    cut: CutTurn


class ContinueAgain(msgspec.Struct, frozen=True):
    """It was to continue an earlier turn, and got nowhere: that one can be continued again."""

    input_id: int
    continues: int


class LeaveAlone(msgspec.Struct, frozen=True):
    """There is nothing to act upon: part of another message, the words of a secret, or over already."""

    input_id: int
    state: InputState = "void"


Restored: TypeAlias = RunAgain | OfferAgain | TellCut | ContinueAgain | LeaveAlone


class SeenOutputs(msgspec.Struct, frozen=True):
    """What the last outputs of before the restart say about messages."""

    said: frozenset[int] = frozenset()
    """Inputs that are among the outputs."""
    over: frozenset[int] = frozenset()
    """Inputs that were carried out, or refused."""
    offered: frozenset[int] = frozenset()
    """Inputs that can be continued by a button."""
    ended: frozenset[str] = frozenset()
    """Tickets of turns that have ended."""


def seen_in(outputs: Iterable[AnyOutput]) -> SeenOutputs:
    said, over, offered, ended = set(), set(), set(), set()
    for output in outputs:
        match output:
            case Said(input_id=input_id):
                said.add(input_id)
            case InputReceipt(input_id=input_id, kind=kind) if kind in _OVER:
                over.add(input_id)
            case Told(buttons=buttons):
                offered |= {number for each in buttons if (number := continued_id(each.data)) is not None}
            case TurnEnded(ticket=ticket):
                ended.add(ticket)
            case _:
                pass
    return SeenOutputs(frozenset(said), frozenset(over), frozenset(offered), frozenset(ended))


def restored(
    records: Sequence[InputRecord], now: float, catch_up_s: float, seen: SeenOutputs, cwd: Path
) -> list[Restored]:
    """For each message that is not over, the oldest first."""
    messages = [(record, decode_message(record.message)) for record in _in_order(records)]
    images = _images_of_turns(messages, cwd)
    return [_restored(record, message, now, catch_up_s, seen, images) for record, message in messages]


def _in_order(records: Iterable[InputRecord]) -> list[InputRecord]:
    return sorted(records, key=lambda each: each.input_id)


def _restored(
    record: InputRecord,
    message: Incoming | None,
    now: float,
    catch_up_s: float,
    seen: SeenOutputs,
    images: dict[str, tuple[Path, ...]],
) -> Restored:
    is_waiting = record.state == "waiting"
    if message is None or not (message.text.strip() or message.images):
        return LeaveAlone(record.input_id)
    if record.input_id in seen.over or record.input_id in seen.offered:
        return LeaveAlone(record.input_id)
    if is_waiting and now - record.at <= catch_up_s:
        return RunAgain(taken_of(record, message, is_shown=record.input_id in seen.said))
    if is_waiting:
        return OfferAgain(offered_cut(record, message))
    if record.ticket in seen.ended:
        return LeaveAlone(record.input_id, "done")
    if not message.text.strip() or _is_command(message, "attach"):
        return LeaveAlone(record.input_id)  # an image that went along with words
    if record.state == "accepted" and record.ticket != own_turn(record.input_id):
        return LeaveAlone(record.input_id, "done")  # words within a turn that is told itself
    continues = continued_id(message.text)
    if continues is not None and record.state == "begun":
        return ContinueAgain(record.input_id, continues)
    cut = cut_of(record, message)
    if not cut.is_accepted:
        cut = replace(cut, images=(*images.get(own_turn(record.input_id), ()), *cut.images))
    return TellCut(record.input_id, cut)


def own_turn(input_id: int) -> str:
    """The ticket of the turn that a message begins."""
    return f"in-{input_id}"


def _images_of_turns(
    messages: Iterable[tuple[InputRecord, Incoming | None]], cwd: Path
) -> dict[str, tuple[Path, ...]]:
    """By ticket: images that came in messages of their own."""
    found: dict[str, tuple[Path, ...]] = {}
    for record, message in messages:
        if message is None or record.state not in _UNDER_WAY:
            continue
        images: tuple[Path, ...] = ()
        if _is_command(message, "attach"):
            path = attached_path(message.text.strip().partition(" ")[2], cwd)
            images = () if path is None else (path,)
        elif not message.text.strip():
            images = message.images
        found[record.ticket] = (*found.get(record.ticket, ()), *images)
    return found


def _is_command(message: Incoming, name: str) -> bool:
    command = command_of(message.text.strip())
    return command is not None and command[0] == name


def continued_id(text: str) -> int | None:
    """The number of the input that `/continue NUMBER` names; none for any other text."""
    command = command_of(text.strip())
    number = "" if command is None or command[0] != "continue" else command[2].lstrip("#")
    return int(number) if number.isdecimal() else None


def stored_cut(records: Sequence[InputRecord], wanted: int, asking: int) -> CutTurn | None:
    """What `/continue` goes on with that this process knows nothing of; none if it is no more to be had.

    `records` are all of the conversation; `asking` is the input that says `/continue`.
    """
    for record in records:
        message = decode_message(record.message)
        is_other = record.input_id not in (wanted, asking) and record.state != "void"
        if is_other and message is not None and continued_id(message.text) == wanted:
            return None  # it was continued already
    stored = next((each for each in records if each.input_id == wanted), None)
    message = None if stored is None else decode_message(stored.message)
    if stored is None or message is None or not message.text.strip():
        return None
    if stored.state == "void" or (stored.state == "done" and stored.lane):
        return cut_of(stored, message)
    return None


def taken_of(record: InputRecord, message: Incoming, *, is_shown: bool = False) -> TakenInput:
    return replace(taken_of_new(record.input_id, record.at, message), is_shown=is_shown)


def taken_of_new(input_id: int, at: float, message: Incoming) -> TakenInput:
    return TakenInput(
        input_id=input_id,
        place=message.place,
        message_id=message.message_id,
        sender=message.sender,
        at=at,
        text=message.text,
        images=message.images,
        reply=message.reply,
        origin=message.origin,
    )


def offered_cut(record: InputRecord, message: Incoming) -> CutTurn:
    return CutTurn(
        input_id=record.input_id, lane="", text=message.text, images=message.images, origin=message.origin
    )


def cut_of(record: InputRecord, message: Incoming) -> CutTurn:
    command = command_of(message.text)
    is_continue = command is not None and command[0] == "continue"
    if record.state in ("accepted", "done") or is_continue:
        return CutTurn(input_id=record.input_id, lane=record.lane, text=message.text, is_accepted=True)
    if command is not None or not record.lane:
        return offered_cut(record, message)  # the command names the lane
    text = message.text.strip()
    return CutTurn(
        input_id=record.input_id,
        lane=record.lane,
        text=text[1:] if text.startswith("//") else text,
        images=message.images,
        origin=message.origin,
    )


# ── messages as bytes ──────────────────────────────────────────────────────


def encode_message(message: Incoming) -> bytes:
    return _encoder.encode(message)


def decode_message(data: bytes) -> Incoming | None:
    """None for one that cannot be read, such as one of a newer Laneway."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _path(kind: type[Any], value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError


_encoder = msgspec.json.Encoder(enc_hook=str)
_decoder = msgspec.json.Decoder(Incoming, dec_hook=_path)
