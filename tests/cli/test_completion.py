"""Completion: the bash script in a real bash; the others wherever their shell is at hand."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest

from laneway.cli.completion import WRITERS, commands
from laneway.cli.main import COMMANDS, build_parser

TREE = list(commands(build_parser()))


def complete(folder: Path, *words: str) -> list[str]:
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
        (["config", "un"], ["untrust"]),
        (["config", "--team", "x", "un"], ["untrust"]),
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


def test_no_help_text_can_break_out_of_its_quotes() -> None:
    """Whoever writes one does not think of three shells."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--odd", help='it\'s 100%% `odd` \\ "$(x)"\nand long')
    for shell, write in WRITERS.items():
        script = write(list(commands(parser)))
        assert "it's" not in script, shell
        assert "\\ " not in script.replace("printf '%s\\n' ", ""), shell
