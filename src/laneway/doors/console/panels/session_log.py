"""The log of one watched session: events as list items, which browsers follow by version. Pure.

An item changes in place (a text grows, a command ends) and then has a new version; whoever knows a
version asks for what has changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.plain import label, plain, plain_code
from laneway.core.model import (
    Activity,
    Asked,
    Closed,
    EngineBack,
    EngineGone,
    Event,
    FromSubagent,
    Notice,
    Outlived,
    Output,
    Plan,
    Question,
    Text,
    Thought,
    TurnDone,
    TurnStarted,
    UserSaid,
    Withdrawn,
)
from laneway.doors.console.panels.plain_json import shown
from laneway.doors.console.panels.ports import LiveSessionRow
from laneway.doors.console.panels.question_view import question_view
from laneway.rendering.activities import activity_title
from laneway.rendering.outputs import shortened

MAX_ITEMS = 500
"""Kept of one session: what a person scrolls through. Older ones are dropped."""
MAX_TEXT_CHARS = 20_000
"""Of one item."""
NOTICE_CHARS = 1000

ItemKind: TypeAlias = Literal["turn", "person", "text", "thought", "activity", "plan", "notice"]


class LogItem(msgspec.Struct, kw_only=True):
    key: int
    kind: ItemKind
    version: int = 0
    title: str = ""
    text: str = ""
    status: str = ""


class SessionLog:
    """A `SessionViewer`: keeps what it is shown."""

    def __init__(self) -> None:
        self.version = 0
        self.session: LiveSessionRow | None = None
        self.questions: dict[str, Question] = {}
        """The open ones."""
        self.is_closed = False
        """Nothing more comes: the session was closed, or its process has ended."""
        self.is_busy = False
        self._items: dict[str, LogItem] = {}
        self._added = 0
        self._has_whole_text = False
        """Whether all texts of the running turn were seen."""

    # ── what is shown ──────────────────────────────────────────────────────

    def begin(self, session: LiveSessionRow, questions: Sequence[Question]) -> None:
        self.session = session
        self.is_busy = session.state == "busy"
        self.questions = {question.question_id: question for question in questions}
        self.version += 1

    def miss(self, count: int) -> None:
        self._has_whole_text = False
        self._note("warning", f"{count} events were lost: this console was too slow.")

    def show(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._has_whole_text = self.is_busy = True
                self._turn("A turn begins", "running")
            case UserSaid():
                self._put(f"said {event.item_id}", "person", text=event.text)
            case Text():
                self._grow(f"text {event.item_id}", "text", event.text)
            case Thought():
                self._grow(f"thought {event.item_id}", "thought", event.text)
            case Output():
                self._grow(f"activity {event.item_id}", "activity", event.text, is_code=True)
            case Activity():
                self._activity(event)
            case Outlived():
                self._activity(event.activity)
            case FromSubagent(inner=Activity() as activity):
                self._activity(activity, "Subagent: ")
            case Plan():
                marks = {"completed": "✓", "running": "▸", "pending": "·"}
                steps = "\n".join(f"{marks[step.status]} {step.text}" for step in event.steps)
                self._put(f"plan {event.turn_id}", "plan", title="Plan", text=steps)
            case Asked():
                self.questions[event.question.question_id] = event.question
                self.version += 1
            case Withdrawn():
                if self.questions.pop(event.question_id, None) is not None:
                    how = "declined: nobody decided in time" if event.is_declined else "settled"
                    self._note("info", f"The question is {how}.")
            case TurnDone():
                self._turn_done(event)
            case Notice() if not event.will_retry:
                self._note(event.level, event.message)
            case EngineGone():
                self._note("error", f"The engine has ended: {event.how}")
            case EngineBack():
                self._note("info", "The engine is back.")
            case Closed():
                self._end()
                self._turn("The session was closed", "completed")
            case _:
                pass

    def lose(self, why: str) -> None:
        """The watch ended: nothing more comes, and nothing can be answered."""
        self._end()
        self._note("error", why)

    def _end(self) -> None:
        self.is_closed, self.is_busy = True, False
        self.questions = {}

    def _activity(self, activity: Activity, prefix: str = "") -> None:
        cwd = (self.session.cwd if self.session else "") or ""
        item = self._item(f"activity {activity.item_id}", "activity")
        item.title = prefix + activity_title(activity, cwd)
        item.status = activity.status
        if activity.exit_code:
            item.status = f"{activity.status}, exit code {activity.exit_code}"
        if activity.changes:
            item.text = _cut("\n".join(f"{each.path}\n{each.diff}" for each in activity.changes))
        elif activity.output is not None:
            item.text = _cut(activity.output)

    def _turn_done(self, event: TurnDone) -> None:
        self.is_busy = False
        if event.text and not self._has_whole_text:
            self._put(f"last {event.turn_id}", "text", text=event.text)
        why = f": {label(event.failure.message, NOTICE_CHARS)}" if event.failure else ""
        self._turn(f"The turn is {event.status}{why}", event.status)

    # ── items ──────────────────────────────────────────────────────────────

    def _turn(self, title: str, status: str) -> None:
        self._put(f"turn {self._added}", "turn", title=title, status=status)

    def _note(self, level: str, text: str) -> None:
        self._put(f"note {self._added}", "notice", text=label(text, NOTICE_CHARS), status=level)

    def _put(self, name: str, kind: ItemKind, *, title: str = "", text: str = "", status: str = "") -> None:
        item = self._item(name, kind)
        item.title, item.text, item.status = title, _prose(text), status

    def _grow(self, name: str, kind: ItemKind, text: str, *, is_code: bool = False) -> None:
        item = self._item(name, kind)
        added = item.text + (plain_code(text) if is_code else plain(text))
        # Of a running command the end is what one looks at.
        item.text = added if len(added) <= MAX_TEXT_CHARS else "…\n" + added[-MAX_TEXT_CHARS:]

    def _item(self, name: str, kind: ItemKind) -> LogItem:
        """That of this name, new if there is none; it counts as changed."""
        item = self._items.get(name)
        if item is None:
            item = self._items[name] = LogItem(key=self._added, kind=kind)
            self._added += 1
            if len(self._items) > MAX_ITEMS:
                del self._items[next(iter(self._items))]
        self.version += 1
        item.version = self.version
        return item

    # ── what browsers get ──────────────────────────────────────────────────

    def since(self, version: int) -> dict[str, Any]:
        """The items that changed after this version, the key of the oldest kept, and all open questions."""
        items = [item for item in self._items.values() if item.version > version]
        first = next((item.key for item in self._items.values()), 0)
        return {
            "version": self.version,
            "session": shown(self.session),
            "is_closed": self.is_closed,
            "is_busy": self.is_busy,
            "first": first,
            "items": items,
            "questions": [question_view(question) for question in self.questions.values()],
        }


def _prose(text: str) -> str:
    return plain(shortened(text, MAX_TEXT_CHARS))


def _cut(text: str) -> str:
    return plain_code(shortened(text, MAX_TEXT_CHARS))
