"""Options of conversations: the default lane, what a message does to a lane that works, times and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

Busy: TypeAlias = Literal["interrupt", "steer", "queue"]
"""What a message does while a lane works: stop it, go into its turn, or wait for its end."""
MAX_QUEUE = 64
"""Messages that may wait in one conversation. More is a sender that has lost control."""


class ChatOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The same for all conversations of a process. Times are in seconds."""

    cwd: Path
    """The folder of a new conversation."""
    default_lane: str = "claude"
    """Leads a new conversation, if it can be used: else the next lane that can."""
    busy: Busy = "interrupt"
    question_s: float = 1800.0
    """For an answer; then the question is declined."""
    warn_s: float = 300.0
    """Without an event of the lane that works, until people are told so …"""
    silent_s: float = 600.0
    """… and until its turn is interrupted."""
    command_silent_s: float = 3600.0
    """Instead of both while it runs a command."""
    image_s: float = 600.0
    """For how long an image without words waits for its sender's next message."""
    catch_up_s: float = 3600.0
    """Input that waited for longer than this while no Laneway ran is offered, not run."""
    stop_s: float = 10.0
    """After an interrupt, for a turn to end; then it is given up, and its lane is closed."""
    max_queue: int = MAX_QUEUE
    declines: bool = False
    """Whether every question is declined at once, because nobody can answer."""
