"""Agents that tests share: the next test finds nothing of the one before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doors.acp.shared import Shared

HELLO = [{"type": "text", "text": "%say Hello."}]


async def test_the_next_test_has_the_same_agent_and_nothing_of_the_one_before(shared: Shared) -> None:
    """Its session is closed, its files are gone; what its client heard stays its own."""
    async with shared.stage() as here, here.agent() as one:
        session = await one.new()
        await one.prompt(session, "%say Hello.")
        (here.work / "left.txt").touch()
        said = one.trace()
    assert one.trace() == said
    async with shared.stage() as here, here.agent() as other:
        assert other.process is one.process
        assert (other.heard, other.opened, here.requests, list(here.work.iterdir())) == ([], {}, [], [])
        assert other.trace() == said[:2]
        error = await other.refusal("session/prompt", {"sessionId": session, "prompt": HELLO})
        assert error["code"] == -32002
        await other.prompt(await other.new(), "%say Hello.")
    assert one.trace() == said


async def test_a_test_never_has_the_same_agent_twice(shared: Shared) -> None:
    """Side by side or one after the other: what one does, another process finds."""
    async with shared.stage() as here:
        async with here.agent() as one, here.agent() as two:
            pass
        async with here.agent() as three:
            pass
    assert len({client.process.pid for client in (one, two, three)}) == 3


async def test_an_agent_that_owes_an_answer_is_ended_with_its_test(shared: Shared) -> None:
    """What it would say later is nobody's."""
    async with shared.stage() as here, here.agent() as client:
        client.start_prompt(await client.new(), "%hang")
    assert client.process.returncode == 0


async def test_a_stage_that_a_test_has_spoilt_is_not_used_again(tmp_path: Path) -> None:
    """By other settings, which is told; or by whatever made it fail."""
    shared = Shared(lambda: tmp_path)
    try:
        with pytest.raises(AssertionError, match="a stage of its own"):
            async with shared.stage() as spoilt:
                (spoilt.home / "config.toml").write_text("")
        async with shared.stage() as here:
            assert here.home != spoilt.home
        with pytest.raises(ZeroDivisionError):
            async with shared.stage() as failed:
                raise ZeroDivisionError
        assert failed is here
        async with shared.stage() as after:
            assert after is not here
    finally:
        await shared.aclose()
