"""What becomes of a session's unread mail: `sort` it, then `decide(situation, sorted, rules)`. Pure.

`sort` takes its time with a full inbox and may run in a thread; `decide` is short, because nothing may
happen between it and what is done about it.

The order of precedence: an order to end the session, what a client wants, mail. Mail is brought to
an idle session, so many messages at a time and so many turns in an hour; to a busy one only what is
urgent, and only where that is wanted. What was brought in this life is not brought again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Literal, TypeAlias

import msgspec

from laneway.mail.entries import Message
from laneway.mail.frames import Addressee, treatment

HOUR_S = 3600.0


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say."""

    max_messages: int = 10
    max_chars: int = 4096
    turns_per_hour: int = 60
    may_steer: bool = False
    allow: frozenset[str] | None = None
    """Senders whose mail may start turns; `None` is everybody."""
    deny: frozenset[str] = frozenset()

    def admit(self, message: Message) -> bool:
        """Both lists take `agent` and `agent@team`."""
        names = {message.sender, f"{message.sender}@{message.source_team}"}
        return names.isdisjoint(self.deny) and (self.allow is None or not names.isdisjoint(self.allow))


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """All that matters about a session, in one instant."""

    now: float
    """By the clock that `begun` and `not_before` are told by."""
    state: Literal["idle", "busy", "closed"]
    is_auto: bool = True
    can_begin: bool = True
    """Whether Codex can be asked: not if it died and nobody may start another."""
    begun: tuple[float, ...] = ()
    """When mail was brought during the last hour, oldest first."""
    not_before: float = 0.0
    """The last attempt failed: not before this."""


class Bring(msgspec.Struct, frozen=True):
    """Start a turn with these."""

    messages: tuple[Message, ...]
    left: int
    """More that may start turns, for later."""


class Steer(msgspec.Struct, frozen=True):
    """Put these into the turn that is running."""

    messages: tuple[Message, ...]


class End(msgspec.Struct, frozen=True):
    """Close the session, as its lead asked."""

    request: Message


class Hold(msgspec.Struct, frozen=True):
    """Nothing now. Look again when something changes, and at the latest at this time."""

    why: Literal["nothing", "off", "closed", "engine", "busy", "failed", "limit"]
    until: float | None = None


Act: TypeAlias = Bring | Steer | End | Hold


class Sorted(msgspec.Struct, frozen=True, kw_only=True):
    """Unread mail by what may become of it, each kind in the order of delivery."""

    orders: tuple[Message, ...] = ()
    """To end the session."""
    starting: tuple[Message, ...] = ()
    """May start a turn."""
    along: tuple[Message, ...] = ()
    """Starts none, and comes along with one."""
    marks: tuple[Message, ...] = ()
    """Recorded by Codex already: only the mark is missing."""
    refused: tuple[Message, ...] = ()
    """From senders who may not start turns: it stays unread."""


def sort(
    unread: Iterable[Message],
    me: Addressee,
    rules: Rules,
    *,
    under_way: frozenset[str] = frozenset(),
    brought: Container[str] = frozenset(),
) -> Sorted:
    """`unread` is in the order of delivery (`Mail.unread`).

    `under_way` has the keys of what was handed to Codex and is not yet known to be recorded: it is left
    out. `brought` has those of what is recorded.
    """
    kinds: dict[str, list[Message]] = {"end": [], "turn": [], "quiet": [], "brought": [], "refused": []}
    for message in unread:
        if any(key in brought for key in message.key):
            kinds["brought"].append(message)
        elif under_way.isdisjoint(message.key):
            kinds[treatment(message, me) if rules.admit(message) else "refused"].append(message)
    return Sorted(
        orders=tuple(kinds["end"]),
        starting=tuple(kinds["turn"]),
        along=tuple(kinds["quiet"]),
        marks=tuple(kinds["brought"]),
        refused=tuple(kinds["refused"]),
    )


def decide(situation: Situation, mail: Sorted, rules: Rules) -> Act:
    is_idle, most = situation.state == "idle", rules.max_messages
    if situation.state == "closed":
        return Hold("closed")
    if not situation.is_auto:
        return Hold("off")
    if mail.orders:
        return End(mail.orders[0]) if is_idle else Hold("busy")
    if not mail.starting:
        return Hold("nothing")
    first = mail.starting[:most]
    urgent = tuple(message for message in first if message.urgency == "urgent")
    if not is_idle and not (rules.may_steer and urgent):
        return Hold("busy")
    held = _hold(situation, rules)
    if held is not None:
        return held
    if not is_idle:
        return Steer(urgent)
    return Bring(first + mail.along[: most - len(first)], len(mail.starting) - len(first))


def _hold(situation: Situation, rules: Rules) -> Hold | None:
    """What keeps mail back that could otherwise go."""
    if not situation.can_begin:
        return Hold("engine")
    if situation.now < situation.not_before:
        return Hold("failed", situation.not_before)
    begun = recent(situation.begun, situation.now)
    if len(begun) >= rules.turns_per_hour:
        return Hold("limit", begun[-rules.turns_per_hour] + HOUR_S if rules.turns_per_hour else None)
    return None


def recent(begun: Iterable[float], now: float) -> tuple[float, ...]:
    """Those of the last hour."""
    return tuple(each for each in begun if each > now - HOUR_S)
