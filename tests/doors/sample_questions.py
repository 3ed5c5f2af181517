"""Questions that Codex does not ask, for the tests of every front end: as fields for `HandThread.ask`."""

from __future__ import annotations

from typing import Any

from laneway.core.model import Choice, Field, FieldOption

YES = Choice(choice_id="accept", label="Allow once", grants="once")
FOR_SESSION = Choice(choice_id="acceptForSession", label="Allow for this session", grants="session")
NO = Choice(choice_id="decline", label="No", grants="nothing")
NO_WITH_WORDS = Choice(choice_id="decline", label="No", grants="nothing", takes_words=True)

TOOL: dict[str, Any] = {
    "kind": "tool",
    "message": "Use this tool?",
    "tool": "WebFetch",
    "arguments": {"url": "https://example.org/a", "prompt": "Sum it up"},
    "choices": (YES, FOR_SESSION, NO_WITH_WORDS),
    "reason": "to look it up",
}
PLAN: dict[str, Any] = {
    "kind": "plan",
    "message": "Carry out this plan?",
    "plan": "# The plan\n\n1. Read it\n2. Mend it",
    "choices": (YES, NO_WITH_WORDS),
}
COMMAND_WITH_WORDS: dict[str, Any] = {
    "message": "Run this command?",
    "command": "make test",
    "choices": (YES, NO_WITH_WORDS),
}
COLOUR = Field(
    field_id="colour",
    header="Colour",
    text="Which colour?",
    options=(FieldOption(label="Red", description="warm"), FieldOption(label="Blue", description="cool")),
    allows_other=True,
)
PARTS = Field(
    field_id="parts",
    header="Parts",
    text="Which parts?",
    options=(
        FieldOption(label="Door", description="the front"),
        FieldOption(label="Roof"),
        FieldOption(label="Wall, inner"),
    ),
    is_multiple=True,
    allows_other=True,
)
SIZES = Field(
    field_id="sizes",
    header="Sizes",
    text="Which sizes?",
    options=(FieldOption(label="S"), FieldOption(label="L")),
    is_multiple=True,
)
CHOICES: dict[str, Any] = {
    "kind": "input",
    "message": "Claude has questions.",
    "fields": (COLOUR, PARTS, SIZES),
    "choices": (Choice(choice_id="accept", label="Answer", grants="once"), NO_WITH_WORDS),
    "is_escalation": False,
}
