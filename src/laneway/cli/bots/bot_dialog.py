"""What a person is told and asked while a bot is set up; with `--json` all of it is on standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from laneway.base.errors import UsageError
from laneway.cli.confirming import confirm
from laneway.terminal.prompting.keyboard import Keyboard, find_keyboard


class BotDialog:
    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json
        self._keyboard: Keyboard | None = None if is_json else find_keyboard()

    @property
    def can_ask(self) -> bool:
        return self._keyboard is not None

    def say(self, line: str) -> None:
        print(line, file=sys.stderr if self._is_json else sys.stdout, flush=True)

    async def hidden(self, prompt: str) -> str:
        """What is typed, without an echo; empty for Enter alone. Raises `UsageError` at the end of input."""
        assert self._keyboard is not None, "there is nobody to ask"
        typed = await self._keyboard.read_line(prompt, is_hidden=True)
        if typed is None:
            raise UsageError("No token was given: nothing was changed.")
        return typed

    async def agrees(self, question: str) -> bool:
        assert self._keyboard is not None, "there is nobody to ask"
        return await confirm(self._keyboard, question)

    def result(self, result: msgspec.Struct, lines: Sequence[str]) -> None:
        if self._is_json:
            sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
            return
        for line in lines:
            print(line)
