"""One step of a conversation in the making: the state as changed so far, and the effects in their order."""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.doors.chat.conversation_letters import ChatEffect, MarkInput, ShowOutput
from laneway.doors.chat.conversation_state import ConversationData, TakenInput
from laneway.doors.chat.outputs import AnyOutput, InputReceipt, ReceiptKind


class ConversationDraft:
    """One step in the making: the state so far, and what is to be done."""

    def __init__(self, state: ConversationData) -> None:
        self.state = state
        self.effects: list[ChatEffect] = []

    def set(self, **changes: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)

    def do(self, *effects: ChatEffect) -> None:
        self.effects += effects

    def show(self, *outputs: AnyOutput) -> None:
        self.effects += [ShowOutput(output) for output in outputs]

    def receipt(self, taken: TakenInput, kind: ReceiptKind, **more: Any) -> None:
        self.show(
            InputReceipt(
                input_id=taken.input_id, place=taken.place, message_id=taken.message_id, kind=kind, **more
            )
        )

    def refuse(self, taken: TakenInput, text: str, **more: Any) -> None:
        """Nothing is done about a message, and its sender is told why."""
        self.receipt(taken, "refused", text=text, **more)
        self.do(MarkInput(input_id=taken.input_id, state="void"))

    def finish(self, taken: TakenInput, kind: ReceiptKind = "done", **more: Any) -> None:
        """All that a message asked for was done."""
        self.receipt(taken, kind, **more)
        self.do(MarkInput(input_id=taken.input_id, state="done"))
