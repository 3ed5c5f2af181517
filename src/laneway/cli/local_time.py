"""Formats timestamps for people, in local time. Pure, except for the time zone."""

from __future__ import annotations

from datetime import datetime, timedelta


def when(moment: datetime | None, now: datetime) -> str:
    """`today 14:03`, `yesterday 09:10`, else the date; in local time. Empty for None."""
    if moment is None:
        return ""
    try:
        local, local_now = moment.astimezone(), now.astimezone()
    except (OverflowError, OSError, ValueError):  # beyond what the system's clock can tell
        return f"{moment:%Y-%m-%d}"
    if local.date() == local_now.date():
        return f"today {local:%H:%M}"
    if local.date() == local_now.date() - timedelta(days=1):
        return f"yesterday {local:%H:%M}"
    return f"{local:%Y-%m-%d}"
