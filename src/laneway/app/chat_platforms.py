"""The platforms of `laneway chat` by name: what each needs, and what makes it.

Nothing of a platform is imported before somebody asks for it. A new platform is one line in `PLATFORMS`
and a function that makes it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from laneway.base.errors import UsageError
from laneway.base.installed import installed_how

if TYPE_CHECKING:
    from laneway.base.settings import Settings
    from laneway.core.conversations import ConversationStore
    from laneway.doors.chat.platform import ChatPlatform
    from laneway.doors.chat.platforms.terminal.platform import TerminalInterrupts

TERMINAL = "terminal"
"""What is run if nothing else is asked for."""


class PlatformContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a platform may be made of. Its settings are among the settings, its secrets in the environment."""

    settings: Settings
    cwd: Path
    store: ConversationStore
    environment: MutableMapping[str, str]
    """Whoever reads a token removes it: what we start must not see it."""
    resume: str | None = None
    """For the terminal: the conversation to go on with; empty for the latest of this folder."""
    is_rehearsal: bool = False
    signals: TerminalInterrupts | None = None


class PlatformKind(msgspec.Struct, frozen=True, kw_only=True):
    make: Callable[[PlatformContext], ChatPlatform]
    description: str
    extra: str
    """The extra of ours that brings its packages."""
    modules: tuple[str, ...]
    """The packages, as they are imported."""
    needs_modules: Callable[[], bool] = lambda: True
    """Whether it needs them here and now."""


def _terminal(context: PlatformContext) -> ChatPlatform:
    from laneway.doors.chat.platforms.terminal.platform import TerminalPlatform

    return TerminalPlatform(
        context.cwd,
        resume=context.resume,
        keeps_history=not context.is_rehearsal,
        interrupts=context.signals,
    )


def _web(context: PlatformContext) -> ChatPlatform:
    from laneway.app.page import PageServer, uploads_folder
    from laneway.doors.chat.platforms.web.platform import WebPlatform

    return WebPlatform(PageServer(context.settings), uploads_folder())


def _is_interactive() -> bool:
    from laneway.doors.chat.platforms.terminal.platform import is_interactive

    return is_interactive()


PLATFORMS: dict[str, PlatformKind] = {
    TERMINAL: PlatformKind(
        make=_terminal,
        description="this terminal, or lines in a pipe",
        extra="chat",
        modules=("prompt_toolkit", "rich"),
        needs_modules=_is_interactive,
    ),
    "web": PlatformKind(
        make=_web,
        description="a page in your browser",
        extra="web",
        modules=("uvicorn", "markdown_it"),
    ),
}


def missing_modules(name: str) -> list[str]:
    """The packages that a platform needs and that are not installed."""
    return [module for module in PLATFORMS[name].modules if importlib.util.find_spec(module) is None]


def require(names: Sequence[str]) -> None:
    """Raises `UsageError` for a platform whose packages are missing, with the command that brings them."""
    for name in names:
        kind = PLATFORMS[name]
        missing = missing_modules(name)
        if missing and kind.needs_modules():
            raise UsageError(
                f"The platform {name} needs the extra laneway[{kind.extra}], which brings "
                f"{' and '.join(missing)}: {installed_how().adding(kind.extra)}"
            )


def make_platforms(names: Sequence[str], context: PlatformContext) -> list[ChatPlatform]:
    """Each once, in this order."""
    return [PLATFORMS[name].make(context) for name in dict.fromkeys(names)]
