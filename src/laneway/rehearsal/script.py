"""The script language of rehearsals: parses a prompt into the steps of the scripted model, for every engine.

A line that starts with `%` is a step; every other line of the prompt is ignored. A prompt without
steps is a plain prompt. Pure: text in, values out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

MAX_WORDS = 1_000_000
"""Limit of `%stream`, whose words are all made before they are sent."""

HELP = """\
%say TEXT                          answer with TEXT
%stream N words [over S seconds]   stream N words, spread over S seconds (at once without it)
%think TEXT                        show a thought
%run COMMAND                       run a shell command in the sandbox
%run! COMMAND                      run one that needs approval (asks to leave the sandbox)
%patch FILE TEXT                   create FILE with TEXT (\\n makes a new line)
%edit FILE OLD => NEW              replace the line OLD of FILE by NEW
%tool NAME {JSON}                  call a tool by its name
%ask QUESTION? A | B | C           ask the user to choose
%plan FIRST; SECOND; THIRD         publish a plan, its first step in progress (Claude asks for its approval)
%usage N                           report N input tokens for this answer
%fail STATUS [TEXT]                fail with this HTTP status
%break                             cut the stream in the middle of the answer
%hang                              answer nothing until the caller gives up
%help                              answer with this list"""


class SayStep(msgspec.Struct, frozen=True):
    text: str


class StreamStep(msgspec.Struct, frozen=True):
    words: int
    over_s: float = 0.0


class Think(msgspec.Struct, frozen=True):
    text: str


class RunStep(msgspec.Struct, frozen=True):
    command: str
    escalated: bool = False


class AddFile(msgspec.Struct, frozen=True):
    path: str
    text: str


class EditFile(msgspec.Struct, frozen=True):
    path: str
    old: str
    new: str


class CallTool(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Any]


class Ask(msgspec.Struct, frozen=True):
    question: str
    options: tuple[str, ...]


class MakePlan(msgspec.Struct, frozen=True):
    steps: tuple[str, ...]


class UsageStep(msgspec.Struct, frozen=True):
    input_tokens: int


class Fail(msgspec.Struct, frozen=True):
    status: int
    text: str


class Break(msgspec.Struct, frozen=True):
    pass


class Hang(msgspec.Struct, frozen=True):
    pass


Step: TypeAlias = (
    SayStep
    | StreamStep
    | Think
    | RunStep
    | AddFile
    | EditFile
    | CallTool
    | Ask
    | MakePlan
    | UsageStep
    | Fail
    | Break
    | Hang
)
CALLS: tuple[type[Step], ...] = (RunStep, AddFile, EditFile, CallTool, Ask, MakePlan)
"""Steps after which the engine sends another request with the result; an answer ends at the first of them."""


def parse(prompt: str) -> list[Step]:
    """Return the steps of a prompt; a step that cannot be read becomes a `SayStep` that explains it."""
    steps: list[Step] = []
    for line in prompt.splitlines():
        stripped = line.strip()
        if stripped.startswith("%") and len(stripped) > 1 and not stripped.startswith("%%"):
            verb, _, rest = stripped[1:].partition(" ")
            steps.append(_step(verb, rest.strip()))
    return steps


def _step(verb: str, rest: str) -> Step:
    maker = _VERBS.get(verb)
    if maker is None:
        return SayStep(f"There is no step %{verb} in a rehearsal. These exist:\n{HELP}")
    try:
        return maker(rest)
    except (ValueError, RecursionError) as problem:
        return SayStep(f"The rehearsal cannot read “%{verb} {rest}”: {problem}")


def _stream(rest: str) -> Step:
    match = re.fullmatch(r"(\d+)(?: words?)?(?: over ([\d.]+) ?s(?:econds?)?)?", rest)
    if not match:
        raise ValueError("write %stream N words over S seconds")
    if len(match[1]) > len(str(MAX_WORDS)) or int(match[1]) > MAX_WORDS:
        raise ValueError(f"no more than {MAX_WORDS} words")
    return StreamStep(int(match[1]), float(match[2] or 0))


def _patch(rest: str) -> Step:
    path, _, text = rest.partition(" ")
    if not path:
        raise ValueError("write %patch FILE TEXT")
    return AddFile(path, text.replace("\\n", "\n"))


def _edit(rest: str) -> Step:
    match = re.fullmatch(r"(\S+) (.*?) => (.*)", rest)
    if not match:
        raise ValueError("write %edit FILE OLD => NEW")
    path, old, new = match.groups()
    return EditFile(path, old, new)


def _tool(rest: str) -> Step:
    name, _, arguments = rest.partition(" ")
    value = json.loads(arguments or "{}")
    if not name or not isinstance(value, dict):
        raise ValueError("write %tool NAME {JSON object}")
    return CallTool(name, value)


def _ask(rest: str) -> Step:
    question, question_mark, options = rest.partition("?")
    choices = tuple(x.strip() for x in options.split("|") if x.strip())
    if not question_mark or len(choices) < 2:
        raise ValueError("write %ask QUESTION? A | B")
    return Ask(question + "?", choices)


def _fail(rest: str) -> Step:
    status, _, text = rest.partition(" ")
    return Fail(int(status), text or "The rehearsal was told to fail.")


_VERBS: dict[str, Callable[[str], Step]] = {
    "say": lambda rest: SayStep(rest.replace("\\n", "\n")),
    "stream": _stream,
    "think": Think,
    "run": RunStep,
    "run!": lambda rest: RunStep(rest, escalated=True),
    "patch": _patch,
    "edit": _edit,
    "tool": _tool,
    "ask": _ask,
    "plan": lambda rest: MakePlan(tuple(x.strip() for x in rest.split(";") if x.strip())),
    "usage": lambda rest: UsageStep(int(rest)),
    "fail": _fail,
    "break": lambda rest: Break(),
    "hang": lambda rest: Hang(),
    "help": lambda rest: SayStep(HELP),
}
