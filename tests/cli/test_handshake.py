"""The handshake with any MCP server: what it is, or exactly why not; and nothing left running."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from laneway.cli.clients.entry import EntryStart
from laneway.cli.handshake import HandshakeResult, shake
from laneway.testing.processes import wait_gone

STUB = str(Path(__file__).with_name("mcp_stub.py"))
TOOLS = ("codex", "codex-reply")


def start(*flags: str, folder: Path = Path("/"), **variables: str) -> EntryStart:
    return EntryStart((sys.executable, STUB, *flags), {**os.environ, **variables}, folder)


@pytest.mark.parametrize(
    "flags", [[], ["--other-ids"], ["--asks"], ["--pages"], ["--asks", "--other-ids", "--pages"]]
)
async def test_a_server_that_answers_is_told_with_its_tools(flags: list[str]) -> None:
    """Also one that answers other questions first, asks some itself, or has its list in pages."""
    proof = await shake(start(*flags, *TOOLS))
    assert (proof.server, proof.version, proof.protocol) == ("stub", "1.2", "2025-06-18")
    assert (proof.tools, proof.is_good, proof.strange_lines) == (TOOLS, True, 0)
    assert proof.seconds > 0


async def test_a_server_without_tools_is_well_too() -> None:
    """It is not asked for what it does not offer."""
    assert (await shake(start("--no-tools"))).is_good


async def test_noise_among_the_messages_is_counted() -> None:
    """We live with it; some clients do not, so it is told."""
    proof = await shake(start("--noise", *TOOLS))
    assert (proof.tools, proof.strange_lines) == (TOOLS, 3)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--exit"], "It ended before it answered initialize: exit code 7."),
        (["--dies-later"], "It ended before it answered tools/list: killed by SIGKILL."),
        (["--error"], "It refused initialize: go\\x1b away (-32000)."),
        (["--odd"], "Its answer to initialize is not an object."),
        (["--no-list"], "Its list of tools is not a list."),
    ],
)
async def test_what_goes_wrong_is_one_sentence(flags: list[str], problem: str) -> None:
    """Whatever the server says cannot command a terminal."""
    assert (await shake(start(*flags))).problem == problem


async def test_a_servers_last_words_are_told_without_secrets() -> None:
    """As they were, but for keys and escapes."""
    proof = await shake(start("--exit"))
    assert proof.stderr == "Error: stdin is not a terminal\nAPI_KEY=[redacted] \\x1b[2J"


async def test_a_server_that_never_answers_is_given_up() -> None:
    """After the deadline; what was asked is named."""
    proof = await shake(start("--hang"), deadline_s=0.5)
    assert proof.problem == "It did not answer within 0.5 seconds (initialize was open)."


@pytest.mark.parametrize("flags", [[], ["--hang"], ["--exit"]])
async def test_nothing_is_left_running(tmp_path: Path, flags: list[str]) -> None:
    """Not even a grandchild in a session of its own."""
    pids = tmp_path / "pids"
    await shake(start("--grandchild", *flags, STUB_PIDS=str(pids)), deadline_s=1.0)
    for pid in pids.read_text().split():
        await wait_gone(int(pid))


async def test_an_interrupted_handshake_leaves_nothing_running(tmp_path: Path) -> None:
    """Ctrl-C while it waits."""
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    task = asyncio.create_task(shake(start("--grandchild", "--hang", STUB_PIDS=str(pids))))
    async with asyncio.timeout(30):
        told = await asyncio.to_thread(pids.read_text)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for pid in told.split():
        await wait_gone(int(pid))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("/no/such/laneway",), "`/no/such/laneway` cannot be started: No such file or directory."),
        (("/etc",), "`/etc` cannot be started: Permission denied."),
        (("a\0b",), "`a\\x00b` cannot be started: it has a character that no command can have."),
    ],
)
async def test_what_cannot_be_started_is_told(words: tuple[str, ...], why: str) -> None:
    """With the word that cannot."""
    assert (await shake(EntryStart(words, dict(os.environ), Path("/")))).problem == why


async def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    """And not taken for a missing program."""
    proof = await shake(start(folder=tmp_path / "gone"))
    assert proof.problem == f"The folder {tmp_path / 'gone'} is not there."


async def test_what_only_the_client_can_start_is_not_tried() -> None:
    """The entry's own problem is passed on."""
    assert await shake(EntryStart((), {}, Path("/"), "No.")) == HandshakeResult(
        problem="No.", remedy="Try it in the client itself."
    )
