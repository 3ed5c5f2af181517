"""Asks the person at the terminal a yes-or-no question, before something is removed or trusted."""

from __future__ import annotations

import asyncio

from laneway.terminal.prompting.asking import SETTLE_S
from laneway.terminal.prompting.keyboard import Keyboard

YES, NO = ("y", "yes"), ("n", "no", "")


async def confirm(keyboard: Keyboard, question: str) -> bool:
    """Whether the answer is a clear yes. What was typed before the question was shown does not count."""
    keyboard.write(f"{question}\n")
    await asyncio.sleep(SETTLE_S)
    while True:
        typed = await keyboard.read_line("  y or n; Enter means no: ")
        if typed is None:
            keyboard.write("\n")
            return False
        if typed.lower() in YES + NO:
            return typed.lower() in YES
