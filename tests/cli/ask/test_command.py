"""`laneway ask`, as a person and as a program would use it."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from laneway.testing.processes import runs, wait_gone
from laneway.testing.rehearse import Rehearsal, rehearsal
from laneway.wire.guardian import descendants
from tests.cli.support import laneway, misbehaving_codex, start
from tests.codex.support import real
from tests.core.support import LOOK_S


async def test_the_answer_is_all_that_standard_output_gets() -> None:
    """The rest goes to standard error, so that a pipe gets the answer alone."""
    ran = await laneway("ask", "--rehearse", "%run echo working\n%say The answer.")
    assert (ran.code, ran.out) == (0, "The answer.\n")
    assert "▸ echo working" in ran.err
    assert "  │ working" in ran.err
    assert "\x1b[" not in ran.err, "no colours where nobody sees them"


async def test_json_gives_every_event_as_a_line() -> None:
    """For programs: the thread first, then the turn from its start to its end."""
    ran = await laneway("ask", "--rehearse", "--json", "%say hi")
    events = [json.loads(line) for line in ran.out.splitlines()]
    kinds = [event["event"] for event in events]
    assert ran.code == 0
    assert kinds[:2] == ["session", "turn_started"]
    assert kinds[-1] == "turn_done"
    assert events[0]["thread_id"]
    assert "".join(event["text"] for event in events if event["event"] == "text") == "hi"


async def test_a_rehearsal_reaches_for_nothing_outside_this_machine() -> None:
    """Codex would ask GitHub for its plugins; whatever goes out would have to pass this proxy."""
    reached: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(await reader.readline())
        writer.close()

    async with await asyncio.start_server(note, "127.0.0.1", 0) as proxy:
        there = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        env = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), there) | {"no_proxy": "127.0.0.1"}
        env |= {name.upper(): value for name, value in env.items()}
        # Long enough for whatever Codex does beside a turn: without our setting it was four connections.
        ran = await laneway("ask", "--rehearse", "%stream 20 words over 2 seconds", env=env)
    assert (ran.code, reached) == (0, [])


async def test_the_prompt_may_come_from_standard_input() -> None:
    """`git diff | laneway ask -`"""
    ran = await laneway("ask", "--rehearse", "-", stdin="%say piped")
    assert (ran.code, ran.out) == (0, "piped\n")


async def test_without_a_terminal_an_approval_is_declined_and_told(tmp_path: Path) -> None:
    """Fail closed, and say so."""
    marker = tmp_path / "marker"
    ran = await laneway(
        "ask",
        "--rehearse",
        "-s",
        "read-only",
        "-a",
        "on-request",
        "-C",
        str(tmp_path),
        f"%run! touch {marker}",
    )
    assert ran.code == 0
    assert f"touch {marker}" in ran.err
    assert "declined: nobody is at a terminal to ask" in ran.err
    assert not marker.exists()


@pytest.mark.parametrize("engine", ["codex", "claude"])
async def test_without_a_terminal_a_declined_question_is_shown_with_its_choices(engine: str) -> None:
    """A log shows what was asked, not only that something was."""
    ran = await laneway("ask", "--rehearse", "--engine", engine, "%ask Which colour? red | blue")
    assert ran.code == 0
    for row in ("Which colour?", "  1  red", "  2  blue", "  declined: nobody is at a terminal to ask"):
        assert any(line.endswith(row) for line in ran.err.splitlines()), (row, ran.err)


@pytest.mark.parametrize("line", ["%fail 500", "%break"])
async def test_a_failed_turn_is_one_sentence_and_exit_code_one(line: str) -> None:
    """Never a traceback."""
    ran = await laneway("ask", "--rehearse", line)
    assert ran.code == 1
    assert "laneway: the turn failed: " in ran.err
    assert "Traceback" not in ran.err


async def test_a_codex_that_dies_is_one_sentence_and_exit_code_four(tmp_path: Path) -> None:
    """With how it died."""
    ran = await laneway("ask", "--codex-bin", misbehaving_codex(tmp_path), "exit 3")
    assert ran.code == 4
    assert ran.err.splitlines()[-1] == "laneway: Codex ended unexpectedly: exit code 3"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["ask", "--codex-bin", "/no/codex", "hi"], 3, "There is no Codex at /no/codex"),
        (["ask", "--rehearse", "  "], 2, "There is nothing to ask"),
        (["ask", "--rehearse", "-C", "/no/folder", "hi"], 2, "There is no folder /no/folder."),
        (["ask", "--rehearse", "-c", "nonsense", "hi"], 2, "-c takes KEY=VALUE"),
        (
            ["ask", "--rehearse", "--thread", "01a1e340-0000-7000-8000-000000000000", "hi"],
            4,
            "has no thread",
        ),
    ],
)
async def test_what_is_wrong_is_said_in_one_sentence(words: list[str], code: int, sentence: str) -> None:
    """And the exit code tells programs which kind it was."""
    ran = await laneway(*words)
    assert ran.code == code
    assert ran.err.startswith("laneway: ")
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


async def test_the_first_interrupt_stops_the_turn() -> None:
    """Orderly: exit code 130, and the words that came are kept."""
    async with asyncio.timeout(60):
        process = await start("ask", "--rehearse", "%stream 1000 words over 60 seconds")
        assert process.stdout is not None
        assert await process.stdout.readexactly(4) == b"one "
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
    assert process.returncode == 130
    assert b"laneway: interrupted" in err


async def test_the_second_interrupt_leaves_at_once(tmp_path: Path) -> None:
    """Also when Codex does not care about the first; nothing is left running."""
    async with asyncio.timeout(60):
        codex = misbehaving_codex(tmp_path, "--deaf")
        process = await start("ask", "--codex-bin", codex, "hang")
        assert process.stdout is not None
        assert await process.stdout.readexactly(6) == b"so far"
        tree = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        await process.communicate()
        assert process.returncode == 130
        for pid in tree:
            await wait_gone(pid)


async def test_killed_without_warning_nothing_is_left_running() -> None:
    """SIGKILL of ours, with a command under way that has a session of its own."""
    async with asyncio.timeout(60):
        process = await start(
            "ask",
            "--rehearse",
            "-s",
            "danger-full-access",
            "-a",
            "never",
            "%run setsid sleep 600 & echo up; sleep 600",
        )
        tree: list[int] = []
        while sum(runs(pid, "sleep") for pid in tree) < 2:
            await asyncio.sleep(LOOK_S)
            tree = descendants(process.pid)
        process.kill()
        await process.communicate()
        for pid in tree:
            await wait_gone(pid)


async def test_a_thread_can_be_taken_up_again() -> None:
    """By the id that was told at the end."""
    async with rehearsal() as here:
        env = {"CODEX_HOME": str(here.home)}
        first = await laneway("ask", "--json", "-C", str(here.work), "%say remember me", env=env)
        thread_id = json.loads(first.out.splitlines()[0])["thread_id"]
        again = await laneway("ask", "--thread", thread_id, "-C", str(here.work), "%say yes", env=env)
        assert (again.code, again.out) == (0, "yes\n")
        assert f"thread {thread_id}" in again.err
        page = await threads_words(here, thread_id)
        assert page == ["remember me", "yes"]


async def threads_words(here: Rehearsal, thread_id: str) -> list[str]:
    answer = await (await here.engine.link()).call(
        "thread/read", {"threadId": thread_id, "includeTurns": True}
    )
    items = [item for turn in answer["thread"]["turns"] for item in turn["items"]]
    return [item["text"] for item in items if item["type"] == "agentMessage"]


async def test_every_flag_has_its_effect_on_what_codex_is_told() -> None:
    """Model, sandbox, approval policy, config and time limit: none is decoration."""
    async with real() as here:
        env = {"CODEX_HOME": str(here.rehearsal.home)}
        base = ["ask", "-C", str(here.rehearsal.work)]
        await laneway(
            *base, "-m", "gpt-5.4", "-s", "read-only", "-c", "model_reasoning_effort=high", "hi", env=env
        )
        told = here.requests[-1]
        assert (told["model"], told["reasoning"]["effort"]) == ("gpt-5.4", "high")
        assert '"sandbox_mode":"read-only"' in told["client_metadata"]["x-codex-turn-metadata"]
        never = await laneway(*base, "-a", "never", "%run! touch x", env=env)
        assert "Run this command?" not in never.err
        late = await laneway(*base, "--timeout", "0.3", "%hang", env=env)
        assert (late.code, late.err.splitlines()[-1]) == (
            1,
            "laneway: the turn took longer than --timeout and was stopped",
        )
