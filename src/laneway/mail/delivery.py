"""Decides what to do with a session's unread mail: `sort` it, then `decide(situation, sorted, rules)`. Pure.

`sort` may take long for a full inbox and may run in a thread; `decide` is short, because nothing may
happen between the decision and the action.

The order of precedence: a request to end the session, a client's turns, mail. Mail is delivered to an
idle session, with a limit of messages per turn and of turns per hour; to a busy one only what is urgent,
and only where that is configured. What was delivered in this process is not delivered again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Literal, TypeAlias

import msgspec

from laneway.mail.claude_messages import Addressee, treatment
from laneway.mail.entries import Message

HOUR_S = 3600.0


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of delivery."""

    max_messages: int = 10
    max_chars: int = 4096
    turns_per_hour: int = 60
    may_steer: bool = False
    allow: frozenset[str] | None = None
    """Senders whose mail may start turns; `None` is everybody."""
    deny: frozenset[str] = frozenset()

    def admit(self, message: Message) -> bool:
        """Whether its sender may start turns. Both lists take `agent` and `agent@team`."""
        names = {message.sender, f"{message.sender}@{message.source_team}"}
        return names.isdisjoint(self.deny) and (self.allow is None or not names.isdisjoint(self.allow))


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """All that matters about a session, in one instant."""

    now: float
    """By the same clock as `begun` and `not_before`."""
    state: Literal["idle", "busy", "closed"]
    is_auto: bool = True
    can_begin: bool = True
    """Whether the engine can start a turn: not if it died and may not be started again."""
    can_steer: bool = True
    """Whether the engine takes input into a running turn."""
    begun: tuple[float, ...] = ()
    """When mail was delivered during the last hour, oldest first."""
    not_before: float = 0.0
    """After a failed attempt: the time of the next one."""


class StartMailTurn(msgspec.Struct, frozen=True):
    """Start a turn with these messages."""

    messages: tuple[Message, ...]
    left: int
    """How many more may start turns later."""


class SteerMail(msgspec.Struct, frozen=True):
    """Add these messages to the running turn."""

    messages: tuple[Message, ...]


class EndSession(msgspec.Struct, frozen=True):
    """Close the session, as its lead asked."""

    request: Message


class HoldMail(msgspec.Struct, frozen=True):
    """Do nothing now. Decide again when something changes, at the latest at `until`."""

    why: Literal["nothing", "off", "closed", "engine", "busy", "failed", "limit"]
    until: float | None = None


Act: TypeAlias = StartMailTurn | SteerMail | EndSession | HoldMail


class Sorted(msgspec.Struct, frozen=True, kw_only=True):
    """Unread mail by what may be done with it, each kind in the order of delivery."""

    orders: tuple[Message, ...] = ()
    """Requests to end the session."""
    starting: tuple[Message, ...] = ()
    """May start a turn."""
    along: tuple[Message, ...] = ()
    """Starts no turn, and is added to one that other mail starts."""
    marks: tuple[Message, ...] = ()
    """Recorded by Codex already: only the mark is missing."""
    refused: tuple[Message, ...] = ()
    """From senders who may not start turns: these stay unread."""


def sort(
    unread: Iterable[Message],
    me: Addressee,
    rules: Rules,
    *,
    pending_keys: frozenset[str] = frozenset(),
    delivered: Container[str] = frozenset(),
) -> Sorted:
    """`unread` is in the order of delivery (`Mail.unread`).

    `pending_keys` has the keys of messages that were sent to Codex and are not yet known to be recorded:
    these are left out. `delivered` has the keys of recorded ones.
    """
    kinds: dict[str, list[Message]] = {"end": [], "turn": [], "quiet": [], "delivered": [], "refused": []}
    for message in unread:
        if any(key in delivered for key in message.key):
            kinds["delivered"].append(message)
        elif pending_keys.isdisjoint(message.key):
            kinds[treatment(message, me) if rules.admit(message) else "refused"].append(message)
    return Sorted(
        orders=tuple(kinds["end"]),
        starting=tuple(kinds["turn"]),
        along=tuple(kinds["quiet"]),
        marks=tuple(kinds["delivered"]),
        refused=tuple(kinds["refused"]),
    )


def decide(situation: Situation, mail: Sorted, rules: Rules) -> Act:
    is_idle, most = situation.state == "idle", rules.max_messages
    if situation.state == "closed":
        return HoldMail("closed")
    if not situation.is_auto:
        return HoldMail("off")
    if mail.orders:
        return EndSession(mail.orders[0]) if is_idle else HoldMail("busy")
    if not mail.starting:
        return HoldMail("nothing")
    first = mail.starting[:most]
    urgent = tuple(message for message in first if message.urgency == "urgent")
    if not is_idle and not (rules.may_steer and situation.can_steer and urgent):
        return HoldMail("busy")
    held = _hold(situation, rules)
    if held is not None:
        return held
    if not is_idle:
        return SteerMail(urgent)
    return StartMailTurn(first + mail.along[: most - len(first)], len(mail.starting) - len(first))


def _hold(situation: Situation, rules: Rules) -> HoldMail | None:
    """Why mail that could be delivered must wait; none if it need not."""
    if not situation.can_begin:
        return HoldMail("engine")
    if situation.now < situation.not_before:
        return HoldMail("failed", situation.not_before)
    begun = recent(situation.begun, situation.now)
    if len(begun) >= rules.turns_per_hour:
        return HoldMail("limit", begun[-rules.turns_per_hour] + HOUR_S if rules.turns_per_hour else None)
    return None


def recent(begun: Iterable[float], now: float) -> tuple[float, ...]:
    """Those of the last hour."""
    return tuple(each for each in begun if each > now - HOUR_S)
