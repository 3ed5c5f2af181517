"""Names for things that we make: short, unique, sayable."""

from __future__ import annotations

import os


def new_id(prefix: str) -> str:
    """`agent-7f3a…`: 64 random bits behind a word that tells what it names."""
    return f"{prefix}-{os.urandom(8).hex()}"  # `secrets` costs two milliseconds of start-up
