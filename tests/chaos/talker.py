"""A conversation with scripted lanes, for tests that kill it: messages on standard input, a census on disk.

`talk(folder, commands, report)` takes one message for each line `ID TEXT`, says `taken ID` once it is stored,
and writes down what its lanes are given before they do anything with it. `end` says `quiet` once nothing
runs and nothing waits.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path
from typing import TextIO

from laneway.doors.chat.messages import Incoming, Place, Sender
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.outputs import Shown
from laneway.doors.chat.service import ChatService
from laneway.lanes.contract import LaneTurn
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn

PLACE = Place("terminal", "chaos")
ANNA = Sender(platform="terminal", user_id="anna", name="Anna", is_owner=True)
GIVEN = "given.txt"


class Talker:
    def __init__(self, folder: Path, report: TextIO) -> None:
        self._given = os.open(folder / GIVEN, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._report = report
        self._chance = random.Random()

    async def play(self, turn: ScriptedTurn) -> None:
        """Some work, of which every part is an instant at which it can be killed."""
        self.note(turn.given.text)
        for number in range(self._chance.randrange(6)):
            if number == 1:
                turn.accept()
            turn.text(f"part {number} ")
            await asyncio.sleep(0.001 * self._chance.randrange(4))
            if turn.is_done:
                return
        turn.done("that is all")

    def on_steer(self, words: LaneTurn) -> None:
        """Its lane counts them as recorded next: noted later, a kill in between would look like a loss."""
        self.note(words.text)

    def note(self, text: str) -> None:
        os.write(self._given, f"{text}\n".encode())

    def say(self, words: str) -> None:
        self._report.write(f"{words}\n")
        self._report.flush()

    # ── the view ───────────────────────────────────────────────────────────

    def show(self, shown: Shown) -> None:
        """What is stored is what counts."""

    def on_moved(self, conversation_id: str) -> None:
        raise AssertionError("nobody moves it")


async def talk(folder: Path, commands: asyncio.StreamReader, report: TextIO) -> None:
    talker = Talker(folder, report)
    locks = ConversationLockFiles(folder / "conversations")
    with Database(folder / "laneway.db") as database:
        store = StoredConversations(database, locks)
        options = ChatOptions(cwd=folder)
        lanes = ScriptedLanes(play=talker.play, on_steer=talker.on_steer)
        async with ChatService(lanes, store, locks, options) as chat:
            state = await chat.join(PLACE, talker)
            talker.say("up")
            while line := (await commands.readline()).decode().rstrip("\n"):
                message_id, _, text = line.partition(" ")
                if message_id == "end":
                    await chat.wait_ready(state.record.conversation_id)
                    talker.say("quiet")
                    continue
                message = Incoming(place=PLACE, message_id=message_id, sender=ANNA, text=text)
                await chat.take(message)
                talker.say(f"taken {message_id}")


async def main(folder: Path, commands: int, report: TextIO) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(commands, "rb")
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    await talk(folder, reader, report)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), 0, sys.stdout))
