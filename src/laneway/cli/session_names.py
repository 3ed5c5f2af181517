"""Finds sessions by what people type: a name, any id, or the end or the beginning of an id.

Pure. A whole name or id wins over a part; an ambiguous one is refused with the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from laneway.base.errors import UsageError
from laneway.base.plain import code_label

MIN_PART_CHARS = 6
"""Of a partial id: fewer characters would often match a session by chance."""
SHORT_ID_CHARS = 8
"""Of an id in a list, taken from its end: a thread's id begins with the time, which many share."""
MAX_CANDIDATES = 20
"""Sessions that are listed for an ambiguous name."""
CANDIDATE_CHARS = 200

T = TypeVar("T")


def short_id(whole: str) -> str:
    return whole[-SHORT_ID_CHARS:]


def matching(
    who: str,
    sessions: Iterable[T],
    ids: Callable[[T], Iterable[str | None]],
    name: Callable[[T], str | None] = lambda session: None,
) -> list[T]:
    """The sessions that `who` names in full; else those that have it as a part of an id.

    Raises `UsageError` for an empty name, as of a variable that is not set.
    """
    if not who.strip():
        raise UsageError("The name is empty: give a name, an id, or at least six characters of an id.")
    known = list(sessions)
    exact = [each for each in known if who in (*ids(each), name(each))]
    if exact or len(who) < MIN_PART_CHARS:
        return exact
    return [each for each in known if any(_is_part(who, whole) for whole in ids(each))]


def _is_part(who: str, whole: str | None) -> bool:
    return whole is not None and (whole.endswith(who) or whole.startswith(who))


def ambiguous(who: str, candidates: Iterable[tuple[str, str]], noun: str = "sessions") -> UsageError:
    """The error for an ambiguous name. `candidates` are ids, each with a description."""
    ordered = sorted(candidates)
    rows = [code_label(f"  {whole}  {about}".rstrip(), CANDIDATE_CHARS) for whole, about in ordered]
    more = [f"  and {len(rows) - MAX_CANDIDATES} more"] if len(rows) > MAX_CANDIDATES else []
    head = f"{code_label(who)} can mean {len(ordered)} {noun}. Name one of them by its id:"
    return UsageError("\n".join([head, *rows[:MAX_CANDIDATES], *more]))
