"""The command line as a whole: help that can be read, versions, exits."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from laneway import __version__
from laneway.cli.main import COMMANDS, build_parser, terminal_width
from laneway.codex.binary import TESTED
from tests.cli.support import in_terminal, laneway, read_until, start, start_python


@pytest.mark.parametrize("words", [["--help"], *([name, "--help"] for name in COMMANDS)])
async def test_help_is_there_for_every_command(words: list[str]) -> None:
    """And ends well; each in a Python of its own, which has loaded nothing before."""
    ran = await laneway(*words, begin=start_python)
    assert ran.code == 0
    assert ran.out.startswith("usage: laneway")
    assert ran.err == ""


async def test_the_help_lists_every_command_and_exit_code() -> None:
    """With one line for each."""
    ran = await laneway("--help")
    for name, (_, summary) in COMMANDS.items():
        assert name in ran.out
        assert summary in ran.out
    assert "exit codes:" in ran.out


async def test_no_command_at_all_shows_the_help() -> None:
    """And says by its exit code that something was missing."""
    ran = await laneway()
    assert (ran.code, ran.out.startswith("usage: laneway")) == (2, True)


async def test_the_version_names_ours_and_codexs() -> None:
    """With where that Codex comes from."""
    plain = await laneway("--version")
    assert plain.out.startswith(f"laneway {__version__}\ncodex {TESTED[0]}, ")
    data = json.loads((await laneway("version", "--json")).out)
    assert (data["laneway"], data["codex"]) == (__version__, TESTED[0])


async def test_the_version_has_a_short_flag() -> None:
    """As people try it."""
    assert (await laneway("-V")).out == (await laneway("--version")).out
    assert "-V, --version" in (await laneway("--help")).out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["aks", "what?"], "There is no command aks. Did you mean ask?"),
        (["Ask", "what?"], "There is no command Ask. Did you mean ask?"),
        (["uninstal"], "There is no command uninstal. Did you mean uninstall?"),
        (["xyzzy"], "There is no command xyzzy: `laneway --help` lists them all."),
        (["a\x1b[2Jb"], r"There is no command a\x1b[2Jb: `laneway --help` lists them all."),
    ],
)
async def test_a_command_that_does_not_exist_is_answered_by_the_one_that_was_meant(
    words: list[str], sentence: str, tmp_path: Path
) -> None:
    """One sentence at the terminal, exit code 2; nothing that was typed commands the terminal."""
    ran = await laneway(*words)
    assert (ran.code, ran.out, ran.err) == (2, "", f"laneway: {sentence}\n")
    async with in_terminal(*words, env={}, cwd=tmp_path) as screen:
        assert (await screen.wait_end()).code == 2
        assert screen.text == f"laneway: {sentence}"


async def test_a_flag_in_the_place_of_a_command_is_still_argparses(tmp_path: Path) -> None:
    """It knows which flags there are."""
    ran = await laneway("--verson")
    assert (ran.code, "unrecognized arguments: --verson" in ran.err or "invalid" in ran.err) == (2, True)


async def test_the_version_still_answers_without_a_codex() -> None:
    """And says what is wrong."""
    ran = await laneway("version", "--codex-bin", "/no/codex")
    assert ran.code == 0
    assert "no codex: There is no Codex at /no/codex" in ran.out


async def test_a_reader_that_goes_away_is_no_traceback() -> None:
    """`laneway ask … | head -1`"""
    async with asyncio.timeout(60):
        process = await start("ask", "--rehearse", "%stream 200000 words")
        assert process.stdout is not None
        await process.stdout.readexactly(4)
        process.stdout._transport.close()  # type: ignore[attr-defined]
        assert process.stderr is not None
        err = await process.stderr.read()
        await process.wait()
    assert b"Traceback" not in err


def test_every_command_can_be_configured_alone() -> None:
    """Its flags are built only when it is named."""
    for name in COMMANDS:
        assert name in build_parser([name]).format_help()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_and_action_says_what_it_is_for(name: str) -> None:
    """A sentence above the flags: somebody may come straight to `laneway mail read --help`."""
    waiting = [build_parser([name])]
    seen = []
    while waiting:
        parser = waiting.pop()
        seen.append(parser)
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting.extend(action.choices.values())
    assert [parser.prog for parser in seen if not (parser.description or "").rstrip()] == []


async def test_logs_go_where_they_are_told(tmp_path: Path) -> None:
    """By flag or by environment, with the ids of the session on every line that has one."""
    file = tmp_path / "laneway.log"
    ran = await laneway("ask", "--rehearse", "--log-level", "debug", "--log-file", str(file), "%say hi")
    assert (ran.code, ran.out) == (0, "hi\n")
    lines = file.read_text().splitlines()
    assert any("DEBUG codex.link turn/start done  agent=agent-" in line for line in lines)
    env = {"LANEWAY_LOG_LEVEL": "info", "LANEWAY_LOG_FORMAT": "json"}
    ran = await laneway("ask", "--rehearse", "%say hi", env=env)
    told = [json.loads(line) for line in ran.err.splitlines() if line.startswith("{")]
    assert [line["message"] for line in told] == ["session started", "session closed after 1 turn"]
    assert all(line["agent"].startswith("agent-") and line["thread"] for line in told)


async def test_raw_bytes_are_logged_only_at_trace() -> None:
    """And nothing of it on standard output."""
    ran = await laneway("ask", "--rehearse", "--log-level", "trace", "%say hi")
    assert ran.out == "hi\n"
    assert '→ {"id":"hello","method":"initialize"' in ran.err
    assert '← {"id":1,"result":' in ran.err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--log-level", "loud"], "argument --log-level: invalid choice: 'loud'"),
        (["--log-format", "xml"], "argument --log-format: invalid choice: 'xml'"),
        (["--log-file", "/proc/none/log"], "laneway: The log file /proc/none/log cannot be written: "),
        (["--log-file", "/none/log"], "The log file /none/log cannot be written: there is no folder /none."),
    ],
)
async def test_a_wrong_log_flag_is_told_before_anything_is_started(flags: list[str], sentence: str) -> None:
    """With exit code 2, as for every wrong command line."""
    ran = await laneway("ask", "--rehearse", *flags, "hi")
    assert ran.code == 2
    assert sentence in ran.err


async def test_tools_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    """Else somebody would wait for them."""
    ran = await laneway("mcp", "--tools", "codex,hammers")
    assert (ran.code, ran.out) == (2, "")
    assert "tools must be a list of codex, sessions, mail, jobs, not" in ran.err


async def test_log_settings_in_a_file_count_too(tmp_path: Path) -> None:
    """The global configuration, below flags and environment."""
    config = tmp_path / ".config" / "atm" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[laneway]\nlog_level = "info"\nlog_format = "json"\n')
    env = {"HOME": str(tmp_path)}
    ran = await laneway("ask", "--rehearse", "%say hi", env=env)
    assert '"message": "session started"' in ran.err
    quiet = await laneway("ask", "--rehearse", "--log-level", "error", "%say hi", env=env)
    assert "session started" not in quiet.err


@pytest.mark.parametrize("columns", ["", "0", "40", "200", "-7", "wide"])
def test_help_is_as_wide_as_the_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured as Python's own `shutil` does, which argparse would load for every command."""
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal_width() == shutil.get_terminal_size().columns


@pytest.mark.parametrize(("home", "problem"), [("", "is not set"), ("here", "is not an absolute path")])
@pytest.mark.parametrize("words", [("ask", "hi"), ("config", "set", "model", "x"), ("mcp",), ("doctor",)])
async def test_without_a_home_nothing_is_run_or_written(
    words: tuple[str, ...], home: str, problem: str
) -> None:
    """Files would go to `/`, or to the home of somebody else."""
    ran = await laneway(*words, env={"HOME": home})
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"laneway: HOME {problem}: set it to your home folder, where your settings and Codex's are.\n"
    )


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("mcp", b"This is an MCP server: it waits for a client on standard input."),
        ("mcp-server", b"This is an MCP server: it waits for a client on standard input."),
        ("acp", b"This is an ACP agent for editors: it waits for a client on standard input."),
    ],
)
async def test_a_server_at_a_terminal_says_what_it_waits_for(
    command: str, sentence: bytes, tmp_path: Path
) -> None:
    """And how to register it; a client's pipe hears nothing of it."""
    env = {"CODEX_HOME": str(tmp_path)}
    ours, theirs = os.openpty()
    try:
        process = await start(command, env=env, stdin=theirs, stderr=theirs)
        async with asyncio.timeout(60):
            seen = await read_until(ours, b"Ctrl-C ends it.")
            process.terminate()
            await process.communicate()
    finally:
        os.close(theirs)
        os.close(ours)
    assert sentence in seen
    assert b"To register it: `laneway setup " in seen
    piped = await laneway(command, env=env)
    assert "waits for a client" not in piped.err
