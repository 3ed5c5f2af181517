"""The platforms of `laneway chat` by name: what each needs, and what makes it.

Nothing of a platform is imported before somebody asks for it. A new platform is one line in `PLATFORMS`
and a function that makes it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from laneway.base.errors import UsageError
from laneway.base.installed import installed_how

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from laneway.base.settings import Settings
    from laneway.core.conversations import ConversationStore
    from laneway.doors.chat.platform import ChatPlatform
    from laneway.doors.chat.platforms.bots.pictures import DiffPictures
    from laneway.doors.chat.platforms.terminal.platform import TerminalInterrupts
    from laneway.doors.chat.ports import ChatCommand
    from laneway.doors.page_parts import PagePart

TERMINAL = "terminal"
"""What is run if nothing else is asked for."""


class PlatformContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a platform may be made of. Its settings are among the settings, its secrets in the environment."""

    settings: Settings
    cwd: Path
    store: ConversationStore
    environment: MutableMapping[str, str]
    """Whoever reads a token removes it: what we start must not see it."""
    pictures: DiffPictures | None = None
    """What draws the changes of turns, for all bots the same."""
    resume: str | None = None
    """For the terminal: the conversation to go on with; empty for the latest of this folder."""
    is_rehearsal: bool = False
    signals: TerminalInterrupts | None = None
    commands: tuple[ChatCommand, ...] = ()
    """Those of lanes and of conversations, for the lists that services keep."""


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
        is_rehearsal=context.is_rehearsal,
        interrupts=context.signals,
    )


def _web(context: PlatformContext) -> ChatPlatform:
    from laneway.app.page import PageServer, uploads_folder
    from laneway.doors.chat.platforms.web.platform import WebPlatform

    settings, cwd = context.settings, context.cwd

    def panels() -> AbstractAsyncContextManager[Sequence[PagePart]]:
        from laneway.app.console_parts import console_parts
        from laneway.app.options import CodexChoice

        return console_parts(settings, CodexChoice(configured_bin=settings.codex_bin), cwd=cwd)

    # A rehearsal stays apart from what really runs here.
    further = None if context.is_rehearsal else panels
    return WebPlatform(PageServer(settings, further), uploads_folder(), cwd=cwd)


def _telegram(context: PlatformContext) -> ChatPlatform:
    from laneway.app.bots import SoleBot, access_of, bot_locks, files_folder, token_of
    from laneway.doors.chat.platforms.bots.runtime import BotRuntime
    from laneway.doors.chat.platforms.telegram.api import API_URL
    from laneway.doors.chat.platforms.telegram.platform import TelegramOptions, TelegramPlatform

    settings = context.settings
    options = TelegramOptions(
        token=token_of("telegram", settings, context.environment),
        access=access_of("telegram", settings),
        files=files_folder("telegram"),
        commands=context.commands,
        api_url=settings.chat_telegram_api_url or API_URL,
        pictures=context.pictures,
    )
    return SoleBot(TelegramPlatform(options, BotRuntime(context.store)), options.token, bot_locks())


def _discord(context: PlatformContext) -> ChatPlatform:
    from laneway.app.bots import SoleBot, access_of, bot_locks, files_folder, token_of
    from laneway.doors.chat.platforms.bots.runtime import BotRuntime
    from laneway.doors.chat.platforms.discord.gateway import API_URL, GATEWAY_URL
    from laneway.doors.chat.platforms.discord.platform import DiscordOptions, DiscordPlatform

    settings = context.settings
    options = DiscordOptions(
        token=token_of("discord", settings, context.environment),
        access=access_of("discord", settings),
        files=files_folder("discord"),
        commands=context.commands,
        api_url=settings.chat_discord_api_url or API_URL,
        gateway_url=settings.chat_discord_gateway_url or GATEWAY_URL,
        pictures=context.pictures,
    )
    return SoleBot(DiscordPlatform(options, BotRuntime(context.store)), options.token, bot_locks())


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
    "telegram": PlatformKind(
        make=_telegram,
        description="a bot of yours on Telegram",
        extra="telegram",
        modules=("aiohttp",),
    ),
    "discord": PlatformKind(
        make=_discord,
        description="a bot of yours on Discord",
        extra="discord",
        modules=("discord", "aiohttp"),
    ),
}


def missing_modules(kind: PlatformKind) -> list[str]:
    """The packages that a platform needs and that are not installed."""
    return [module for module in kind.modules if importlib.util.find_spec(module) is None]


def require(names: Sequence[str], kinds: Mapping[str, PlatformKind] = PLATFORMS) -> None:
    """Raises `UsageError` for a platform whose packages are missing, with the command that brings them."""
    for name in names:
        kind = kinds[name]
        missing = missing_modules(kind)
        if missing and kind.needs_modules():
            raise UsageError(
                f"The platform {name} needs the extra laneway[{kind.extra}], which brings "
                f"{' and '.join(missing)}: {installed_how().adding(kind.extra)}"
            )


def make_platforms(names: Sequence[str], context: PlatformContext) -> list[ChatPlatform]:
    """Each once, in this order."""
    return [PLATFORMS[name].make(context) for name in dict.fromkeys(names)]
