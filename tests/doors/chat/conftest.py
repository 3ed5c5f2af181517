"""What tests of conversations with real engines share."""

from __future__ import annotations

import pytest

from tests.own_processes import OwnProcesses


@pytest.fixture
def processes() -> OwnProcesses:
    """What this test starts."""
    return OwnProcesses()
