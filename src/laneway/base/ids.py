"""Ids of sessions, turns and other things that we make: short, unique, easy to read."""

from __future__ import annotations

import os


def new_id(prefix: str) -> str:
    """`agent-7f3a…`: 64 random bits after a word that says what it names."""
    return f"{prefix}-{os.urandom(8).hex()}"  # `secrets` costs two milliseconds of start-up
