"""The engines that Laneway's programs offer besides Codex: by their keys, each with what makes it.

An engine's package is imported when a session first asks for it, so that nobody else pays for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from laneway.base.engines import DEFAULT_BACKEND
from laneway.core.engines import NO_OTHERS, MakeEngine


def others() -> Mapping[str, MakeEngine]:
    """The engines besides Codex whose programs are on this machine."""
    return NO_OTHERS


def backends() -> tuple[str, ...]:
    """The keys of all engines on this machine, for those who list them before any is made."""
    return (DEFAULT_BACKEND, *others())
