"""What a client was told of one tool call, and commands that wait for a test's word."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path

from laneway.doors.acp.updates.tool_calls import _LATE_MARK
from tests.doors.acp.support import Client, Message

OVERHEAD_CHARS = 1000
"""Of one update in JSON, without what the command printed: ids, title, folder."""


def story(client: Client, without: Collection[str] = ("usage_update",)) -> list[Message]:
    """The trace from the first prompt on: how clients and agents greet each other is told elsewhere.

    Without usage, unless it is what the story is about: when it comes is Codex's affair.
    """
    trace = client.trace(without=("available_commands_update", *without))
    begin = next(at for at, message in enumerate(trace) if message.get("method") == "session/prompt")
    return trace[begin:]


def only_call(client: Client) -> Message:
    """The only tool call that there was, as it stands."""
    (call,) = client.tool_calls().values()
    return call


def last_call(client: Client, session_id: str | None = None) -> Message:
    return list(client.tool_calls(session_id).values())[-1]


def told(client: Client, call_id: str) -> list[Message]:
    """All that was said of a call, in order."""
    return [update.body for update in client.updates if update.body.get("toolCallId") == call_id]


def chars(updates: list[Message]) -> int:
    """How long it was, as it went over the wire."""
    return sum(len(json.dumps(update, ensure_ascii=False)) for update in updates)


def printed(updates: list[Message]) -> str:
    """What a client that shows terminals of ours has on its screen."""
    pieces = [update.get("_meta", {}).get("terminal_output", {}).get("data", "") for update in updates]
    return "".join(pieces)


def holds_exactly(screen: str, output: str) -> bool:
    """Every character of the output once, and no other.

    Codex may tell the first piece only at the end; a terminal shows it there, and says so.
    """
    live, mark, late = screen.partition(_LATE_MARK)
    if not mark:
        return screen == output
    places = (at for at in range(len(live) + 1) if output.startswith(late, at))
    return any(output == live[:at] + late + live[at:] for at in places)


class Gate:
    """A named pipe: a command that does `read x < NAME` waits until the test says `go`."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        os.mkfifo(path)
        # Both ends, so that neither the test nor the command waits for the other to open it.
        self._fd = os.open(path, os.O_RDWR)

    def go(self) -> None:
        os.write(self._fd, b"go\n")

    def close(self) -> None:
        os.close(self._fd)


class Gates:
    """A gate for each command: one that is being killed may still read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[Gate] = []

    def new(self) -> Gate:
        self._made.append(Gate(self._folder / f"gate-{len(self._made)}"))
        return self._made[-1]

    def close(self) -> None:
        for gate in self._made:
            gate.close()
