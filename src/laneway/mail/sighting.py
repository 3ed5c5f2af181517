"""Reads an inbox and sorts what is new in it: all that takes time, in one call. Blocking: for a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from laneway.mail.delivery import Sorted
from laneway.mail.entries import Message
from laneway.mail.inbox import Inbox
from laneway.mail.swap import Fingerprint


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an inbox when it was read."""

    fingerprint: Fingerprint | None
    mail: Sorted
    unread: int
    known: Mapping[str, float]
    """The keys of unread messages, and when the inbox was written in which each first appeared."""
    new: int
    """Messages that were not there the last time."""
    newly_refused: int
    damage: str
    """What is wrong with the file, as a sentence; usually empty."""


def look(
    inbox: Inbox,
    seen: Fingerprint | None,
    known: Mapping[str, float],
    sort: Callable[[Sequence[Message]], Sorted],
    *,
    is_due: bool,
) -> Sight | None:
    """Read the inbox; none if it has not changed since `seen`, unless a reading `is_due` all the same.

    What arrives between the fingerprint and the reading is noticed the next time.
    """
    fingerprint = inbox.fingerprint()
    if fingerprint == seen and not is_due:
        return None
    mail = inbox.read()
    damage = next((problem.text for problem in mail.problems if problem.kind == "damaged"), "")
    if damage:
        inbox.rescue()  # before another program overwrites it
    unread = mail.unread()
    sorted_mail = sort(unread)
    written_at = fingerprint[2] / 1e9 if fingerprint else 0.0
    return Sight(
        fingerprint=fingerprint,
        mail=sorted_mail,
        unread=len(unread),
        known={key: known.get(key, written_at) for message in unread for key in message.key},
        new=_new(unread, known),
        newly_refused=_new(sorted_mail.refused, known),
        damage=damage,
    )


def _new(messages: Sequence[Message], known: Mapping[str, float]) -> int:
    return sum(known.keys().isdisjoint(message.key) for message in messages)
