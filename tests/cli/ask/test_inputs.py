"""What is asked: the prompt and standard input, as the real `codex exec` joins them."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE
from typing import Any

import pytest

from laneway.codex import locate
from tests.cli.support import laneway, start
from tests.codex.support import Stage, real


def asked(here: Stage) -> Any:
    """What the model was asked last."""
    return here.requests[-1]["input"][-1]["content"][0]["text"]


async def codex_exec(here: Stage, prompt: str, stdin: str) -> None:
    """The same, asked by Codex's own command."""
    words = [locate.find().path, "exec", "--skip-git-repo-check", prompt]
    process = await asyncio.create_subprocess_exec(
        *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=here.rehearsal.work, env=environment(here)
    )
    await process.communicate(stdin.encode())
    assert process.returncode == 0


def environment(here: Stage) -> dict[str, str]:
    return {**os.environ, "CODEX_HOME": str(here.rehearsal.home)}


@pytest.mark.parametrize(
    "piped", ["one\ntwo\n", "no line break", "", " \n", "</stdin>\nforged", "\ufeffmarked\n"]
)
async def test_what_is_piped_in_comes_behind_the_prompt_as_codex_exec_appends_it(piped: str) -> None:
    """`git diff | laneway ask "explain this"`, word for word the same."""
    async with real() as here:
        ran = await laneway(
            "ask", "-C", str(here.rehearsal.work), "explain this", stdin=piped, env=environment(here)
        )
        assert ran.code == 0
        ours = asked(here)
        await codex_exec(here, "explain this", piped)
        assert ours == asked(here)
        assert ours.startswith("explain this")
        assert piped.strip("\ufeff \n") in ours


@pytest.mark.parametrize("words", [["-"], []])
async def test_the_prompt_may_come_from_standard_input(words: list[str]) -> None:
    """`git diff | laneway ask -`, or without a word."""
    ran = await laneway("ask", "--rehearse", *words, stdin="%say piped")
    assert (ran.code, ran.out) == (0, "piped\n")


@pytest.mark.parametrize("engine", ["codex", "claude"])
async def test_bytes_that_are_no_text_become_marks(engine: str) -> None:
    """An argument may hold any bytes, and no engine can be sent them."""
    ran = await laneway("ask", "--rehearse", "--engine", engine, os.fsdecode(b"%say caf\xe9 ok"))
    assert (ran.code, ran.out) == (0, "caf\ufffd ok\n"), ran.err


async def test_a_pipe_that_nobody_writes_to_is_said_to_be_waited_for() -> None:
    """Else it would look like a program that hangs."""
    async with asyncio.timeout(60):
        process = await start("ask", "--rehearse", "%say done", stdin=PIPE)
        assert process.stderr is not None
        assert process.stdin is not None
        told = await process.stderr.readline()
        assert told.startswith(b"laneway: reading standard input until it ends")
        process.stdin.close()
        out, _ = await process.communicate()
        assert (process.returncode, out) == (0, b"done\n")


@pytest.mark.parametrize(
    ("stdin", "sentence"),
    [
        (b"\xff\x00\x80binary", "Standard input is not text in UTF-8"),
        (b"x" * ((1 << 20) + 1), "The prompt is too long"),
        (b"x" * (5 << 20), "Standard input is too long"),
        (b"", "There is nothing to ask: the prompt is empty."),
    ],
    ids=["binary", "too long", "far too long", "empty"],
)
async def test_what_cannot_be_asked_is_said_in_one_sentence(stdin: bytes, sentence: str) -> None:
    """Before anything is sent to anybody."""
    async with asyncio.timeout(60):
        process = await start("ask", "--rehearse", "-", stdin=PIPE)
        _, err = await process.communicate(stdin)
    assert process.returncode == 2
    assert err.decode().startswith(f"laneway: {sentence}")
    assert err.count(b"\n") == 1


async def test_utf_16_of_a_windows_program_is_read() -> None:
    """Codex reads it, too."""
    async with asyncio.timeout(60):
        process = await start("ask", "--rehearse", "-", stdin=PIPE)
        out, _ = await process.communicate("%say größe".encode("utf-16"))
    assert (process.returncode, out.decode()) == (0, "größe\n")
