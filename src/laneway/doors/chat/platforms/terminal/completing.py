"""Completes what is typed: commands, lanes, the commands of a lane's engine, paths of images."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from laneway.base.plain import code_label, label
from laneway.doors.chat.ports import ChatCommand

MAX_ABOUT_CHARS = 60
TAKES_LANE = "lane"
"""The command whose argument is the name of a lane."""
TAKES_PATH = "attach"


class ChatCompleter(Completer):
    """Only for texts that begin with a slash: plain words are the user's own."""

    def __init__(self, commands: Callable[[], list[ChatCommand]]) -> None:
        self._commands = commands
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        commands = self._commands()
        first, space, rest = text.partition(" ")
        if not space:
            yield from _matching(commands, first[1:])
            return
        name = first[1:].lower()
        lanes = [command for command in commands if command.kind == "lane"]
        if name == TAKES_LANE:
            yield from _matching(lanes, rest, slash="")
        elif name == TAKES_PATH:
            yield from self._paths.get_completions(Document(rest, len(rest)), complete_event)
        elif any(lane.name == name for lane in lanes) and rest.startswith("/") and " " not in rest:
            own = [
                command for command in commands if command.kind == "engine" and command.lane in (name, None)
            ]
            yield from _matching(own, rest[1:])


def _matching(commands: list[ChatCommand], begun: str, slash: str = "/") -> Iterable[Completion]:
    if " " in begun:
        return
    for command in commands:
        if command.name.startswith(begun.lower()):
            yield Completion(
                f"{slash}{command.name}",
                start_position=-len(begun) - len(slash),
                display=code_label(f"{slash}{command.name}", 40),
                display_meta=label(command.description, MAX_ABOUT_CHARS),
            )
