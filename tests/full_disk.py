"""Fills the disk of a folder, for tests on a small disk of their own."""

from __future__ import annotations

from pathlib import Path


def fill(filler: Path) -> None:
    """Write this file until not one more byte fits."""
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
