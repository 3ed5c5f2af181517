"""Points in time as people at this machine say them. Pure, but for the time zone."""

from __future__ import annotations

from datetime import datetime, timedelta


def when(moment: datetime | None, now: datetime) -> str:
    """`today 14:03`, `yesterday 09:10`, else the date; in local time. Nothing for no time."""
    if moment is None:
        return ""
    try:
        local, here = moment.astimezone(), now.astimezone()
    except (OverflowError, OSError, ValueError):  # beyond what the system's clock can tell
        return f"{moment:%Y-%m-%d}"
    if local.date() == here.date():
        return f"today {local:%H:%M}"
    if local.date() == here.date() - timedelta(days=1):
        return f"yesterday {local:%H:%M}"
    return f"{local:%Y-%m-%d}"
