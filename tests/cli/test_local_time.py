"""Times as people say them."""

from __future__ import annotations

from datetime import datetime, timedelta

from laneway.cli.local_time import when


def test_days_are_named_while_they_are_near() -> None:
    """In local time; beyond the clock's range there is a date still."""
    now = datetime(2026, 11, 18, 9, 30).astimezone()
    assert when(now - timedelta(hours=9), now) == "today 00:30"
    assert when(now - timedelta(hours=10), now) == "yesterday 23:30"
    assert when(now - timedelta(days=2), now) == "2026-11-16"
    assert when(None, now) == ""
    assert when(datetime.min, now).endswith("-01-01")
