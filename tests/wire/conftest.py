"""No test of this ring leaves a process behind."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from laneway.wire import guardian


@pytest.fixture(autouse=True)
def nobody_left() -> Iterator[None]:
    """What a test started is gone, and reaped, when it ends."""
    before = set(guardian.descendants(os.getpid()))
    yield
    assert set(guardian.descendants(os.getpid())) <= before
