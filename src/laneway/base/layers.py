"""What one place says about settings, before places are merged.

Values only: `settings` makes them, `vetting` takes from them what a repository may not say.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from laneway.base.schema import Ignored, Keys, Source
    from laneway.base.trust import Fingerprint

Standing: TypeAlias = Literal["asks for nothing", "trusted", "changed", "not trusted"]


class Found(msgspec.Struct, frozen=True):
    keys: Keys
    value: Any
    source: Source


class Layer(msgspec.Struct, frozen=True):
    """The lowest first, so that the last of a key holds."""

    found: list[Found] = []
    ignored: list[Ignored] = []


class RepoFile(msgspec.Struct, frozen=True):
    """A settings file of a repository: what in it needs trust, and whether it is trusted as it is now."""

    path: Path
    root: Path
    """The repository that trust is given to; real, no links."""
    asks: tuple[Found, ...]
    """Every setting in it that can need trust, whether or not its value does now."""
    standing: Standing
    before: dict[str, Fingerprint]
    """What was trusted last, by key."""
