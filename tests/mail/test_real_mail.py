"""Mail on the real Codex: bursts, steering, an order to end, and kill -9 while mail is on its way."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.base.clock import LoopClock
from laneway.core.hub import Hub
from laneway.core.model import Event, Text, TurnStarted
from laneway.core.named.opening import Opening
from laneway.core.named.session import NamedSession
from laneway.core.named.sessions import NamedSessions
from laneway.mail.delivery import Rules
from laneway.mail.membership import Membership
from laneway.mail.post import Post
from laneway.mail.postman import Orders, Postman
from laneway.mail.teams import TeamChoice
from laneway.store.records import StoreRecords
from laneway.store.store import Store
from laneway.testing.clock import HandClock
from laneway.testing.processes import wait_gone
from tests.codex.support import ME, Stage, first, real
from tests.core.support import until
from tests.mail.box import found
from tests.mail.postman_support import TEAM, PostmanStage
from tests.mail.test_envelope import opened
from tests.mail.test_postman_end import order


class RealPostmanStage(PostmanStage):
    """The same, with a Codex that has its own mind. Only the postman's clock is in the test's hand."""

    def __init__(self, sessions: NamedSessions, codex: Stage, clock: HandClock, *rest: Any) -> None:
        super().__init__(None, *rest)  # type: ignore[arg-type]
        self.sessions = sessions
        self.codex = codex
        self.clock = clock

    async def session(self) -> NamedSession:
        named = await self.sessions.open(ME, Opening(spec=self.codex.spec(), identity="codex"))
        await until(lambda: "codex" in self.members())
        return named

    def prompts(self) -> list[list[str]]:
        """The texts of every mail turn that the model has seen, in their order."""
        texts: dict[str, None] = {}
        for request in self.codex.requests:
            for item in request["input"]:
                if item["type"] == "message" and item["role"] == "user":
                    texts.update(dict.fromkeys(part["text"] for part in item["content"]))
        return [
            [text for _, text, _ in opened(each)] for each in texts if each.startswith("You have team mail")
        ]

    async def known(self, named: NamedSession) -> str:
        """All that Codex knows by now, as it tells the model."""
        await self.sessions.say(named, "%say yes").result()
        return str(self.codex.requests[-1]["input"])


@asynccontextmanager
async def real_postman_stage(root: Path, **rules: Any) -> AsyncIterator[RealPostmanStage]:
    places = found(root, team=TEAM)
    async with real() as codex:
        hub = Hub(codex.rehearsal.engine, LoopClock())
        records = StoreRecords(Store(root / "state", TEAM))
        async with NamedSessions(hub, records, LoopClock(), restart="always", summaries=False) as sessions:
            clock, post = HandClock(), Post(places)
            membership = Membership(places, TeamChoice(TEAM, "said"))
            async with Postman(sessions, clock, membership, post, Orders(rules=Rules(**rules))) as postman:
                yield RealPostmanStage(sessions, codex, clock, places, postman, post)


async def test_a_burst_of_fifteen_is_two_turns_and_codex_knows_all_of_it(tmp_path: Path) -> None:
    """Ten and five, by themselves, one after the other; marked as read when they are in the thread."""
    async with real_postman_stage(tmp_path) as here:
        codex = await here.session()
        said = [f"message {number}" for number in range(15)]
        here.write(*said)
        await here.marked()
        await until(lambda: codex.state == "idle")
        assert here.prompts() == [said[:10], said[10:]]
        assert here.postman.metrics.delivered == 15


@pytest.mark.parametrize("when", ["asked", "begun"])
@pytest.mark.covers("FR-8.13")
async def test_killed_while_mail_is_on_its_way_codex_gets_it_all_the_same(tmp_path: Path, when: str) -> None:
    """kill -9 between `turn/start` and the recording of its input: unread until then; never lost."""
    async with real_postman_stage(tmp_path) as here:
        codex = await here.session()
        await here.sessions.say(codex, "%say remember the milk").result()
        pid = here.sessions.status().child_pid
        assert pid is not None
        if when == "asked":
            os.kill(pid, signal.SIGSTOP)  # it is asked and cannot answer
            here.write("the letter")
            await until(lambda: codex.state == "busy")
            await here.quiet()
            assert here.unread() == ["the letter"]
            os.kill(pid, signal.SIGKILL)
        else:
            codex.session.attach(Killer(pid))
            here.write("the letter")
        await until(lambda: here.sessions.status().child_ended)
        await until(lambda: codex.state == "idle")
        await here.quiet()
        here.clock.advance(2.1)
        await here.marked()
        known = await here.known(codex)
        assert "remember the milk" in known
        assert "the letter" in known
        if when == "asked":
            # It never heard of the turn, so that the next Codex is asked for the same one.
            assert here.postman.metrics.redelivered == 0
            assert known.count("the letter") == 1
        await wait_gone(pid)


class Killer:
    """Kills Codex in the instant in which it says that a turn has begun."""

    lost = 0

    def __init__(self, pid: int) -> None:
        self._pid: int | None = pid

    def push(self, event: Event) -> None:
        if type(event) is TurnStarted and self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
            self._pid = None

    def close(self) -> None:
        pass


async def test_urgent_mail_reaches_the_running_turn_of_the_real_codex(tmp_path: Path) -> None:
    """It is in the same turn, and read once that has it."""
    async with real_postman_stage(tmp_path, may_steer=True) as here:
        codex = await here.session()
        turn = here.sessions.say(
            codex, "\n".join(["%stream 20 words over 1 seconds", "%run true", "%say old plan"])
        )
        await first(turn, Text)
        here.write("%say new plan", priority="urgent")
        result = await turn.result()
        assert result.text == "new plan"
        await here.marked()
        assert (here.postman.metrics.steers, here.postman.metrics.turns) == (1, 0)


async def test_a_leads_order_ends_a_session_of_the_real_codex(tmp_path: Path) -> None:
    """Closed as by a client: it can be resumed, and reads then what was written meanwhile."""
    async with real_postman_stage(tmp_path) as here:
        codex = await here.session()
        await here.sessions.say(codex, "%say remember the milk").result()
        here.write(order())
        await until(lambda: here.members() == ["team-lead"])
        assert [each["from"] for each in here.disk("team-lead")] == ["codex"]
        here.write("while you were away")
        again = await here.sessions.resume(ME, agent_id=codex.agent_id)
        await here.marked()
        await until(lambda: again.state == "idle")
        assert here.prompts() == [["while you were away"]]
        assert "remember the milk" in await here.known(again)
