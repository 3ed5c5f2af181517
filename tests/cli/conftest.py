"""A short folder for sockets."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def run() -> Iterator[Path]:
    """pytest's own folders are too deep for a socket's path."""
    with tempfile.TemporaryDirectory(prefix="lw") as folder:
        yield Path(folder)
