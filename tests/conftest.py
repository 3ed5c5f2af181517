"""What all tests share: nothing that hides what a test does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # Throw-away homes lie outside the system's temp folder (Codex warns otherwise), and beside no user's own.
    if "XDG_CACHE_HOME" not in os.environ:
        os.environ["XDG_CACHE_HOME"] = str(Path(__file__).resolve().parent.parent / ".stamps" / "test-cache")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Full chaos and foreign programs run only when asked for; what is left out is counted aloud."""
    for item in items:
        if "peers" in item.keywords and "LANEWAY_PEERS" not in os.environ:
            item.add_marker(pytest.mark.skip(reason="needs `make test-peers`"))
