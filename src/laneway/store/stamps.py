"""Points in time as the files write them: UTC, milliseconds, `Z`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Now = Callable[[], datetime]
"""The wall clock, as something that tests can hold in their hands. It may jump, also back."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def stamp(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def file_stamp(when: datetime) -> str:
    """The same for a file name: no colons, and sortable."""
    return when.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def parse(text: object) -> datetime | None:
    """What other programs wrote: any offset and precision; without an offset it is UTC."""
    if not isinstance(text, str):
        return None
    try:
        when = datetime.fromisoformat(text)
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
