"""Completion: the bash script in a real bash; the others wherever their shell is at hand."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import pytest

import laneway as package
from laneway.cli.complete_names import COMMAND
from laneway.cli.completion import WRITERS, commands
from laneway.cli.main import COMMANDS, build_parser
from laneway.store.layout import sessions_root
from laneway.store.registry import Entry
from laneway.store.store import Store

TREE = list(commands(build_parser()))


def complete(folder: Path, *words: str, env: dict[str, str] | None = None) -> list[str]:
    """What bash would offer for the last of these words."""
    script = folder / "laneway.bash"
    script.write_text(WRITERS["bash"](TREE))
    asked = f"""
        source {script}
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _laneway
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    ran = subprocess.run(
        ["bash", "--norc", "-c", asked, "bash", "laneway", *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=env,
        timeout=60,
    )
    assert ran.stderr == ""
    return [word for word in ran.stdout.split("\n") if word]


def test_every_command_and_every_flag_of_it_is_offered(tmp_path: Path) -> None:
    """As the parser knows them: nothing has to be kept in step by hand."""
    offered = complete(tmp_path, "")
    assert {*COMMANDS, "--help", "--version"} <= set(offered)
    parser = build_parser()
    (below,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for name in COMMANDS:
        flags = {flag for action in below.choices[name]._actions for flag in action.option_strings}
        assert flags <= set(complete(tmp_path, name, "-")), name


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["comp"], ["completion"]),
        (["completion", "z"], ["zsh"]),
        (["config", "un"], ["unset", "untrust"]),
        (["config", "--team", "x", "un"], ["unset", "untrust"]),
        (["config", "get", "log_f"], ["log_file", "log_format"]),
        (["config", "set", "rol"], ["roles"]),
        (["config", "unset", "--repo", "sandb"], ["sandbox"]),
        (["config", "set", "model", "sandb"], []),
        (["config", "get", "--cwd", "fo"], ["folder one"]),
        (["ask", "--sandbox", "read"], ["read-only"]),
        (["ask", "--sandbox", "=", "read"], ["read-only"]),
        (["ask", "-s", "danger"], ["danger-full-access"]),
        (["ask", "--model", ""], []),
        (["ask", "--model", "config", "--js"], ["--json"]),
        (["ask", "--cwd", "fo"], ["folder one"]),
        (["ask", "--codex-bin", "fo"], ["folder one", "for all"]),
        (["config", "trust", "fo"], ["folder one"]),
        (["config", "trust", "un"], []),
        (["nonsense", "comp"], []),
    ],
)
def test_what_fits_is_offered_and_nothing_else(tmp_path: Path, words: list[str], offered: list[str]) -> None:
    """Choices, folders and files, each where they belong; names with blanks in one piece."""
    (tmp_path / "folder one").mkdir()
    (tmp_path / "for all").write_text("")
    assert sorted(complete(tmp_path, *words)) == offered


@pytest.mark.parametrize("shell", sorted(WRITERS))
def test_the_script_names_every_command_and_flag(shell: str) -> None:
    """In each shell's own words."""
    script = WRITERS[shell](TREE)
    for command in TREE:
        for name in command.path:
            assert name in script
        for flag in command.flags:
            for name in flag.names:
                assert (
                    name if shell != "fish" else f" -{'l' if name[:2] == '--' else 's'} {name.lstrip('-')} "
                ) in script


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_itself_accepts_the_script(shell: str, tmp_path: Path) -> None:
    """Its grammar at least, where that shell is installed."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(WRITERS[shell](TREE))
    ran = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


# ── names of sessions ──────────────────────────────────────────────────────

ODD = "x$(touch oops)"
"""Another program's idea of an id."""


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[dict[str, str]]:
    """One that runs and one that ended, in two teams; and the environment of a shell that has `laneway`."""
    executable = tmp_path / "bin" / "laneway"
    executable.parent.mkdir()
    executable.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m laneway "$@"\n')
    executable.chmod(0o755)
    env = {
        "ATM_HOME": str(tmp_path),
        "HOME": str(tmp_path),
        "PATH": f"{executable.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(package.__file__).parent.parent),
    }
    with ExitStack() as stack:
        for team in ("default", "crew"):
            store = Store(sessions_root(environment=env), team)
            live = stack.enter_context(store.claim(f"reviewer-{team}"))
            live.registry.update(row(team, f"reviewer-{team}", "active", "7f1-live"))
            with store.claim("builder") as ended:
                ended.registry.update(row(team, "builder", "closed", f"8a2-ended-{team}"))
                ended.registry.update(row(team, "builder", "closed", ODD))
        yield env


def row(team: str, identity: str, status: Literal["active", "closed"], thread: str) -> Entry:
    agent_id = ODD if thread == ODD else f"agent-{thread}"
    return Entry(agent_id=agent_id, identity=identity, team=team, status=status, backend_id=thread)


NAMES = [
    (["sessions", "watch", ""], ["agent-7f1-live", "reviewer-default"]),
    (["sessions", "stop", "rev"], ["reviewer-default"]),
    (["sessions", "stop", "7f"], ["7f1-live"]),
    (["sessions", "watch", "--team", "crew", "rev"], ["reviewer-crew"]),
    (["summary", "agent-"], ["agent-8a2-ended-default"]),
    (["summary", "8"], ["8a2-ended-default"]),
    (["ask", "--thread", ""], ["7f1-live", "8a2-ended-default"]),
    (["ask", "--thread", "8"], ["8a2-ended-default"]),
    (["sessions", "watch", "nobody"], []),
]


def in_bash(folder: Path, words: list[str], env: dict[str, str]) -> list[str]:
    return complete(folder, *words, env=env)


def in_zsh(folder: Path, words: list[str], env: dict[str, str]) -> list[str]:
    (folder / "script").write_text(WRITERS["zsh"](TREE))
    asked = f"""
        compdef() {{ : }}
        compadd() {{ shift; print -l -- "$@" }}
        source {folder / "script"}
        words=("$@") CURRENT=$#
        _laneway
    """
    argv = ["zsh", "-f", "-c", asked, "zsh", "laneway", *words]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder, env=env, timeout=60)
    assert ran.stderr == ""
    return [word for word in ran.stdout.split("\n") if word and word.startswith(words[-1])]


def in_fish(folder: Path, words: list[str], env: dict[str, str]) -> list[str]:
    (folder / "script").write_text(WRITERS["fish"](TREE))
    asked = f"source {folder / 'script'}; complete -C $argv[1]"
    argv = ["fish", "--no-config", "-c", asked, shlex.join(["laneway", *words[:-1]]) + f" {words[-1]}"]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder, env=env, timeout=60)
    assert ran.stderr == ""
    return [line.split("\t")[0] for line in ran.stdout.splitlines()]


@pytest.mark.parametrize(("words", "offered"), NAMES)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_names_of_sessions_are_offered_where_one_is_wanted(
    shell: str, words: list[str], offered: list[str], sessions: dict[str, str], tmp_path: Path
) -> None:
    """Of the team that is named; nothing that a shell could take for a command."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    found = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}[shell](tmp_path, words, sessions)
    assert sorted(name for name in found if not name.startswith("-")) == offered
    assert not (tmp_path / "oops").exists()


def test_only_one_session_is_offered_where_one_is_wanted(sessions: dict[str, str], tmp_path: Path) -> None:
    """What is typed behind it is a flag."""
    offered = complete(tmp_path, "sessions", "watch", "reviewer-default", "", env=sessions)
    assert [word for word in offered if not word.startswith("-")] == []


@pytest.mark.parametrize(
    ("words", "broken"),
    [
        (["live", ""], "{ torn"),
        (["live", "", "--team", "../x"], ""),
        (["nonsense", ""], ""),
        (["live"], ""),
        ([], ""),
    ],
)
def test_whatever_is_wrong_nothing_is_said_while_somebody_types(
    words: list[str], broken: str, sessions: dict[str, str], tmp_path: Path
) -> None:
    """Settings that are wrong are for the command itself to complain about."""
    settings = tmp_path / ".config" / "laneway" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(broken)
    argv = [sys.executable, "-m", "laneway", COMMAND, *words]
    ran = subprocess.run(argv, capture_output=True, check=False, cwd=tmp_path, env=sessions, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, b"")
    if broken or "../x" in words or len(words) < 2:
        assert ran.stdout == b""


def test_a_damaged_registry_hides_no_other(sessions: dict[str, str], tmp_path: Path) -> None:
    """The rest is offered."""
    broken = sessions_root(environment=sessions) / "default" / "builder" / "registry.json"
    broken.write_text("{ torn")
    assert complete(tmp_path, "sessions", "watch", "rev", env=sessions) == ["reviewer-default"]


def test_the_names_need_few_modules(sessions: dict[str, str], tmp_path: Path) -> None:
    """Somebody waits for it: no event loop, no Codex, no parser of ours is loaded."""
    argv = [sys.executable, "-X", "importtime", "-m", "laneway", COMMAND, "live", ""]
    ran = subprocess.run(
        argv, capture_output=True, text=True, check=True, cwd=tmp_path, env=sessions, timeout=60
    )
    loaded = {line.rsplit("|", 1)[1].strip() for line in ran.stderr.splitlines() if "|" in line}
    assert ran.stdout.split() == ["reviewer-default", "agent-7f1-live"]
    assert not {"asyncio", "laneway.cli.sessions", "laneway.codex.engine", "laneway.core.hub"} & loaded


def test_no_help_text_can_break_out_of_its_quotes() -> None:
    """Whoever writes one does not think of three shells."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--odd", help='it\'s 100%% `odd` \\ "$(x)"\nand long')
    for shell, write in WRITERS.items():
        script = write(list(commands(parser)))
        assert "it's" not in script, shell
        assert "\\ " not in script.replace("printf '%s\\n' ", ""), shell
