"""What lanes on the real engines do beyond the kit: commands, steering, failures in words, one process."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.app.shared_engine import SharedEngine
from laneway.base.errors import BinaryError, NotLoggedIn
from laneway.core.hub import Hub
from laneway.core.model import Accepted, Activity, Answer, Asked, Failure, Notice, Text, TurnStarted
from laneway.core.offers import Offers
from laneway.doors.chat.engine_lane import EngineLane
from laneway.doors.chat.engine_words import in_words
from laneway.doors.chat.lane_engines import LaneKind
from laneway.lanes.contract import LaneTurn
from laneway.testing.lane_host import HeardLane
from tests.doors.chat.engine_lanes import LONG, PNG, EngineStage, on_claude, on_codex

DEADLINE_S = 90
PNG_TEXT = base64.b64encode(PNG).decode()


@asynccontextmanager
async def opened(lane: EngineLane, cwd: Path, resume: str | None = None) -> AsyncIterator[HeardLane]:
    heard = HeardLane(lane)
    async with asyncio.timeout(DEADLINE_S):
        await lane.open(cwd, heard, resume=resume)
        try:
            yield heard
        finally:
            await lane.close()


def shown(heard: HeardLane) -> str:
    """The texts of the latest turn."""
    return "\n".join(event.text for event in heard.only(Text))


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


# ── commands ───────────────────────────────────────────────────────────────


async def test_a_command_that_only_shows_something_is_a_turn_of_its_own() -> None:
    """Its text is the lane's; no model is asked."""
    async with on_codex() as here, opened(here.lane(), here.work) as heard:
        git(here.work, "init", "--quiet")
        (here.work / "new.txt").write_text("fresh\n")
        done = await heard.play("", command="diff")
        assert done.status == "completed"
        assert "+fresh" in shown(heard)
        assert here.requests == []


async def test_a_review_is_one_turn_of_the_engine() -> None:
    """One start, one end, and the review is between them."""
    async with on_codex() as here, opened(here.lane(), here.work) as heard:
        git(here.work, "init", "--quiet")
        (here.work / "new.txt").write_text("fresh\n")
        done = await heard.play("look at new.txt", command="review")
        assert done.status == "completed"
        assert heard.only(Accepted)
        assert [event for event in heard.only(Activity) if event.kind == "review"]


async def test_a_turn_is_taken_back_with_its_edits() -> None:
    """By `/undo`, whose memory begins with the session, not with the first command."""
    async with on_codex() as here, opened(here.lane(), here.work) as heard:
        git(here.work, "init", "--quiet")
        await heard.play("%patch a.txt one")
        assert (here.work / "a.txt").exists()
        done = await heard.play("", command="undo")
        assert done.status == "completed"
        assert "taken back" in shown(heard)
        assert not (here.work / "a.txt").exists()


async def test_a_chosen_model_is_used_from_the_next_turn_on() -> None:
    """And the list says which one it is."""
    async with on_codex() as here, opened(here.lane(), here.work) as heard:
        await heard.play("", command="model")
        models = [line.split("`")[1] for line in shown(heard).splitlines() if line.startswith("- `")]
        other = next(model for model in models if model != "gpt-5.5")
        await heard.play(other, command="model")
        await heard.play("hello")
        assert here.requests[-1]["model"] == other


async def test_context_that_came_with_a_command_is_told_in_the_next_turn() -> None:
    """`/diff` asks no model, which could have read it."""
    async with on_codex() as here, opened(here.lane(), here.work) as heard:
        await heard.play("", context="<lane>painted</lane>", command="status")
        await heard.play("%say hello")
        assert "<lane>painted</lane>" in here.heard()


async def test_claude_compacts_and_has_no_review() -> None:
    """Each engine has the commands that it can do."""
    async with on_claude() as here, opened(here.lane(), here.work) as heard:
        names = {each.name for each in heard.lane.abilities.commands}
        assert {"compact", "diff", "model", "status"} <= names
        assert not {"review", "undo", "help", "login", "fork"} & names
        await heard.play("%say hello")
        assert (await heard.play("", command="compact")).status == "completed"
        assert (await heard.play("", command="status")).status == "completed"
        assert "**Versions**: Claude" in shown(heard)
        assert "**Mode**" not in shown(heard), "its access is not known in such words"


async def test_a_command_can_be_interrupted() -> None:
    """In its turn, as any other."""
    async with on_codex() as here, opened(here.lane(), here.work) as heard:
        git(here.work, "init", "--quiet")
        ticket = heard.begin(LONG, command="review")
        await heard.wait(TurnStarted)
        await heard.lane.interrupt()
        assert (await heard.ended(ticket)).status == "interrupted"
        assert (await heard.play("%say on")).status == "completed"


# ── input ──────────────────────────────────────────────────────────────────


@pytest.mark.covers("003-case.7")
@pytest.mark.parametrize("engine", [on_codex, on_claude])
async def test_an_image_reaches_the_model(engine: type[object], tmp_path: Path) -> None:
    """As an image, with its words."""
    image = tmp_path / "dot.png"
    image.write_bytes(PNG)
    async with engine() as here, opened(here.lane(), here.work) as heard:  # type: ignore[attr-defined]
        assert heard.lane.abilities.takes_images
        assert (await heard.play("%say seen", images=(image,))).status == "completed"
        given = here.heard()
        assert PNG_TEXT in given
        assert "seen" in given


@pytest.mark.parametrize("engine", [on_codex, on_claude])
async def test_an_image_that_is_not_there_fails_the_turn(engine: type[object], tmp_path: Path) -> None:
    """Nothing is sent without it in silence."""
    async with engine() as here, opened(here.lane(), here.work) as heard:  # type: ignore[attr-defined]
        done = await heard.play("%say seen", images=(tmp_path / "gone.png",))
        assert done.status == "failed"
        assert (await heard.play("%say on")).status == "completed"


async def test_steered_words_are_accepted_under_their_own_ticket() -> None:
    """So that the conversation knows that they are recorded."""
    async with on_codex() as here, opened(here.lane(), here.work) as heard:
        ticket = heard.begin("%run sleep 1\n%say done")
        await heard.wait(Activity)
        assert await heard.lane.steer(LaneTurn(ticket="steered", text="%say steered"))
        await heard.ended(ticket)
        assert "steered" in [event.client_id for event in heard.only(Accepted)]


async def test_an_approval_decides_whether_the_command_runs(tmp_path: Path) -> None:
    """Yes once, then no."""
    async with (
        on_codex() as here,
        opened(here.lane(sandbox="workspace-write", approval_policy="on-request"), here.work) as heard,
    ):
        for name, scope in (("yes.txt", "once"), ("no.txt", "nothing")):
            path = here.work.parent / name
            ticket = heard.begin(f"%run! touch {path}")
            question = (await heard.wait(Asked)).question
            choice = next(each for each in question.choices if each.grants == scope)
            heard.lane.answer(question.question_id, Answer(choice_id=choice.choice_id))
            await heard.ended(ticket)
            assert path.exists() == (scope == "once")


# ── failures ───────────────────────────────────────────────────────────────


def broken(error: Exception) -> EngineLane:
    """A lane whose engine cannot be opened."""

    @asynccontextmanager
    async def open_hub() -> AsyncIterator[Hub]:
        raise error
        yield

    async def check(shared: SharedEngine) -> str | None:
        raise error

    kind = LaneKind(name="codex", description="Codex", login="Log in.")
    return EngineLane(kind, SharedEngine(open_hub, Offers, check))


async def test_an_engine_that_is_not_installed_fails_the_turn_in_words(tmp_path: Path) -> None:
    """As the probe says it."""
    lane = broken(BinaryError("No Codex was found: install it"))
    assert await lane.probe() == "No Codex was found: install it."
    async with opened(lane, tmp_path) as heard:
        done = await heard.play("hello")
        assert done.failure == Failure(kind="no_program", message="No Codex was found: install it.")


@pytest.mark.covers("003-case.12")
async def test_a_missing_login_is_told_in_the_lanes_own_words(tmp_path: Path) -> None:
    """Whatever the engine calls it."""
    async with opened(broken(NotLoggedIn()), tmp_path) as heard:
        done = await heard.play("hello")
        assert done.failure == Failure(kind="login", message="Log in.")
    for failure in (
        Failure(kind="unauthorized", message="401"),
        Failure(kind="x", message="", http_status=401),
    ):
        told = in_words(failure, "codex", "Log in.")
        assert told is not None
        assert (told.kind, told.message) == ("login", "Log in.")


async def test_an_unforeseen_error_ends_the_turn_and_the_lane_can_be_closed(tmp_path: Path) -> None:
    """Nobody waits for ever."""
    async with opened(broken(RuntimeError("a bug")), tmp_path) as heard:
        done = await heard.play("hello")
        assert done.status == "failed"


@pytest.mark.covers("003-case.4")
async def test_a_crash_says_how_to_go_on_and_the_next_turn_remembers() -> None:
    """The thread is resumed."""
    async with on_codex() as here, opened(here.lane(), here.work) as heard:
        await heard.play("%say the word is heron")
        thread_id = heard.lane.thread_id
        done = await heard.play("%run kill -9 $PPID")
        assert done.failure is not None
        assert "SIGKILL" in done.failure.message
        assert done.failure.message.endswith("The next /codex starts it again.")
        await heard.play("%say still here")
        assert heard.lane.thread_id == thread_id
        assert "the word is heron" in here.heard()


async def test_a_thread_that_is_gone_is_told_and_replaced() -> None:
    """A deleted thread does not end the conversation."""
    gone = "0199a0b1-0000-7000-8000-000000000000"
    async with on_codex() as here, opened(here.lane(), here.work, resume=gone) as heard:
        assert (await heard.play("%say hello")).status == "completed"
        (notice,) = [
            event for event in heard.events if isinstance(event, Notice) and "begins" in event.message
        ]
        assert gone in notice.message
        assert heard.lane.thread_id not in (None, gone)


# ── one process ────────────────────────────────────────────────────────────


async def pid_of(here: EngineStage) -> int:
    hub = await here.shared.acquire()
    pid = hub.engine.pid
    await here.shared.release()
    assert pid is not None
    return pid


@pytest.mark.covers("003-verify.6")
async def test_lanes_share_one_app_server_which_ends_with_the_last_of_them() -> None:
    """Not with the first."""
    async with on_codex() as here, opened(here.lane(), here.work) as first:
        await first.play("%say one")
        pid = await pid_of(here)
        async with opened(here.lane(), here.work) as second:
            await second.play("%say two")
            assert await pid_of(here) == pid
            assert here.shared.holders == 2
        os.kill(pid, 0)
        await first.lane.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.covers("003-case.4")
async def test_the_death_of_the_shared_process_is_told_in_each_lane() -> None:
    """And each works again with its next turn."""
    async with (
        on_codex() as here,
        opened(here.lane(), here.work) as first,
        opened(here.lane(), here.work) as second,
    ):
        tickets = [(heard, heard.begin(LONG)) for heard in (first, second)]
        for heard, _ in tickets:
            await heard.wait(Text)
        os.kill(await pid_of(here), signal.SIGKILL)
        for heard, ticket in tickets:
            done = await heard.ended(ticket)
            assert done.failure is not None
            assert "starts it again" in done.failure.message
            assert (await heard.play("%say on")).status == "completed"
