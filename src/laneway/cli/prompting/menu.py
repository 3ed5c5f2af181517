"""Which key means what: one order for every kind of question, and what a typed line chooses.

Pure. A key means the same wherever it is offered, so that a hand that has learnt one question cannot
answer another one wrongly; a key that a question does not offer is left out and taken by nothing else.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from laneway.cli.terminal.foreign import cells
from laneway.core.model import DECLINE, Choice, Question

KEYS = {"once": "1", "session": "2", "always": "3", "nothing": "4", "stop": "5"}
"""By how far a yes reaches: once, for longer, for good; then the no that goes on and the no that stops."""
FIRST_FREE_KEY = 6
"""From here on, whatever else Codex offers: a second lasting rule, a rule that blocks."""
MAX_LABEL_CELLS = 200
"""Of what is allowed for good. Nobody may be made to grant what could not be shown whole."""
WORDS = {"y": "once", "yes": "once", "n": "nothing", "no": "nothing"}
ALL = "d"
"""Shows what did not fit the screen."""


class MenuItem(msgspec.Struct, frozen=True):
    key: str
    choice: Choice


Picked: TypeAlias = MenuItem | Literal["all", "unclear"]


def menu(question: Question) -> tuple[MenuItem, ...]:
    """What can be chosen, in the order of the keys."""
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
        return False  # to an MCP server, cancelled is declined in another word: it stops nothing
    return choice.label.isprintable() and cells(choice.label) <= MAX_LABEL_CELLS


def pick(items: tuple[MenuItem, ...], typed: str) -> Picked:
    """What a line chooses. An empty one declines; one that is not clearly a choice is asked again."""
    said = typed.strip().casefold()
    if said == ALL:
        return "all"
    grants = WORDS.get(said) if said else "nothing"
    key = KEYS[grants] if grants else said
    return next((item for item in items if item.key == key), "unclear")
