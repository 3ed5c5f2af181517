"""Reads a conversation of Claude Code: the newest prompt of a person, and what has been done for it since.

Claude Code sends the whole conversation with each request. It adds texts of its own, joins messages that
follow each other, and passes on what was said during a turn as a remark; all of that is told apart here.
Pure: decoded messages in, a value out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from laneway.core.hand_back_tag import without_hand_back

Block: TypeAlias = dict[str, Any]
"""A content block of a message, as the API writes it."""

SEARCH_ID = "toolu_search_"
"""The beginning of the ids of tool searches …"""
PREPARING_ID = "toolu_prep_"
"""… and of calls that only prepare a step; neither is a step itself."""
_STEERED = "The user sent a new message while you were working:\n"
_STEERED_END = "\n\nThis is how Claude Code surfaces messages"
_INTERRUPTED = "[Request interrupted by user"
_REMINDER = "<system-reminder>"
_CUT = "Your response above was cut off mid-stream."
_REMARKS = ("Tool loaded.", "[structured-output-enforce]", "[Image: source: ")
"""The beginnings of texts that Claude Code adds by itself."""
_PLANNING = "Plan mode is active"
_PLANNED = "## Exited Plan Mode"
_PLAN_FILE = re.compile(r" at (/[^\n]*?/plans/[^/\n]*?\.md)")


class ConversationState(msgspec.Struct, frozen=True):
    """The state of a conversation."""

    prompt: str = ""
    """The newest prompt of a person."""
    done: int = 0
    """Steps that called a tool and have its result, since then."""
    searches: tuple[str, ...] = ()
    """Results of the tool searches for the next step, as JSON."""
    prepared: tuple[str, ...] = ()
    """The calls that were made to prepare the next step, by their names in the ids."""
    plan_file: str = ""
    """In plan mode: the file that the plan is to be written to."""
    is_cut: bool = False
    """Whether the last answer broke off, and Claude Code asks for the rest of it."""


def conversation_state(messages: list[dict[str, Any]]) -> ConversationState:
    state = ConversationState()
    for message in messages:
        texts: list[str] = []
        for block in blocks([message]):
            text = without_hand_back(str(block.get("text"))) if block.get("type") == "text" else None
            if block.get("type") == "tool_result":
                state, texts = _with_result(state, block), []
            elif not text:
                continue  # no text, or only what other lanes have done
            elif message.get("role") == "system" or text.lstrip().startswith("<"):
                state = _with_note(state, text)
                texts = [] if text.startswith(_REMINDER) else texts  # it stands in front of a message
            elif text.startswith(_INTERRUPTED):
                texts = []
            elif text.startswith(_CUT):
                state = msgspec.structs.replace(state, is_cut=True)
            elif message.get("role") == "user" and not text.startswith(_REMARKS):
                # The texts of one message are one prompt. Where two are joined, the first ends a line.
                texts = [*texts, text] if texts and not texts[-1].endswith("\n") else [text]
                state = ConversationState("\n".join(texts).rstrip("\n"), plan_file=state.plan_file)
    return state


def blocks(messages: list[dict[str, Any]]) -> Iterator[Block]:
    for message in messages:
        content = message.get("content", [])
        if isinstance(content, str):
            yield {"type": "text", "text": content}
        else:
            yield from content


def is_step(result: Block) -> bool:
    """Whether this is the result of a step, not of a search or a preparation."""
    return not str(result.get("tool_use_id")).startswith((SEARCH_ID, PREPARING_ID))


def _with_result(state: ConversationState, result: Block) -> ConversationState:
    call_id = str(result.get("tool_use_id"))
    if call_id.startswith(SEARCH_ID):
        result_json = json.dumps(result.get("content"))
        return msgspec.structs.replace(state, searches=(*state.searches, result_json))
    if call_id.startswith(PREPARING_ID):
        name = call_id.removeprefix(PREPARING_ID).partition("_")[0]
        return msgspec.structs.replace(state, searches=(), prepared=(*state.prepared, name))
    return ConversationState(state.prompt, state.done + 1, plan_file=state.plan_file)


def _with_note(state: ConversationState, text: str) -> ConversationState:
    """A text of Claude Code's own. It may bring what the user said meanwhile, or tell about plan mode."""
    if text.startswith(_STEERED):
        prompt = text.removeprefix(_STEERED).partition(_STEERED_END)[0]
        return ConversationState(prompt, plan_file=state.plan_file)
    if _PLANNED in text:
        return msgspec.structs.replace(state, plan_file="")
    if _PLANNING in text and (match := _PLAN_FILE.search(text)):
        return msgspec.structs.replace(state, plan_file=match[1])
    return state
