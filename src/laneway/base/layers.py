"""Layers of settings: the values from one source, before sources are merged.

Values only: `settings` makes them, `vetting` removes what a repository may not set.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from laneway.base.setting_values import Ignored, Keys, Source
    from laneway.base.trust import Fingerprint

TrustState: TypeAlias = Literal["asks for nothing", "trusted", "changed", "not trusted"]


class FoundValue(msgspec.Struct, frozen=True):
    """One setting of one source."""

    keys: Keys
    value: Any
    source: Source


class Layer(msgspec.Struct, frozen=True):
    """The settings of one source, the weakest first: the last value of a key wins."""

    values: list[FoundValue] = []
    ignored: list[Ignored] = []


class RepoFile(msgspec.Struct, frozen=True):
    """A settings file of a repository: its settings that need trust, and whether it is trusted now."""

    path: Path
    root: Path
    """The repository that trust is given to; a real path, no links."""
    sensitive: tuple[FoundValue, ...]
    """Every setting in it that can need trust, whether or not its present value does."""
    trust_state: TrustState
    before: dict[str, Fingerprint]
    """What was trusted last, by key."""
