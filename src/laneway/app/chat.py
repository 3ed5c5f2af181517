"""One process of `laneway chat`: its lanes, its conversations, and the platforms that show them.

What is opened first is closed last: store, lanes, conversations, platforms. The platforms
run side by side: the first that ends ends the process, and so does a signal; a second signal ends it at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from laneway.app.bots import BOTS
from laneway.app.chat_lanes import ChatLanes, ChosenEngines
from laneway.app.chat_platforms import TERMINAL, PlatformContext, make_platforms, require
from laneway.app.chat_store import OpenConversations, open_conversations
from laneway.app.diff_pictures import diff_pictures
from laneway.base.errors import UsageError
from laneway.base.plain import quoted
from laneway.base.settings import Settings
from laneway.doors.chat.options import Busy, ChatOptions
from laneway.doors.chat.platform import ChatPlatform
from laneway.doors.chat.ports import Chat, ChatCommand
from laneway.doors.chat.routing import CONTROLS
from laneway.doors.chat.service import ChatService

STOPPED = 130
"""The exit code after a signal."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What `laneway chat` was asked for."""

    chosen: ChosenEngines
    settings: Settings
    cwd: Path
    platforms: tuple[str, ...]
    lane: str | None = None
    """The lane that leads new conversations; none for the setting's."""
    resume: str | None = None
    """The conversation that the terminal goes on with; empty for the latest of the folder."""


def chat_options(settings: Settings, cwd: Path) -> ChatOptions:
    busy: Busy = settings.chat_busy  # type: ignore[assignment]  # one of the three, by its kind
    return ChatOptions(
        cwd=cwd,
        default_lane=settings.chat_default_lane,
        busy=busy,
        question_s=settings.chat_question_secs,
        warn_s=settings.chat_warn_secs,
        silent_s=settings.chat_silence_secs,
        command_silent_s=settings.chat_command_secs,
        image_s=settings.chat_image_secs,
        catch_up_s=settings.chat_catch_up_secs,
    )


async def serve(request: ChatRequest) -> int:
    """Run the platforms until the user leaves; returns the exit code."""
    if TERMINAL in request.platforms:
        from laneway.doors.chat.platforms.terminal.platform import check_streams

        check_streams()
    require(request.platforms)
    with Signals() as signals:  # until all is closed: a second signal need not wait for that
        async with open_chat(request) as (chat, opened, commands):
            context = PlatformContext(
                settings=request.settings,
                cwd=request.cwd,
                store=opened.store,
                environment=os.environ,
                resume=request.resume,
                is_rehearsal=request.chosen.is_rehearsal,
                signals=signals,
                commands=commands,
                pictures=diff_pictures(request.settings),
            )
            return await run_platforms(make_platforms(request.platforms, context), chat, signals.received)


@asynccontextmanager
async def open_chat(
    request: ChatRequest,
) -> AsyncIterator[tuple[Chat, OpenConversations, tuple[ChatCommand, ...]]]:
    """The conversations of a process, and their commands. All lanes have ended when this returns."""
    async with AsyncExitStack() as stack:
        path = None
        if request.chosen.is_rehearsal:
            from laneway.rehearsal.home import held_folder  # apart from real conversations, and gone with us

            path = stack.enter_context(held_folder()) / "laneway.db"
        opened = await stack.enter_async_context(
            open_conversations(request.settings.chat_keep_days, path=path)
        )
        is_remote = not set(request.platforms).isdisjoint(BOTS)
        lanes = await stack.enter_async_context(
            ChatLanes(request.chosen, request.settings, is_remote=is_remote)
        )
        options = chat_options(request.settings, request.cwd)
        if request.lane is not None:
            options = replace(options, default_lane=_lane_named(request.lane, lanes))
        chat = await stack.enter_async_context(
            ChatService(lanes, opened.store, opened.locks, options, reports=opened.reports)
        )
        controls = (ChatCommand(name, about) for name, about in CONTROLS.items())
        yield chat, opened, (*lanes.commands, *controls)


def _lane_named(name: str, lanes: ChatLanes) -> str:
    if name not in lanes.names:
        why = "".join(f"\n  {problem}" for problem in lanes.problems)
        raise UsageError(f"There is no lane {quoted(name)}: there are {', '.join(lanes.names)}.{why}")
    return name


async def run_platforms(platforms: Sequence[ChatPlatform], chat: Chat, stop: asyncio.Event) -> int:
    """Run them side by side. The first that ends decides the exit code; the others are cancelled."""
    running = {asyncio.create_task(platform.run(chat), name=platform.name) for platform in platforms}
    stopping = asyncio.create_task(stop.wait(), name="stop")
    try:
        done, _ = await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        codes = [task.result() for task in running if task in done]
        return max(codes) if codes else STOPPED
    finally:
        for task in (*running, stopping):
            task.cancel()
        await asyncio.gather(*running, stopping, return_exceptions=True)


class Signals:
    """The first signal sets `received`; the second ends the process: guardians end what we started.

    A terminal may take the first Ctrl-C for itself.
    """

    def __init__(self) -> None:
        self.received = asyncio.Event()
        self._at_forced_exit: list[Callable[[], None]] = []
        self._handlers: list[Callable[[], bool]] = []

    def on_interrupt(self, handler: Callable[[], bool]) -> None:
        self._handlers.append(handler)

    def at_forced_exit(self, work: Callable[[], None]) -> None:
        self._at_forced_exit.append(work)

    def __enter__(self) -> Signals:
        for number in SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal, number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGINT and any(handler() for handler in self._handlers):
            return
        if not self.received.is_set():
            self.received.set()
            return
        for work in self._at_forced_exit:
            work()
        os._exit(STOPPED)
