"""The engines that Laneway's programs offer besides Codex: by their keys, each with what makes it.

Imports little, because servers ask for the keys as they start: an engine's package is imported when a
session first asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from laneway.base.engines import DEFAULT_BACKEND

if TYPE_CHECKING:
    from laneway.core.engines import MakeEngine


def others() -> Mapping[str, MakeEngine]:
    """The engines besides Codex whose programs are on this machine."""
    return {}


def backends() -> tuple[str, ...]:
    """The keys of all engines on this machine, for those who list them before any is made."""
    return (DEFAULT_BACKEND, *others())
