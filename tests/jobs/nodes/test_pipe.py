"""The pipe to another machine: what the other side may send, and what becomes of a call when it breaks."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import NodeUnreachable, UsageError
from laneway.jobs.nodes.backoff import Backoff
from laneway.jobs.nodes.pipe import PipeNode

HOSTILE = Path(__file__).with_name("hostile.py")
SOON_S = 1.0
"""To wait for an answer that never comes."""
LONG_S = 60.0


def command(how: str) -> str:
    return shlex.join([sys.executable, "-I", "-S", str(HOSTILE), how])


@asynccontextmanager
async def node(line: str, **options: Any) -> AsyncIterator[PipeNode]:
    made = PipeNode("gpu1", line, os.environ, **({"backoff": Backoff(0.01, 0.02)} | options))
    try:
        yield made
    finally:
        await made.close()


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("dies", "its command ended (exit code 255): Permission denied (publickey)."),
        ("says goodbye", "its command ended (exit code 0)"),
        ("talks for ever", "it sent what is no message of Laneway's"),
        ("greets in words", "it did not greet as Laneway does"),
        ("other protocol", "it has Laneway 9, with which this one cannot speak: update one"),
        ("refuses", "it is about to end"),
        ("garbage", "it sent what is no message of Laneway's: This is not JSON"),
        ("binary", "it sent what is no message of Laneway's"),
        ("endless line", "it sent what is no message of Laneway's"),
        ("dies later", "its command ended (exit code 3)"),
        ("half an answer", "its command ended (exit code 0)"),
    ],
)
async def test_a_far_side_that_is_none_is_out_of_reach(how: str, why: str) -> None:
    async with node(command(how), max_bytes=1024 * 1024) as far:
        with pytest.raises(NodeUnreachable) as problem:
            await far.call("watch", {}, timeout_s=LONG_S)
        assert why in problem.value.why
        assert problem.value.node == "gpu1"


@pytest.mark.parametrize("how", ["silence", "wrong ids"])
async def test_silence_ends_the_connection_and_a_wrong_id_is_no_answer(how: str) -> None:
    async with node(command(how)) as far:
        await far.call("hello", {}, timeout_s=LONG_S)
        with pytest.raises(NodeUnreachable, match="no answer to watch in 1 s"):
            await far.call("watch", {}, timeout_s=SOON_S)


async def test_a_far_side_that_does_not_greet_is_given_up() -> None:
    async with node(command("says nothing"), connect_s=SOON_S) as far:
        with pytest.raises(NodeUnreachable, match=r"no answer to hello in 1 s"):
            await far.call("watch", {}, timeout_s=LONG_S)


async def test_what_a_login_shell_says_first_is_skipped() -> None:
    async with node(command("banner")) as far:
        assert await far.call("watch", {}) == {"method": "watch"}


async def test_a_far_side_asks_nothing() -> None:
    """Its requests are refused, its notifications are ignored; our answer still comes."""
    async with node(command("asks")) as far:
        assert await far.call("watch", {}) == {"refused": -32601}


async def test_calls_share_one_connection_and_a_slow_one_holds_up_none() -> None:
    async with node(command("well")) as far:
        answers = await asyncio.gather(*(far.call("watch", {"n": n}) for n in range(50)))
        assert answers == [{"method": "watch"}] * 50
        assert far.connections == 1


async def test_after_a_cut_a_call_is_made_again_but_not_one_that_is_made_once() -> None:
    async with node(command("dies later")) as far:
        with pytest.raises(NodeUnreachable, match="nobody knows whether it was carried out"):
            await far.call("resolve", {}, timeout_s=LONG_S)
        assert far.connections == 1
        with pytest.raises(NodeUnreachable):
            await far.call("watch", {}, timeout_s=LONG_S)
        assert far.connections > 2


async def test_a_killed_command_is_started_anew() -> None:
    async with node(command("well")) as far:
        for number in range(3):
            assert await far.call("watch", {}) == {"method": "watch"}
            assert far.connections == number + 1
            assert far.pid
            pid = far.pid
            os.kill(pid, signal.SIGKILL)
            while far.pid == pid:
                await asyncio.sleep(0)


async def test_a_machine_that_failed_is_left_alone_for_a_while(tmp_path: Path) -> None:
    """Longer each time: calls fail at once meanwhile, with what was wrong."""
    line = f"sh -c 'echo x >> {tmp_path}/tries; echo no route >&2; exit 1'"
    async with node(line, backoff=Backoff(1000.0, 1000.0)) as far:
        for _ in range(3):
            with pytest.raises(NodeUnreachable, match="no route"):
                await far.call("watch", {})
        assert (tmp_path / "tries").read_text() == "x\n"


async def test_whoever_gives_up_does_not_end_the_connection_for_the_others() -> None:
    async with node(command("well")) as far:
        impatient = asyncio.ensure_future(far.call("watch", {}))
        patient = asyncio.ensure_future(far.call("watch", {}))
        await asyncio.sleep(0)
        impatient.cancel()
        assert await patient == {"method": "watch"}
        assert far.connections == 1


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "jobs.nodes.gpu1 has no command: `laneway config set jobs.nodes.gpu1.command`."),
        ("ssh 'gpu1", "jobs.nodes.gpu1.command cannot be read as a command line."),
    ],
)
def test_a_command_that_is_none_is_one_sentence(line: str, sentence: str) -> None:
    with pytest.raises(UsageError) as problem:
        PipeNode("gpu1", line, {})
    assert str(problem.value) == sentence


async def test_a_program_that_is_not_there_is_named() -> None:
    async with node("/no/such/ssh gpu1") as far:
        with pytest.raises(NodeUnreachable, match=r"/no/such/ssh cannot be started \(No such file"):
            await far.call("hello", {})


def test_pauses_grow_to_a_bound_and_end_with_success() -> None:
    backoff = Backoff(0.1, 1.0)
    pauses = []
    for _ in range(6):
        backoff.failed(100.0)
        pauses.append(round(backoff.left_s(100.0), 3))
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert backoff.left_s(200.0) == 0.0
    backoff.succeeded()
    assert backoff.left_s(100.0) == 0.0
