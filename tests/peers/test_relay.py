"""The engine on the real `codex mcp-server`, from the oldest that we drive to the last there was."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.base.clock import LoopClock
from laneway.base.errors import EngineRefused, RemoteError
from laneway.codex import binary
from laneway.codex.locate import Binary
from laneway.codex.relay import LAST, RelayEngine, mcp_server
from laneway.codex.relay_events import RelayScript
from laneway.core.hub import Hub
from laneway.core.model import (
    Activity,
    Answer,
    Asked,
    Diff,
    Event,
    Question,
    Text,
    TurnDone,
    TurnStarted,
    Usage,
    UserSaid,
)
from laneway.core.ports import ThreadSpec
from laneway.core.session import Session
from laneway.rehearsal.home import throwaway_home, work_beside
from laneway.rehearsal.server import ModelServer
from laneway.testing.processes import wait_gone
from laneway.wire.child import Child, Exit
from laneway.wire.frames import LineDecoder
from laneway.wire.peer import Raw
from tests.codex.support import ME, first, only, play, say
from tests.peers.test_codex_versions import codexes

OLD = [path for path in codexes() if (binary.parse_version(path) or LAST) <= LAST]

COMMAND = "echo hi; exit 3"

every_old_codex = pytest.mark.parametrize(
    "codex", OLD, ids=lambda path: binary.spell(binary.parse_version(path) or (0,))
)
pytestmark = [pytest.mark.peers, every_old_codex]


class Stage:
    """An engine on the real thing, and every byte that it said."""

    def __init__(self, engine: RelayEngine, hub: Hub, work: Path, said: list[bytes]) -> None:
        self.engine = engine
        self.hub = hub
        self.work = work
        self.said = said

    async def session(self, sandbox: str = "workspace-write") -> Session:
        spec = ThreadSpec(cwd=self.work, sandbox=sandbox, approval_policy="on-request")
        return await self.hub.start(ME, spec)


@asynccontextmanager
async def staged(codex: str) -> AsyncIterator[Stage]:
    async with asyncio.timeout(90), ModelServer() as model:
        with throwaway_home(model.base_url) as home:
            said: list[bytes] = []
            connect = mcp_server(Binary(codex, "test"), {**os.environ, "CODEX_HOME": str(home)})

            async def overheard(on_bytes: Callable[[bytes], None], on_end: Callable[[Exit], None]) -> Child:
                def both(data: bytes) -> None:
                    said.append(data)
                    on_bytes(data)

                child = await connect(both, on_end)
                assert isinstance(child, Child)
                return child

            engine = RelayEngine(overheard)
            async with Hub(engine, LoopClock()) as hub:
                yield Stage(engine, hub, work_beside(home), said)


class Params(msgspec.Struct):
    msg: Raw = Raw()


class Line(msgspec.Struct):
    method: str = ""
    params: Params = msgspec.field(default_factory=Params)


def told(said: list[bytes]) -> list[bytes]:
    """The `msg` of every `codex/event`, as it stood on the wire."""
    lines = LineDecoder().feed(b"".join(said))
    found = [msgspec.json.decode(line, type=Line) for line in lines]
    return [bytes(line.params.msg) for line in found if line.method == "codex/event"]


class Everything:
    """A reader of a session that renders what it hears."""

    lost = 0

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self._script = RelayScript()

    def push(self, event: Event) -> None:
        self.bodies += [bytes(body) for body in self._script.of(event)]

    def close(self) -> None:
        pass


async def test_turns_are_told_in_the_words_of_the_core_and_events_are_handed_on_untouched(codex: str) -> None:
    """A command, an edit, an answer; then a reply. Every event of the child once, in order, byte for byte."""
    async with staged(codex) as stage:
        assert stage.engine.pid is None
        session = await stage.session()
        reader = Everything()
        session.attach(reader)
        events, result = await play(session, f"%run {COMMAND}", "%patch a.txt x", "%say Done.")
        assert (result.status, result.text) == ("completed", "Done.")
        command, edit = (a for a in only(events, Activity) if a.status != "running")
        # Not its output: of a command that is over at once Codex itself may lose it.
        shown = (command.kind, command.title, command.exit_code, command.cwd)
        assert shown == ("command", COMMAND, 3, str(stage.work))
        assert (edit.kind, edit.status, edit.changes[0].kind) == ("edit", "completed", "add")
        assert only(events, Usage)[-1].total.total > 0
        assert "a.txt" in only(events, Diff)[-1].diff
        assert len(only(events, TurnStarted)) == len(only(events, TurnDone)) == 1
        events, result = await play(session, "%stream 5 words")
        assert "".join(event.text for event in only(events, Text)) == result.text != ""
        assert only(events, UserSaid)[0].text == "%stream 5 words"
        assert reader.bodies == told(stage.said)
        assert len(reader.bodies) > 20


def choosing(grants: str) -> Callable[[Question], Answer]:
    return lambda question: Answer(
        choice_id=next(c.choice_id for c in question.choices if c.grants == grants)
    )


async def test_an_approval_grants_once_and_a_decline_grants_nothing(codex: str) -> None:
    """Both as the child understands them; the turn goes on after either."""
    async with staged(codex) as stage:
        session = await stage.session("read-only")
        events, result = await play(session, "%patch yes.txt x", "%say Asked.", decide=choosing("once"))
        asked = only(events, Asked)[0].question
        assert [Path(change.path).name for change in asked.changes] == ["yes.txt"]
        assert (stage.work / "yes.txt").read_text() == "x\n"
        assert result.status == "completed"
        _, result = await play(session, "%patch no.txt x", "%say Asked.", decide=choosing("nothing"))
        assert not (stage.work / "no.txt").exists()
        assert result.status == "completed"
        _, result = await play(session, "%patch no.txt x", "%say Asked.", decide=choosing("stop"))
        assert result.status == "interrupted"


async def test_an_interrupted_thread_works_on_and_a_failed_one_says_why_it_cannot(codex: str) -> None:
    """And the process is gone at the end, though it is deaf to the end of its input by then."""
    async with staged(codex) as stage:
        session, doomed = await stage.session(), await stage.session()
        turn = say(session, "%stream 40 words over 20 seconds")
        await first(turn, Text)
        turn.cancel()
        assert (await turn.result()).status == "interrupted"
        for words in ("One.", "Two.", "Three."):
            events, result = await play(session, f"%run echo {words}", f"%say {words}")
            assert (result.text, len(only(events, TurnDone))) == (words, 1)
        assert (await play(session, "%fail 500 Out."))[1].status == "failed"
        assert (await play(session, "%say Still here."))[1].text == "Still here."
        failure = (await play(doomed, "%fail 500 Out."))[1].failure
        assert failure is not None
        assert failure.kind == "internal_server_error"
        with pytest.raises(EngineRefused, match="start a new session"):
            await say(doomed, "%say Hello.").result()
        pid = stage.engine.pid
    assert pid is not None
    await wait_gone(pid)


async def test_a_killed_child_is_told_to_everybody_once(codex: str) -> None:
    """In mid-turn, with the signal's name."""
    async with staged(codex) as stage:
        session = await stage.session()
        turn = say(session, "%stream 40 words over 20 seconds")
        await first(turn, Text)
        assert stage.engine.pid is not None
        os.kill(stage.engine.pid, signal.SIGKILL)
        failure = (await turn.result()).failure
        assert failure is not None
        assert failure.kind == "engine_lost"
        # The last that this child said is that it is deprecated.
        assert failure.message.split("; it said: ")[0] == "Codex ended unexpectedly: killed by SIGKILL"
        assert stage.engine.ended == "killed by SIGKILL"


async def test_unknown_requests_reach_the_child_and_its_answer_comes_back(codex: str) -> None:
    """Its own error, whole; and what it does know."""
    async with staged(codex) as stage:
        with pytest.raises(RemoteError) as refused:
            await stage.engine.forward("nonsense/method", Raw(b'{"a" : 1.0}'))
        error = refused.value
        assert (error.code, error.data) == (-32601, {"method": "nonsense/method"})
        tools: Any = msgspec.json.decode(await stage.engine.forward("tools/list", Raw(b"{}")))
        assert [tool["name"] for tool in tools["tools"]] == ["codex", "codex-reply"]


async def test_a_config_that_codex_refuses_is_told_in_its_words(codex: str) -> None:
    """Before there is a thread."""
    async with staged(codex) as stage:
        spec = ThreadSpec(cwd=stage.work, config={"model_reasoning_effort": 5})
        with pytest.raises(EngineRefused, match="model_reasoning_effort"):
            await say(await stage.hub.start(ME, spec), "%say Hello.").result()
