"""What a worker's output comes to: events for the log, signs of life, tokens, evidence of its edits.

Joins `laneway.codex.exec`, which knows what `codex exec` prints, to the event log and the ledger of one job.
Used by the supervisor only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from laneway.codex.exec.events import EventNormaliser, WorkerEvent
from laneway.codex.exec.shell_line import without_shell
from laneway.codex.exec.tokens import TokenCount, TokenTail
from laneway.jobs.attribution import EditWindow
from laneway.jobs.event_log import EventWriter
from laneway.jobs.model import JobUsage
from laneway.jobs.snapshots.paths import text_of

ACTIVITY_CHARS = 120


class JobWorker:
    """One attempt's worker. `clock` is the loop's: monotonic seconds."""

    def __init__(
        self,
        events: EventWriter,
        clock: Callable[[], float],
        codex_home: str,
        thread_id: str | None,
        on_thread: Callable[[str], None],
    ) -> None:
        self.output = EventNormaliser(time.time)
        self.last_sign_of_life = clock()
        self.activity = ""
        self.used_before = 0
        """Tokens of earlier attempts."""
        self._events = events
        self._clock = clock
        self._tail = TokenTail(codex_home, thread_id)
        self._thread_id = thread_id or ""
        self._on_thread = on_thread

    def feed(self, line: bytes) -> None:
        for event in self.output.feed(line):
            self._events.append(event.type, event.content)
            if event.is_sign_of_life:
                self.last_sign_of_life = self._clock()
            self.activity = activity_of(event) or self.activity
        thread_id = self.output.state.thread_id
        if thread_id and thread_id != self._thread_id:
            self._thread_id = thread_id
            self._on_thread(thread_id)

    def tokens(self) -> int:
        """All that the job has used so far."""
        return self.used_before + self._tail.look(self.output.state.thread_id or None).total

    def usage(self) -> TokenCount:
        """Of this attempt, when it is over."""
        return self._tail.look(self.output.state.thread_id or None)

    def windows(self, tree: str) -> tuple[EditWindow, ...]:
        """When the worker may have changed files, with the paths of its patches relative to the tree."""
        patched: dict[str, list[str]] = {}
        for change in self.output.activities.changes:
            path = relative_to(tree, change.path)
            if path:
                patched.setdefault(change.item_id, []).append(path)
        return tuple(
            EditWindow(
                start=activity.started,
                end=activity.ended,
                text="" if activity.kind == "patch" else activity.text,
                paths=tuple(patched.get(activity.item_id, ())) if activity.kind == "patch" else (),
            )
            for activity in self.output.activities.all
        )


def activity_of(event: WorkerEvent) -> str:
    """What the worker does, in a few words; empty if the event does not say."""
    content = event.content
    match event.type, content.get("tool"):
        case "tool_call", "command":
            text = f"runs {without_shell(str(content.get('command', '')))}"
        case "tool_call", "patch":
            text = "edits files"
        case "tool_call", "mcp":
            text = f"calls {content.get('server', '')}.{content.get('name', '')}"
        case "tool_call", tool if tool:
            text = f"uses {tool}"
        case "message", _:
            text = "answers"
        case "error", _ if content.get("kind") == "reconnecting":
            text = "waits for the model's provider"
        case _:
            return ""
    return " ".join(text.split())[:ACTIVITY_CHARS]


def relative_to(tree: str, path: str) -> str:
    """A path below the tree, in the form of snapshots; empty if it lies elsewhere."""
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    inside = os.path.relpath(real, tree)
    return (
        "" if inside == os.pardir or inside.startswith(os.pardir + os.sep) else text_of(os.fsencode(inside))
    )


def usage_of(counts: Iterable[TokenCount]) -> JobUsage:
    """Of all attempts together."""
    all_counts = list(counts)
    return JobUsage(
        input_tokens=sum(count.input for count in all_counts),
        cached_input_tokens=sum(count.cached_input for count in all_counts),
        output_tokens=sum(count.output for count in all_counts),
        total_tokens=sum(count.total for count in all_counts),
    )
