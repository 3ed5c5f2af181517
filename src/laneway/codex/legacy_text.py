"""Messages and reasoning in the old `codex mcp-server`'s events: begin, deltas, whole text at the end.

App-server reports when a message is complete, the core's events do not: its readers need only the
deltas. So the end is inferred from the next event. Deltas are the hot path: each is a plain dict
(bytes prepared in advance, with the text encoded into them, were measured to be no faster).
"""

from __future__ import annotations

import msgspec

from laneway.codex.legacy_shapes import Message, without_none
from laneway.core.model import Text, Thought

MAX_TEXT_CHARS = 16 * 1024 * 1024
"""Of one message, buffered until it is complete. A model's longest answer is a hundredth of it."""
_SECTION = b'{"method":"item/reasoning/summaryPartAdded"'
_RAW_DELTA = b'{"method":"item/reasoning/textDelta"'
_COMPLETED = b'{"method":"item/completed"'


class LegacyText:
    """One message or reasoning item, from its first delta to its end."""

    __slots__ = (
        "_chars",
        "_delta_fields",
        "_sections",
        "_started_ms",
        "_thread_id",
        "is_reasoning",
        "item_id",
        "turn_id",
    )

    def __init__(self, thread_id: str, event: Text | Thought, at_ms: int) -> None:
        self.item_id = event.item_id
        self.turn_id = event.turn_id
        self.is_reasoning = type(event) is Thought
        self._thread_id = thread_id
        self._started_ms = at_ms
        self._sections: list[list[str]] = [[]]
        self._chars = 0
        self._delta_fields = {
            "type": "reasoning_content_delta" if self.is_reasoning else "agent_message_content_delta",
            "thread_id": thread_id,
            "turn_id": event.turn_id,
            "item_id": event.item_id,
        }

    def begin(self) -> list[Message]:
        messages = [self._item_message("item_started", self._item([""], None))]
        return [*messages, self._section_break()] if self.is_reasoning else messages

    def add_delta(self, text: str) -> Message:
        """The next delta of a message."""
        self.add_text(text)
        return {**self._delta_fields, "delta": text}

    def add_text(self, text: str) -> None:
        if self._chars < MAX_TEXT_CHARS:
            self._sections[-1].append(text)
            self._chars += len(text)

    def add_reasoning(self, event: Thought) -> list[Message]:
        """The next delta of reasoning: of its summary, of its raw text, or the gap between two sections."""
        frame = event.frame
        if frame.startswith(_SECTION):
            self._sections.append([])
            return [self._section_break()]
        if frame.startswith(_RAW_DELTA):
            raw = {**self._delta_fields, "type": "reasoning_raw_content_delta"}
            return [{**raw, "delta": event.text, "content_index": 0}]
        if frame.startswith(_COMPLETED):
            summary = msgspec.json.decode(frame)["params"]["item"]["summary"]
            self._sections = [[str(section)] for section in summary]
            return []
        self.add_text(event.text)
        return [{**self._delta_fields, "delta": event.text, "summary_index": len(self._sections) - 1}]

    def end(self, at_ms: int, phase: str | None) -> list[Message]:
        """The whole text."""
        texts = ["".join(section) for section in self._sections]
        item = {**self._item_message("item_completed", self._item(texts, phase)), "completed_at_ms": at_ms}
        if self.is_reasoning:
            return [item, *({"type": "agent_reasoning", "text": text} for text in texts if text)]
        message = {"type": "agent_message", "message": texts[0], "phase": phase, "memory_citation": None}
        return [item, message]

    def _item(self, texts: list[str], phase: str | None) -> Message:
        if self.is_reasoning:
            summary = [text for text in texts if text]
            return {"type": "Reasoning", "id": self.item_id, "summary_text": summary, "raw_content": []}
        content = [{"type": "Text", "text": text} for text in texts]
        return without_none({"type": "AgentMessage", "id": self.item_id, "content": content, "phase": phase})

    def _item_message(self, kind: str, item: Message) -> Message:
        return {
            "type": kind,
            "thread_id": self._thread_id,
            "turn_id": self.turn_id,
            "item": item,
            "started_at_ms": self._started_ms,
        }

    def _section_break(self) -> Message:
        index = len(self._sections) - 1
        return {"type": "agent_reasoning_section_break", "item_id": self.item_id, "summary_index": index}
