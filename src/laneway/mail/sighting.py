"""One look into an inbox, with everything about it that takes time. Blocking: for a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from laneway.mail.delivery import Sorted
from laneway.mail.entries import Message
from laneway.mail.inbox import Inbox
from laneway.mail.swap import Fingerprint


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """An inbox as it was found."""

    fingerprint: Fingerprint | None
    mail: Sorted
    unread: int
    known: Mapping[str, float]
    """The keys of what is unread, and when the inbox was written that first had them."""
    new: int
    """Messages that were not known at the look before."""
    newly_refused: int
    damage: str
    """What is wrong with the file, as a sentence; as a rule nothing."""


def look(
    inbox: Inbox,
    seen: Fingerprint | None,
    known: Mapping[str, float],
    sort: Callable[[Sequence[Message]], Sorted],
    *,
    is_due: bool,
) -> Sight | None:
    """None if it is the inbox that was seen last, unless a look `is_due` all the same.

    What comes between the look at the file and the reading is seen at the next look.
    """
    fingerprint = inbox.fingerprint()
    if fingerprint == seen and not is_due:
        return None
    mail = inbox.read()
    damage = next((problem.text for problem in mail.problems if problem.kind == "damaged"), "")
    if damage:
        inbox.rescue()  # before somebody writes over it
    unread = mail.unread()
    in_order = sort(unread)
    written_at = fingerprint[2] / 1e9 if fingerprint else 0.0
    return Sight(
        fingerprint=fingerprint,
        mail=in_order,
        unread=len(unread),
        known={key: known.get(key, written_at) for message in unread for key in message.key},
        new=_new(unread, known),
        newly_refused=_new(in_order.refused, known),
        damage=damage,
    )


def _new(messages: Sequence[Message], known: Mapping[str, float]) -> int:
    return sum(known.keys().isdisjoint(message.key) for message in messages)
