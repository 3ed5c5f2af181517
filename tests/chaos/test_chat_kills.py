"""A chat killed with SIGKILL at random instants: a census of all messages, none lost, none given twice.

Twenty kills in `make test`, two hundred in `make chaos`. The platform is a model of a message service: what
was not confirmed is delivered again, under the same id.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from pathlib import Path

import pytest

from laneway.doors.chat.output_log import decoded
from laneway.doors.chat.outputs import InputReceipt, Told, TurnBegan, TurnEnded
from laneway.doors.chat.restoring import continued_id, own_turn
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database
from tests.chaos.talker import GIVEN, PLACE

ROUNDS = 200 if os.environ.get("LANEWAY_CHAOS") else 12
MESSAGES = 6
"""In each round."""
FORMS = ("{}", "/codex {}", "/queue {}", "/steer {}", "/queue /codex {}")


class Service:
    """A message service: it delivers what was not confirmed once more."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.chance = chance
        self.sent: dict[str, str] = {}
        self.confirmed: set[str] = set()
        self.process: Process | None = None

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.chaos.talker", str(self.folder), stdin=PIPE, stdout=PIPE
        )
        assert await self.line() == "up"
        for message_id in [each for each in self.sent if each not in self.confirmed]:
            self.write(f"{message_id} {self.sent[message_id]}")

    async def line(self) -> str:
        assert self.process is not None
        assert self.process.stdout is not None
        return (await self.process.stdout.readline()).decode().rstrip("\n")

    def write(self, line: str) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    def send(self, count: int) -> None:
        for _ in range(count):
            message_id = f"m{len(self.sent) + 1}"
            form = "/stop" if self.chance.random() < 0.03 else self.chance.choice(FORMS)
            self.sent[message_id] = form.format(message_id)
            self.write(f"{message_id} {self.sent[message_id]}")

    async def confirm(self, count: int) -> None:
        """Read so many lines."""
        for _ in range(count):
            self.heard(await self.line())

    def heard(self, line: str) -> None:
        word, _, message_id = line.partition(" ")
        if word == "taken":
            self.confirmed.add(message_id)

    async def kill(self) -> None:
        """At an instant of chance; what it had said before is heard."""
        assert self.process is not None
        await asyncio.sleep(self.chance.random() * 0.03)
        self.process.send_signal(signal.SIGKILL)
        assert self.process.stdout is not None
        for line in (await self.process.stdout.read()).decode().splitlines():
            self.heard(line)
        await self.process.wait()


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_no_message_is_lost_and_none_is_given_to_a_lane_twice(tmp_path: Path) -> None:
    """After every kill it goes on by itself; at the end each message has one fate, and it was told."""
    seed = random.randrange(2**32)
    service = Service(tmp_path, random.Random(seed))
    async with asyncio.timeout(1700):
        for _ in range(ROUNDS):
            await service.start()
            service.send(MESSAGES)
            await service.confirm(service.chance.randrange(MESSAGES))
            await service.kill()
        await service.start()
        service.write("end")
        while (line := await service.line()) != "quiet":
            service.heard(line)
        assert service.process is not None
        assert service.process.stdin is not None
        service.process.stdin.close()
        await service.process.wait()
    assert service.confirmed == set(service.sent)
    census(service, f"seed {seed}")


def census(service: Service, where: str) -> None:
    given = Counter((service.folder / GIVEN).read_text().split())
    locks = ConversationLockFiles(service.folder / "conversations")
    with Database(service.folder / "laneway.db") as database:
        store = StoredConversations(database, locks)
        conversation_id = store.place(PLACE.key)
        assert conversation_id is not None
        inputs = store.inputs(conversation_id, ("waiting", "begun", "accepted", "done", "void"))
        shown = [decoded(each) for each in store.outputs(conversation_id, 0, 1_000_000)]
    outputs = [each.output for each in shown if each is not None]
    assert [each.number for each in shown if each is not None] == list(range(1, len(shown) + 1)), where
    assert sorted(each.message_id for each in inputs) == sorted(service.sent), where
    assert {each.state for each in inputs} <= {"done", "void"}, where
    began = [each.ticket for each in outputs if isinstance(each, TurnBegan)]
    ended = [each.ticket for each in outputs if isinstance(each, TurnEnded)]
    assert max(Counter(ended).values()) == 1, where
    assert set(ended) <= set(began), where
    told = {
        continued_id(button.data) for each in outputs if isinstance(each, Told) for button in each.buttons
    }
    known_ends = {*ended, *(own_turn(each) for each in told if each is not None)}
    receipts = [each for each in outputs if isinstance(each, InputReceipt)]
    over = {each.input_id for each in receipts if each.kind in ("refused", "done")}
    for record in inputs:
        text = service.sent[record.message_id]
        fate = (where, record.message_id, text, record.state, record.lane)
        assert given[record.message_id] <= 1, fate
        tickets = {record.ticket, own_turn(record.input_id)}
        assert tickets & known_ends or record.input_id in over, fate
        if text != "/stop" and record.state == "done":
            assert given[record.message_id] == 1, fate
    assert sum(given.values()) > len(inputs) // 8, "the kills left nothing to do"
