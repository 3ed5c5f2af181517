"""What a restarted Laneway does about the stored messages of a conversation: run, offer or tell each. Pure.

Messages that waited run in order, unless they are old: those are offered. A turn that was cut is told and
can be continued; it is never repeated by itself, because nobody knows how far it came.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from laneway.core.conversations import InputRecord
from laneway.doors.chat.conversation_state import CutTurn, TakenInput
from laneway.doors.chat.messages import Incoming
from laneway.doors.chat.routing import command_of


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


class LeaveAlone(msgspec.Struct, frozen=True):
    """There is nothing to act upon: part of another message, or the words of a secret."""

    input_id: int


Restored: TypeAlias = RunAgain | OfferAgain | TellCut | LeaveAlone


def restored(
    records: Sequence[InputRecord], now: float, catch_up_s: float, shown_ids: Collection[int]
) -> list[Restored]:
    """For each message that is not over, the oldest first. `shown_ids`: those among the outputs already."""
    found: list[Restored] = []
    for record in sorted(records, key=lambda each: each.input_id):
        message = decode_message(record.message)
        if message is None or not (message.text.strip() or message.images):
            found.append(LeaveAlone(record.input_id))
        elif record.state == "waiting":
            if now - record.at <= catch_up_s:
                found.append(RunAgain(taken_of(record, message, is_shown=record.input_id in shown_ids)))
            else:
                found.append(OfferAgain(offered_cut(record, message)))
        elif not message.text.strip():
            found.append(LeaveAlone(record.input_id))  # an image that went along with words
        else:
            found.append(TellCut(record.input_id, cut_of(record, message)))
    return found


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
    return CutTurn(input_id=record.input_id, lane="", text=message.text, images=message.images)


def cut_of(record: InputRecord, message: Incoming) -> CutTurn:
    command = command_of(message.text)
    is_continue = command is not None and command[0] == "continue"
    if record.state in ("accepted", "done") or is_continue:
        return CutTurn(input_id=record.input_id, lane=record.lane, text=message.text, is_accepted=True)
    if command is not None:
        return offered_cut(record, message)  # the command names the lane
    text = message.text.strip()
    return CutTurn(
        input_id=record.input_id,
        lane=record.lane,
        text=text[1:] if text.startswith("//") else text,
        images=message.images,
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
