"""Where a message goes: to a control command, a lane, a lane's engine, a question, or nowhere. Pure.

In this order: a control command; the command of a lane; a reply to a lane's message; the one open
question; the default lane. Another `/word` is a command of an engine, or it is answered with help and
sent nowhere. `//x` is the text `/x`, and a first word with a second slash is a path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from laneway.doors.chat.messages import ReplyTarget

CONTROLS: Mapping[str, str] = {
    "stop": "stop all work in this conversation and drop queued messages",
    "help": "show this list",
    "status": "show what is running, what is queued and which questions are open",
    "new": "start a new conversation",
    "resume": "list earlier conversations, or continue one: /resume NUMBER",
    "lanes": "list the lanes",
    "lane": "choose the lane that messages without a command go to: /lane NAME",
    "steer": "add to the running turn: /steer TEXT",
    "queue": "send after the running turn has ended: /queue TEXT",
    "continue": "continue a turn that was cut off",
    "attach": "attach an image: /attach PATH",
    "link": "get a code to open this conversation somewhere else",
    "join": "open a conversation from somewhere else here: /join CODE",
    "quit": "stop every lane; in a terminal, also leave",
}
"""Control commands and what each does, in the order of lists."""

_COMMAND = re.compile(r"/([^\s/@]+)(?:@([^\s/]*))?(?=\s|\Z)")
_NUMBERED = re.compile(r"#?(\d{1,6})\s*[:.)]\s*(.*)|#(\d{1,6})\s+(.*)", re.DOTALL)


class QuestionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An open question, as far as it matters for where words go."""

    number: int
    lane: str
    asked_at: float
    for_owners: bool = False
    asked_by: str = ""


class RoutingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What holds when a message is taken."""

    lanes: tuple[str, ...]
    default_lane: str
    working: tuple[str, ...] = ()
    """Lanes whose turns run, the innermost last."""
    questions: tuple[QuestionFacts, ...] = ()
    engine_commands: Mapping[str, tuple[str, ...]] = {}
    """By lane. Only needed for a text that begins with a slash."""
    own_names: tuple[str, ...] = ()
    """Of the bot: `/codex@name` is ours if it is one of these, or if the list is empty and it has no name."""


class Speaker(msgspec.Struct, frozen=True):
    user_id: str = ""
    is_owner: bool = True


# ── decisions ──────────────────────────────────────────────────────────────


class ToControl(msgspec.Struct, frozen=True, tag=True):
    name: str
    arguments: str = ""


class ToLane(msgspec.Struct, frozen=True, tag=True):
    """A turn of a lane. `command` is one of its engine's, with the text as its arguments."""

    lane: str
    text: str
    command: str = ""
    is_named: bool = False
    """Whether the person has named the lane; plain words may go elsewhere while another one works."""


class ToRunningTurn(msgspec.Struct, frozen=True, tag=True):
    """Words for the turn that runs: a reply to one of its messages."""

    lane: str
    text: str


class ToQuestion(msgspec.Struct, frozen=True, tag=True):
    number: int
    text: str


class WhichQuestion(msgspec.Struct, frozen=True, tag=True):
    """Several are open, and the words name none."""

    numbers: tuple[int, ...]


class ShowUsage(msgspec.Struct, frozen=True, tag=True):
    lane: str


class NotACommand(msgspec.Struct, frozen=True, tag=True):
    word: str


class ForAnotherBot(msgspec.Struct, frozen=True, tag=True):
    """A command with the name of a bot that is not ours. Not for us, and nobody else of ours hears it."""

    command: str
    """With that name."""


Route: TypeAlias = (
    ToControl | ToLane | ToRunningTurn | ToQuestion | WhichQuestion | ShowUsage | NotACommand | ForAnotherBot
)


# ── the rules ──────────────────────────────────────────────────────────────


def command_of(text: str) -> tuple[str, str | None, str] | None:
    """The command that a text begins with, in lower case, its bot, and the rest; none for plain words."""
    match = _COMMAND.match(text)
    return None if match is None else (match[1].lower(), match[2], text[match.end() :].strip())


def route(
    text: str,
    facts: RoutingFacts,
    *,
    reply: ReplyTarget | None = None,
    speaker: Speaker = Speaker(),  # noqa: B008  a frozen value
    said_at: float = float("inf"),
) -> Route:
    """`said_at`: when the message was sent, on the clock of `QuestionFacts.asked_at`."""
    text = text.strip()
    command = command_of(text)
    if command is not None:
        name, bot, rest = command
        if bot is not None and bot.lower() not in facts.own_names:
            return ForAnotherBot(f"/{name}@{bot}")
        return _command(name, rest, facts, reply)
    if text.startswith("//"):
        text = text[1:]
    return _words(text, facts, reply, speaker, said_at)


def _command(name: str, rest: str, facts: RoutingFacts, reply: ReplyTarget | None) -> Route:
    if name in CONTROLS:
        return ToControl(name, rest)
    if name in facts.lanes:
        return _named_lane(name, rest, facts)
    lane = engine_lane(name, facts, reply.lane if reply is not None else None)
    return NotACommand(name) if lane is None else ToLane(lane, rest, command=name)


def _named_lane(lane: str, rest: str, facts: RoutingFacts) -> Route:
    if not rest:
        return ShowUsage(lane)
    inner = command_of(rest)
    if inner is not None and inner[1] is None and inner[0] in facts.engine_commands.get(lane, ()):
        return ToLane(lane, inner[2], command=inner[0], is_named=True)
    return ToLane(lane, rest[1:] if rest.startswith("//") else rest, is_named=True)


def engine_lane(name: str, facts: RoutingFacts, replied: str | None = None) -> str | None:
    """The lane that an engine's command goes to: the replied, the default, or the only one that has it."""
    having = [lane for lane in facts.lanes if name in facts.engine_commands.get(lane, ())]
    for lane in (replied, facts.default_lane):
        if lane in having:
            return lane
    return having[0] if len(having) == 1 else None


def _words(
    text: str, facts: RoutingFacts, reply: ReplyTarget | None, speaker: Speaker, said_at: float
) -> Route:
    if reply is not None and reply.question is not None:
        return ToQuestion(reply.question, text)
    if reply is not None and reply.lane in facts.lanes:
        asking = [each for each in facts.questions if each.lane == reply.lane and said_at >= each.asked_at]
        if len(asking) == 1 and may_answer(asking[0], speaker):
            return ToQuestion(asking[0].number, text)
        if reply.lane in facts.working:
            return ToRunningTurn(reply.lane, text)
        return ToLane(reply.lane, text, is_named=True)
    return _answer(text, facts, speaker, said_at) or ToLane(facts.default_lane, text)


def _answer(text: str, facts: RoutingFacts, speaker: Speaker, said_at: float) -> Route | None:
    """Words that were sent before a question do not answer it: nobody had seen it."""
    seen = [each for each in facts.questions if said_at >= each.asked_at and may_answer(each, speaker)]
    if not seen or not text:
        return None
    named = _named_question(text, [each.number for each in seen])
    if named is not None and (len(seen) > 1 or text.startswith("#")):
        return named
    if len(seen) == 1:
        return ToQuestion(seen[0].number, text)
    return WhichQuestion(tuple(each.number for each in seen))


def _named_question(text: str, numbers: list[int]) -> ToQuestion | None:
    match = _NUMBERED.fullmatch(text)
    if match is None:
        return None
    number, words = (match[1], match[2]) if match[1] is not None else (match[3], match[4])
    return ToQuestion(int(number), words.strip()) if int(number) in numbers and words.strip() else None


def may_answer(question: QuestionFacts, speaker: Speaker) -> bool:
    """Approvals take an owner's word; other questions also that of whoever asked for the turn."""
    if speaker.is_owner:
        return True
    return not question.for_owners and speaker.user_id == question.asked_by
