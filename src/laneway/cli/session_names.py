"""How people name a session: its name, any of its ids, or the end or the beginning of an id.

Pure. A whole name or id goes before a part; what can mean several is refused with the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from laneway.base.errors import UsageError
from laneway.base.plain import code_label

MIN_PART_CHARS = 6
"""Of an id that is not written out: fewer letters would often mean a session by chance."""
SHORT_ID_CHARS = 8
"""Of an id in a list. Its end: that of a thread begins with the time, which many have in common."""
MAX_CANDIDATES = 20
"""Sessions that are listed because a name can mean any of them."""
CANDIDATE_CHARS = 200

T = TypeVar("T")


def short_id(whole: str) -> str:
    return whole[-SHORT_ID_CHARS:]


def meant_by(
    who: str,
    sessions: Iterable[T],
    ids: Callable[[T], Iterable[str | None]],
    name: Callable[[T], str | None] = lambda session: None,
) -> list[T]:
    """Those that `who` names in full; else those of whose ids it is a part."""
    known = list(sessions)
    exact = [each for each in known if who in (*ids(each), name(each))]
    if exact or len(who) < MIN_PART_CHARS:
        return exact
    return [each for each in known if any(_is_part(who, whole) for whole in ids(each))]


def _is_part(who: str, whole: str | None) -> bool:
    return whole is not None and (whole.endswith(who) or whole.startswith(who))


def ambiguous(who: str, candidates: Iterable[tuple[str, str]]) -> UsageError:
    """`candidates` are ids, and what tells each from the others."""
    found = sorted(candidates)
    rows = [code_label(f"  {whole}  {about}".rstrip(), CANDIDATE_CHARS) for whole, about in found]
    more = [f"  and {len(rows) - MAX_CANDIDATES} more"] if len(rows) > MAX_CANDIDATES else []
    head = f"{code_label(who)} can mean {len(found)} sessions. Name one of them by its id:"
    return UsageError("\n".join([head, *rows[:MAX_CANDIDATES], *more]))
