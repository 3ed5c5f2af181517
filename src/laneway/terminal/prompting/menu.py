"""The menu of a question: which key stands for which choice, and which choice a typed line means.

Pure. A key means the same in every question, so that habit cannot answer a question wrongly; a key
that a question does not offer is left out and never used for something else.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from laneway.core.model import DECLINE, Choice, Question
from laneway.terminal.foreign import cells

KEYS = {"once": "1", "session": "2", "always": "3", "nothing": "4", "stop": "5"}
"""By how far a yes reaches (once, longer, for good); then the no that goes on and the no that stops."""
FIRST_FREE_KEY = 6
"""From here on: whatever else Codex offers, such as a second lasting rule or a rule that blocks."""
MAX_LABEL_CELLS = 200
"""Of a label. What cannot be shown in full must not be granted."""
WORDS = {"y": "once", "yes": "once", "n": "nothing", "no": "nothing"}
WHY = "w"
"""No, with words that are asked for next."""
ALL = "d"
"""Shows what did not fit the screen."""


class MenuItem(msgspec.Struct, frozen=True):
    """One choice and its key."""

    key: str
    choice: Choice


Picked: TypeAlias = MenuItem | Literal["all", "why", "unclear"]


def menu(question: Question) -> tuple[MenuItem, ...]:
    """The choices of a question, in the order of their keys."""
    items: list[MenuItem] = []
    others: list[Choice] = []
    taken: set[str] = set()
    for choice in question.choices:
        if not _is_offered(question, choice):
            continue
        key = KEYS[choice.grants]
        if key in taken or (choice.grants == "nothing" and choice.choice_id != DECLINE.choice_id):
            others.append(choice)
        else:
            taken.add(key)
            items.append(MenuItem(key, choice))
    items.sort(key=lambda item: item.key)
    return (*items, *(MenuItem(str(FIRST_FREE_KEY + at), choice) for at, choice in enumerate(others)))


def _is_offered(question: Question, choice: Choice) -> bool:
    if question.kind == "elicitation" and choice.grants == "stop":
        return False  # for an MCP server, cancelling is the same as declining: it stops nothing
    return choice.label.isprintable() and cells(choice.label) <= MAX_LABEL_CELLS


def pick(items: tuple[MenuItem, ...], typed: str) -> Picked:
    """The choice that a line means. An empty line declines; an unclear one is asked again."""
    word = typed.strip().casefold()
    if word == ALL:
        return "all"
    if word == WHY and any(item.choice.takes_words for item in items):
        return "why"
    grants = WORDS.get(word) if word else "nothing"
    key = KEYS[grants] if grants else word
    return next((item for item in items if item.key == key), "unclear")
