"""`laneway chat` in a pipe, with the real Claude Code and the real Codex and scripted models."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from laneway.codex import locate
from laneway.rehearsal.answer import Piece, answer
from laneway.testing.rehearse import rehearsal
from laneway.testing.rehearse_claude import claude_rehearsal
from tests.cli.support import Ran, start
from tests.doors.chat.platforms.terminal.at_terminal import BEGUN, SOURCE, STREAM
from tests.own_processes import OwnProcesses

DEADLINE_S = 60.0


async def chat(cwd: Path, *words: str, stdin: str, **env: str) -> Ran:
    async with asyncio.timeout(DEADLINE_S):
        process = await start("chat", "-C", str(cwd), *words, env=env, stdin=PIPE)
        out, err = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return Ran(process.returncode, out, err)


async def test_answers_are_on_standard_output_and_all_else_on_standard_error(tmp_path: Path) -> None:
    """One line, one message; the next is read when no lane works."""
    ran = await chat(
        tmp_path,
        "--rehearse",
        stdin="%say I am **Claude**.\n/codex %run seq 10000\n/codex %say And I am Codex.\n//claude\n",
    )
    assert ran.code == 0, ran.err
    *said, last = ran.out.splitlines()
    assert said == ["I am **Claude**.", "Done.", "And I am Codex."]
    assert last.startswith("I heard “/claude”. ")
    assert "━━━ CODEX STARTED: %run seq 10000 ━━━\n▸ codex::Bash(seq 10000)\n  │ 1\n" in ran.err
    assert "more lines" in ran.err
    assert "\x1b" not in ran.err


@pytest.mark.covers("003-verify.7")
async def test_the_next_line_answers_a_question_and_at_the_end_nobody_does(tmp_path: Path) -> None:
    """Declined: the command was not run, and the lane went on."""
    ran = await chat(
        tmp_path,
        "--rehearse",
        stdin="/codex %ask Which database? PostgreSQL | SQLite\nSQLite\n/codex %run! touch granted\n",
    )
    assert ran.code == 0, ran.err
    assert "question 1: answered by you: SQLite" in ran.err
    assert "question 2: declined" in ran.err
    assert ran.err.count("CODEX COMPLETED") == 2
    assert not (tmp_path / "granted").exists()


async def test_a_turn_that_failed_is_exit_code_1(tmp_path: Path) -> None:
    """The lines after it are sent all the same."""
    ran = await chat(
        tmp_path, "--rehearse", "--lane", "codex", stdin="%fail 400 not today\n%say All the same.\n"
    )
    assert ran.code == 1
    assert "✘ codex: " in ran.err
    assert "not today" in ran.err
    assert ran.out.endswith("All the same.\n")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--rehearse", "--lane", "aider"), "There is no lane `aider`: there are claude, codex, rehearse."),
        (("--rehearse", "--resume"), "--resume cannot be used with --rehearse"),
        (("--resume", "chat-none"), "There is no conversation chat-none"),
        (("--busy", "never"), "invalid choice: 'never'"),
    ],
)
async def test_wrong_usage_is_exit_code_2(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    """Before anything is sent."""
    ran = await chat(tmp_path, *words, stdin="hello\n", HOME=str(tmp_path))
    assert ran.code == 2
    assert problem in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(("closing", "name"), [("<&-", "input"), (">&-", "output")])
async def test_a_closed_stream_is_wrong_usage(tmp_path: Path, closing: str, name: str) -> None:
    """Files that are opened would take its number."""
    line = f'"{sys.executable}" -m laneway chat --rehearse {closing}'
    process = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        line,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    async with asyncio.timeout(DEADLINE_S):
        _, err = await process.communicate()
    assert process.returncode == 2
    assert f"Standard {name} is closed" in err.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_in_a_turn_is_exit_code_130_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals, processes: OwnProcesses
) -> None:
    """The lane is stopped, its process ends; no traceback."""
    async with asyncio.timeout(DEADLINE_S):
        process = await start("chat", "-C", str(tmp_path), "--rehearse", "--lane", "codex", stdin=PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(f"{STREAM}\n".encode())
        seen = b""
        while BEGUN.encode() not in seen:
            seen += await process.stdout.read(4096)
        process.send_signal(number)
        assert await process.wait() == 130
        assert b"Traceback" not in await process.stderr.read()
    assert processes.named("app-server") == []


async def test_programs_homes_and_addresses_of_the_environment_are_used(tmp_path: Path) -> None:
    """`ANTHROPIC_BASE_URL`, `CODEX_HOME` and `CODEX_BINARY`; and both threads go on with `--resume`."""
    heard: list[dict[str, Any]] = []

    def spy(request: dict[str, Any]) -> Iterator[Piece]:
        heard.append(request)
        return answer(request)

    noted = tmp_path / "noted"
    program = tmp_path / "codex"
    program.write_text(f'#!/bin/sh\necho "$@" >> "{noted}"\nexec "{locate.find().path}" "$@"\n')
    program.chmod(0o755)
    async with claude_rehearsal() as claude, rehearsal(spy) as codex:
        assert claude.environment["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")
        env = {
            **claude.environment,
            "CODEX_HOME": str(codex.home),
            "CODEX_BINARY": str(program),
            "LANEWAY_CODEX_BIN": "",
            "XDG_STATE_HOME": str(tmp_path / "state"),
        }
        ran = await chat(claude.work, stdin="%say I am Claude.\n/codex %say I am Codex.\n", **env)
        assert (ran.code, ran.out) == (0, "I am Claude.\nI am Codex.\n"), ran.err
        assert "app-server" in noted.read_text()
        assert claude.model.requests
        assert heard
        again = await chat(claude.work, "--resume", stdin="/lane codex\nhello\n", **env)
        assert "I am Claude.\nI am Codex.\n" in again.out
        assert "I am Codex." in json.dumps(heard[-1]["input"])


DEAF = """
import asyncio, time
from laneway.lanes import register_lane

@register_lane
class DeafLane:
    command = "deaf"

    async def start(self, cwd, platform, formatter):
        self.platform = platform

    async def run_turn(self, input):
        await self.platform.send_message("I hear nothing.")
        if input.text == "thread":
            return await asyncio.to_thread(time.sleep, 600)
        while True:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                pass
"""


@pytest.mark.parametrize("task", ["thread", "task"])
async def test_a_plugin_that_ends_for_nobody_does_not_hold_up_the_end(tmp_path: Path, task: str) -> None:
    """Its turn is given up, and then the process ends without it."""
    (tmp_path / "deaf_lane.py").write_text(DEAF)
    env = {
        "PYTHONPATH": os.pathsep.join((SOURCE, str(tmp_path))),
        "LANEWAY_CHAT_LANES": "deaf_lane",
        "HOME": str(tmp_path),
    }
    async with asyncio.timeout(DEADLINE_S):
        process = await start("chat", "-C", str(tmp_path), "--rehearse", env=env, stdin=PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"/deaf {task}\n".encode())
        said = b"I hear nothing."
        assert await process.stdout.readexactly(len(said)) == said
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 130


@pytest.mark.covers("003-case.12")
async def test_without_a_login_each_engine_says_how_to_get_one(tmp_path: Path) -> None:
    """One notice, and the lane that needs none leads."""
    for name in (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "OPENAI_API_KEY",
        "CODEX_API_KEY",
        "CODEX_HOME",
    ):
        assert name not in os.environ
    ran = await chat(tmp_path, stdin="%say Who leads?\n/codex fix it\n", HOME=str(tmp_path))
    assert ran.code == 1
    assert ran.out == "Who leads?\n"
    assert "Codex not authenticated. Run 'codex' in terminal to log in." in ran.err
    assert ran.err.count("Claude not authenticated.") == 1
    assert "rehearse leads this conversation (The real Codex with a scripted model" in ran.err


async def test_a_server_without_a_terminal_ends_quietly_with_a_signal(tmp_path: Path) -> None:
    """`--platform web` alone: nothing is read from standard input."""
    async with asyncio.timeout(DEADLINE_S):
        process = await start(
            "chat",
            "-C",
            str(tmp_path),
            "--rehearse",
            "--platform",
            "web",
            stdin=DEVNULL,
            env={"HOME": str(tmp_path)},
        )
        assert process.stderr is not None
        assert process.stdout is not None
        seen = b""
        while b"http://" not in seen:
            done, _ = await asyncio.wait(
                [
                    asyncio.create_task(process.stderr.readline()),
                    asyncio.create_task(process.stdout.readline()),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
            seen += b"".join(task.result() for task in done)
            assert process.returncode is None, seen
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
