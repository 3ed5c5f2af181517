"""A message or a thought as the old server told it: begun, in pieces, and once it is whole.

App-server tells when a message is complete, the core does not: its readers need no more than
the pieces. So the end is read off what comes next. Deltas are the hot path: each is a plain
object (bytes made ahead, with the text encoded into them, were measured to be no faster).
"""

from __future__ import annotations

import msgspec

from laneway.codex.legacy_shapes import Message, given
from laneway.core.model import Text, Thought

MAX_SPOKEN_CHARS = 16 * 1024 * 1024
"""Of one message, kept until it is whole. A model's longest answer is a hundredth of it."""
_SECTION = b'{"method":"item/reasoning/summaryPartAdded"'
_RAW_THOUGHT = b'{"method":"item/reasoning/textDelta"'
_WHOLE = b'{"method":"item/completed"'


class LegacySpeech:
    """One item of words, from its first piece to its end."""

    __slots__ = (
        "_chars",
        "_same",
        "_sections",
        "_started_ms",
        "_thread_id",
        "is_thought",
        "item_id",
        "turn_id",
    )

    def __init__(self, thread_id: str, event: Text | Thought, at_ms: int) -> None:
        self.item_id = event.item_id
        self.turn_id = event.turn_id
        self.is_thought = type(event) is Thought
        self._thread_id = thread_id
        self._started_ms = at_ms
        self._sections: list[list[str]] = [[]]
        self._chars = 0
        self._same = {
            "type": "reasoning_content_delta" if self.is_thought else "agent_message_content_delta",
            "thread_id": thread_id,
            "turn_id": event.turn_id,
            "item_id": event.item_id,
        }

    def begin(self) -> list[Message]:
        told = [self._told("item_started", self._item([""], None))]
        return [*told, self._section_break()] if self.is_thought else told

    def say(self, text: str) -> Message:
        """The next piece of a message."""
        self.add(text)
        return {**self._same, "delta": text}

    def add(self, text: str) -> None:
        if self._chars < MAX_SPOKEN_CHARS:
            self._sections[-1].append(text)
            self._chars += len(text)

    def think(self, event: Thought) -> list[Message]:
        """The next piece of a thought: of its summary, of its raw words, or the gap between two sections."""
        frame = event.frame
        if frame.startswith(_SECTION):
            self._sections.append([])
            return [self._section_break()]
        if frame.startswith(_RAW_THOUGHT):
            raw = {**self._same, "type": "reasoning_raw_content_delta"}
            return [{**raw, "delta": event.text, "content_index": 0}]
        if frame.startswith(_WHOLE):
            summary = msgspec.json.decode(frame)["params"]["item"]["summary"]
            self._sections = [[str(section)] for section in summary]
            return []
        self.add(event.text)
        return [{**self._same, "delta": event.text, "summary_index": len(self._sections) - 1}]

    def end(self, at_ms: int, phase: str | None) -> list[Message]:
        """All of it, once more."""
        texts = ["".join(section) for section in self._sections]
        item = {**self._told("item_completed", self._item(texts, phase)), "completed_at_ms": at_ms}
        if self.is_thought:
            return [item, *({"type": "agent_reasoning", "text": text} for text in texts if text)]
        message = {"type": "agent_message", "message": texts[0], "phase": phase, "memory_citation": None}
        return [item, message]

    def _item(self, texts: list[str], phase: str | None) -> Message:
        if self.is_thought:
            summary = [text for text in texts if text]
            return {"type": "Reasoning", "id": self.item_id, "summary_text": summary, "raw_content": []}
        content = [{"type": "Text", "text": text} for text in texts]
        return given({"type": "AgentMessage", "id": self.item_id, "content": content, "phase": phase})

    def _told(self, kind: str, item: Message) -> Message:
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
