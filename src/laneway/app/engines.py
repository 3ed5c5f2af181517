"""The engines that Laneway's programs offer besides Codex: by their keys, each with what makes it.

Imports little, because servers look for the engines as they start: an engine's package is imported when
a session first asks for it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from laneway.app.options import ClaudeChoice
from laneway.base.errors import BinaryError
from laneway.claude import locate

if TYPE_CHECKING:
    from laneway.core.engines import MakeEngine
    from laneway.core.ports import Engine

CLAUDE_KEY = "claude"


def present(choice: ClaudeChoice) -> ClaudeChoice | None:
    """The choice, if there is such a Claude Code. Raises `BinaryError` for one that is named and wrong."""
    try:
        locate.find(choice.claude_bin, configured=choice.configured_bin)
    except BinaryError:
        if choice.claude_bin or choice.configured_bin or os.environ.get(locate.ENVIRONMENT_KEY):
            raise
        return None
    return choice


@asynccontextmanager
async def others(claude: ClaudeChoice | None) -> AsyncIterator[Mapping[str, MakeEngine]]:
    """What makes the engines besides Codex. Whoever gets an engine closes it."""
    if claude is None:
        yield {}
    elif claude.is_rehearsal:
        from laneway.app.claude import claude_place  # with a model and a home that live as long as the block

        async with claude_place(claude) as place:
            yield {CLAUDE_KEY: lambda: place.engine}
    else:

        def make() -> Engine:
            from laneway.app.claude import make_claude  # not before a session asks for it

            return make_claude(claude)

        yield {CLAUDE_KEY: make}
