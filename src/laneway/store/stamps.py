"""Time stamps in the format of our files: UTC, milliseconds, `Z`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Now = Callable[[], datetime]
"""The wall clock as a parameter, for tests. It may jump, also backwards."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def stamp(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def file_stamp(when: datetime) -> str:
    """The same for a file name: no colons, and sortable."""
    return when.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def parse(text: object) -> datetime | None:
    """A time that another program wrote: any offset and precision; without an offset it is UTC."""
    if not isinstance(text, str):
        return None
    try:
        when = datetime.fromisoformat(text)
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
