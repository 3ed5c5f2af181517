"""Everything at once, in any order: mail, clients, failures, deaths. Nothing is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from laneway.core.model import Accepted, Event
from laneway.core.named.session import NamedSession
from laneway.core.ports import TextPart
from laneway.testing.engine import HandThread
from tests.core.support import until
from tests.mail.postman_support import PostmanStage, postman_stage
from tests.mail.test_envelope import opened

STEPS = 120


class Weather:
    """Makes things happen, and keeps the books of what Codex has recorded."""

    lost = 0

    def __init__(self, here: PostmanStage, codex: NamedSession, chance: random.Random) -> None:
        self.here = here
        self.codex = codex
        self.chance = chance
        self.written: list[str] = []
        self.recorded: list[str] = []
        self.accepted: set[str | None] = set()
        codex.session.attach(self)

    # ── the books (the Reader port) ────────────────────────────────────────

    def push(self, event: Event) -> None:
        if isinstance(event, Accepted) and event.client_id not in self.accepted:
            self.accepted.add(event.client_id)
            for ticket, spec in self.thread.started:
                if ticket == event.client_id:
                    words = [part.text for part in spec.parts if isinstance(part, TextPart)][-1]
                    if words.startswith("You have team mail"):
                        self.recorded += [text for _, text, _ in opened(words)]

    def close(self) -> None:
        pass

    @property
    def thread(self) -> HandThread:
        return self.here.stage.thread(self.codex)

    # ── what can happen ────────────────────────────────────────────────────

    def mail(self) -> None:
        said = [f"letter {len(self.written) + n}" for n in range(self.chance.randint(1, 4))]
        self.written += said
        self.here.write(*said, priority=self.chance.choice(["urgent", "normal", "low"]))

    def client(self) -> None:
        self.here.stage.sessions.say(self.codex, "work")

    def record(self) -> None:
        if self.thread.turn_id:
            self.thread.accept(self.thread.started[-1][0])

    def end(self) -> None:
        if self.thread.turn_id:
            self.thread.end(self.chance.choice(["completed", "failed", "interrupted"]))

    def die(self) -> None:
        self.here.stage.engine.die()

    def wait(self) -> None:
        self.here.stage.clock.advance(self.chance.choice([0.5, 5, 60]))

    def switch(self) -> None:
        self.here.postman.set_auto(self.codex.agent_id, is_on=self.chance.random() < 0.7)

    def lose_marks(self) -> None:
        """As a program does that merges its own idea of the inbox into ours."""
        self.here.rewrite(lambda before: [{**entry, "read": False} for entry in before])

    async def blow(self) -> None:
        kinds: list[tuple[Callable[[], None], int]] = [
            (self.mail, 6),
            (self.client, 3),
            (self.record, 6),
            (self.end, 6),
            (self.wait, 4),
            (self.die, 1),
            (self.switch, 1),
            (self.lose_marks, 1),
        ]
        for _ in range(STEPS):
            self.thread.records = False
            happens = self.chance.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
            happens()
            for _ in range(self.chance.randint(0, 30)):
                await asyncio.sleep(0)

    async def calm(self) -> None:
        """Codex does its work again, and time passes."""
        self.here.postman.set_auto(self.codex.agent_id, is_on=True)
        while self.here.unread() or self.codex.state == "busy":
            self.thread.records = True
            self.record()
            self.end()
            self.here.stage.clock.advance(300)
            await self.here.quiet()


@pytest.mark.parametrize("seed", range(3))
async def test_in_any_weather_every_message_is_recorded_once_and_marked(tmp_path: Path, seed: int) -> None:
    """Within one life of ours: whatever Codex does, mail comes until it is recorded, and not after that."""
    async with postman_stage(tmp_path, turns_per_hour=10_000, stage={"restart": "always"}) as here:
        codex = await here.open()
        weather = Weather(here, codex, random.Random(seed))
        await weather.blow()
        async with asyncio.timeout(25):
            await weather.calm()
        await until(lambda: not here.unread())
        assert sorted(weather.recorded) == sorted(weather.written)
        counted = here.postman.metrics
        assert (counted.delivered, here.postman.pending()) == (len(weather.written), 0)
