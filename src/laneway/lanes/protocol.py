"""The simple contract of a lane plugin: `LanePlugin`, and the platform, formatter and session it meets.

A class with these members and `@laneway.lanes.register_lane` is a lane. Only `command` and `run_turn` are
needed; `laneway.lanes.registry` adds what is missing. Whoever needs events, steering or resuming writes a
`laneway.lanes.contract.Lane` instead. Nothing here has an implementation.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable


@dataclass
class LaneInput:
    """What a lane is to do in one turn."""

    text: str
    """What other lanes have done since, if anything, and then the user's words."""
    image_paths: list[str] = field(default_factory=list)


class PlatformClient(Protocol):
    """Shows what a lane has to say in the conversation, on whatever platform that is."""

    async def send_message(self, text: str) -> None:
        """Show a message. The text is Markdown."""
        ...

    async def send_thinking(self, text: str) -> None:
        """Show a thought of the model, which platforms fold."""
        ...


class MessageFormatter(Protocol):
    """Makes texts for `PlatformClient`. Whatever comes from elsewhere should pass through one of these."""

    def escape(self, text: str) -> str:
        """The text as it is: nothing in it is markup."""
        ...

    def bold(self, text: str) -> str: ...

    def code(self, text: str) -> str:
        """Code within a sentence."""
        ...

    def code_block(self, text: str, language: str = "") -> str: ...


@runtime_checkable
class LanePlugin(Protocol):
    """An agent that takes turns in a conversation. It is made without arguments, once per conversation."""

    command: str
    """What users write to reach it, without the slash: `codex`."""
    usage: str
    """Shown for the command alone: `Usage: /codex <task>`."""
    description: str
    """One line, for lists."""

    async def start(self, cwd: str, platform: PlatformClient, formatter: MessageFormatter) -> None:
        """Get ready: start a process, log in. Called once, before the first turn."""
        ...

    async def run_turn(self, input: LaneInput) -> str | None:  # noqa: A002  the name is part of the contract
        """Do the task; return when it is done. A summary, if returned, is what other lanes are told.

        If it raises, the turn has failed: the lane is stopped, and the next turn starts a new one.
        """
        ...

    async def interrupt(self) -> None:
        """Ask the turn that runs to end. Ten seconds later `run_turn` is cancelled."""
        ...

    async def stop(self) -> None:
        """End everything that was started. May be called more than once."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs."""
        ...

    @property
    def wants_user_input(self) -> bool:
        """Whether the lane has asked something and waits: then the answer goes to `handle_user_input`."""
        ...

    async def handle_user_input(self, text: str) -> None:
        """Take the answer. It is empty if the user gave none."""
        ...


class LaneSession(Protocol):
    """A conversation as the functions of `laneway.lanes.dispatch` need it; any object with these members."""

    cwd: str
    lanes: dict[str, Any]
    """The lanes that were started, by command."""
    active_lane: str | None
    """The command of the lane whose turn is `current_task`."""
    current_task: asyncio.Task[Any] | None
    lane_context_prefix: str | None
    """Summaries of turns, for the next prompt of the agent that leads; who sends that sets it to none."""

    def get_platform(self) -> PlatformClient | None: ...

    def get_formatter(self) -> MessageFormatter: ...
