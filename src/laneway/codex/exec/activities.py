"""When a worker may have changed files: its commands, patches and tool calls, with their beginnings and ends.

A command that is over has taken its children along (0.163; not one that left its session under full access).
One in the background has no end here: Codex tells none if the turn ends first. Bounded; no input or output.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec

ActivityKind: TypeAlias = Literal["command", "patch", "tool"]

MAX_ACTIVITIES = 20_000
"""Of one worker. Past it `is_complete` is false."""
MAX_CHANGES = 100_000
"""Files of all patches."""
MAX_TEXT_CHARS = 64 * 1024
"""Of a command: a path that it names is looked for in there."""
_KINDS: dict[str, ActivityKind] = {"command_execution": "command", "file_change": "patch"}
_HARMLESS = frozenset({"agent_message", "reasoning", "todo_list", "web_search", "error"})


class WorkerActivity(msgspec.Struct, frozen=True):
    item_id: str
    kind: ActivityKind
    text: str
    """The command; or the paths of a patch, one a line; or the tool's name and arguments."""
    started: float
    ended: float | None = None


class PatchedFile(msgspec.Struct, frozen=True):
    """A file that a completed patch changed. Of a rename Codex tells only the old path, as an update."""

    path: str
    kind: str
    """`add`, `update` or `delete`."""
    item_id: str


def kind_of(item_type: str) -> ActivityKind | None:
    """None for what changes no files. A type that is not known may."""
    return None if item_type in _HARMLESS else _KINDS.get(item_type, "tool")


class ActivityLog:
    """The activities of one worker, in the order in which they began."""

    def __init__(self) -> None:
        self.changes: list[PatchedFile] = []
        self.is_complete = True
        self._all: list[WorkerActivity] = []
        self._running: dict[str, int] = {}

    @property
    def all(self) -> tuple[WorkerActivity, ...]:
        return tuple(self._all)

    @property
    def running(self) -> tuple[WorkerActivity, ...]:
        """Those without an end."""
        return tuple(self._all[index] for index in self._running.values())

    def note(self, phase: str, item: dict[str, Any], now: float, last: float) -> None:
        """An item has started, is updated or completed; `last` is when the line before was read."""
        item_type, item_id = text_of(item.get("type")), text_of(item.get("id"))
        kind = kind_of(item_type)
        if kind is None:
            return
        text = _text_of_activity(kind, item)
        index = self._running.get(item_id)
        if phase != "completed":
            if index is None:
                self._begin(WorkerActivity(item_id, kind, text, now))
            return
        if index is None:  # 0.104 tells a patch only when it is done
            self._begin(WorkerActivity(item_id, kind, text, last, now))
        else:
            del self._running[item_id]
            begun = self._all[index]
            self._all[index] = msgspec.structs.replace(begun, text=text or begun.text, ended=now)
        if kind == "patch" and item.get("status") == "completed":
            self._add_changes(item, item_id)

    def _begin(self, activity: WorkerActivity) -> None:
        if len(self._all) >= MAX_ACTIVITIES:
            self.is_complete = False
            return
        if activity.ended is None:
            self._running[activity.item_id] = len(self._all)
        self._all.append(activity)

    def _add_changes(self, item: dict[str, Any], item_id: str) -> None:
        for path, change in _changes(item):
            if len(self.changes) >= MAX_CHANGES:
                self.is_complete = False
                return
            self.changes.append(PatchedFile(path, change, item_id))


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _text_of_activity(kind: ActivityKind, item: dict[str, Any]) -> str:
    if kind == "command":
        text = text_of(item.get("command"))
    elif kind == "patch":
        text = "\n".join(path for path, _ in _changes(item))
    else:
        names = ("type", "server", "tool", "arguments")
        text = json.dumps({name: item[name] for name in names if name in item}, ensure_ascii=False)
    return text[:MAX_TEXT_CHARS]


def _changes(item: dict[str, Any]) -> Iterator[tuple[str, str]]:
    changes = item.get("changes")
    for change in changes if isinstance(changes, list) else ():
        if isinstance(change, dict) and text_of(change.get("path")):
            yield change["path"], text_of(change.get("kind"))
