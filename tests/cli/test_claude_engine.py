"""Claude as the engine of commands: `ask`, `login` and `doctor` with the real Claude Code."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from laneway.claude import locate, version
from tests.cli.support import laneway
from tests.cli.test_doctor import doctor

NO_CODEX = """
import sys
sys.modules["codex_cli_bin"] = None
from laneway.__main__ import main
sys.exit(main())
"""
NOBODY = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


def of(home: Path) -> dict[str, str]:
    return {**NOBODY, "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude")}


def echoing_claude(folder: Path) -> str:
    """Says what it was called with, and what it was given."""
    path = folder / "claude"
    path.write_text('#!/bin/sh\nfor word; do echo "<$word>"; done\nenv\nexit 7\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


async def test_claude_is_asked_and_answers(tmp_path: Path) -> None:
    """Only the answer goes to standard output; nothing of the user's is touched."""
    ran = await laneway("ask", "--engine", "claude", "--rehearse", "%say hello there", env=of(tmp_path))
    assert (ran.code, ran.out) == (0, "hello there\n")
    assert not (tmp_path / ".claude").exists()


async def test_claude_is_asked_with_all_that_ask_has(tmp_path: Path) -> None:
    """Events for programs, a schema, a file for the last message; what nobody answers is declined."""
    (tmp_path / "schema.json").write_text('{"type": "object", "properties": {"a": {"type": "integer"}}}')
    words = ("--json", "--output-schema", str(tmp_path / "schema.json"), "-o", str(tmp_path / "last"))
    script = '%run touch made.txt\n%say {"a": 3}'
    ran = await laneway("ask", "--engine", "claude", "--rehearse", *words, script, env=of(tmp_path))
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 0, ran.err
    assert [event["status"] for event in events if event["event"] == "activity"] == ["running", "declined"]
    assert [event["question"]["engine"] for event in events if event["event"] == "asked"] == ["Claude"]
    assert events[-1] == {
        "event": "turn_done",
        "turn_id": events[-1]["turn_id"],
        "status": "completed",
        "text": '{"a":3}',
    }
    assert (tmp_path / "last").read_text() == '{"a":3}'


async def test_the_setting_makes_claude_the_engine(tmp_path: Path) -> None:
    """A failed turn exits with 1, in Claude's words."""
    ran = await laneway("ask", "--rehearse", "%fail 500 oh", env={**of(tmp_path), "LANEWAY_ENGINE": "claude"})
    assert (ran.code, "API Error: 500 oh" in ran.err) == (1, True)


async def test_what_claude_cannot_do_is_one_sentence(tmp_path: Path) -> None:
    """Before a model is asked."""
    for words, problem in (
        (("-s", "workspace-write"), "Claude cannot keep to the sandbox workspace-write."),
        (("-c", "web_search=true"), "Claude cannot take Codex's config (web_search)."),
        (("-p", "fast"), "--profile cannot be used with Claude"),
        (("--claude-bin", "/nowhere/claude"), "There is no Claude Code at /nowhere/claude"),
    ):
        ran = await laneway("ask", "--engine", "claude", "--rehearse", *words, "hi", env=of(tmp_path))
        assert ran.code != 0
        assert ran.err.startswith(f"laneway: {problem}"), ran.err
        assert ran.out == ""


async def test_without_a_login_ask_says_how_to_log_in(tmp_path: Path) -> None:
    """In one sentence, without asking a model."""
    ran = await laneway("ask", "--engine", "claude", "hi", env=of(tmp_path))
    assert ran.code == 4
    assert ran.err == "laneway: Nobody is logged in to Claude: run `laneway login --engine claude`\n"


async def test_the_login_is_claude_codes_own(tmp_path: Path) -> None:
    """Arguments, environment and exit code; none of our secrets."""
    words = ("--engine", "claude", "--claude-bin", echoing_claude(tmp_path), "--console", "--new=1")
    ran = await laneway("login", *words, env={"LANEWAY_TELEGRAM_TOKEN": "abc", "OF_THE_USER": "kept"})
    assert ran.code == 7
    assert ran.out.startswith("<auth>\n<login>\n<--console>\n<--new=1>\n")
    assert "OF_THE_USER=kept" in ran.out
    assert "LANEWAY_TELEGRAM_TOKEN" not in ran.out


async def test_the_status_of_the_login_is_known_without_a_model(tmp_path: Path) -> None:
    """With a key, and with nothing."""
    words = ("login", "--engine", "claude", "--status")
    nobody, keyed, other = await asyncio.gather(
        laneway(*words, env=of(tmp_path)),
        laneway(*words, "--json", env={**of(tmp_path), "ANTHROPIC_API_KEY": "sk-none"}),
        laneway(*words, "--device-auth", env=of(tmp_path)),
    )
    assert (nobody.code, nobody.out) == (
        1,
        "Nobody is logged in to Claude: run `laneway login --engine claude`.\n",
    )
    assert (keyed.code, json.loads(keyed.out)) == (0, {"logged_in": True, "type": "ANTHROPIC_API_KEY"})
    assert (other.code, other.err) == (2, "laneway: --status takes no --device-auth.\n")


async def test_doctor_tries_claude_code(tmp_path: Path) -> None:
    """Binary, version, login and one rehearsed turn."""
    home = tmp_path / "margarethe"
    home.mkdir()
    code, checks = await doctor(home, "--rehearse", PATH="/usr/bin:/bin", **NOBODY)
    assert code == 0, checks
    assert checks["claude"]["facts"]["version"] in version.TESTED
    assert checks["claude"]["facts"]["source"] == "laneway[claude]"
    assert checks["claude-login"]["severity"] == "note"
    assert checks["claude-turn"]["severity"] == "ok"


async def test_a_missing_codex_is_only_noted_where_claude_is_the_engine(tmp_path: Path) -> None:
    """Without that setting nothing works, and doctor says so."""
    path = tmp_path / "bin"
    path.mkdir()
    bare = {**of(tmp_path), "PATH": str(path), "LANEWAY_CODEX_BIN": ""}
    for engine, severity in (("claude", "note"), ("codex", "error")):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", NO_CODEX, "doctor", "--json"),
            env={**os.environ, **bare, "LANEWAY_ENGINE": engine},
            stdin=DEVNULL,
            stdout=PIPE,
        )
        out, _ = await process.communicate()
        (check,) = [each for each in json.loads(out)["checks"] if each["name"] == "codex"]
        assert check["severity"] == severity
        assert check["message"].startswith("No Codex was found: install one with")


async def test_doctor_tells_a_claude_code_that_is_none(tmp_path: Path) -> None:
    """An error only where somebody named it."""
    home = tmp_path / "margarethe"
    home.mkdir()
    code, checks = await doctor(home, "--rehearse", "--claude-bin", "/nowhere/claude", **NOBODY)
    assert code == 3
    assert checks["claude"]["severity"] == "error"
    assert locate.ENVIRONMENT_KEY not in checks["claude"]["message"]
