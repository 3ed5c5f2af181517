"""The man page: what the command line knows, the same wherever it is written, and in the wheel."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from scripts.generate_man import PAGE, escaped, page

from laneway.cli.main import COMMANDS, build_parser

ROOT = Path(__file__).resolve().parent.parent


def test_the_page_is_what_the_command_line_says_today() -> None:
    """`make man` writes it anew."""
    assert PAGE.read_text() == page()


def test_every_command_and_every_flag_is_in_it() -> None:
    """Also of the commands below."""
    text = page()
    for name in COMMANDS:
        assert f".SS laneway {escaped(name)}\n" in text
    waiting: list[argparse.ArgumentParser] = [build_parser()]
    while waiting:
        for action in waiting.pop()._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()
            elif action.help != argparse.SUPPRESS:
                assert all(rf"\fB{escaped(flag)}\fR" in text for flag in action.option_strings)


@pytest.mark.parametrize(("columns", "language"), [("40", "C"), ("300", "de_DE.UTF-8")])
def test_the_page_does_not_depend_on_who_writes_it(columns: str, language: str) -> None:
    """Neither on the width of a terminal nor on a language."""
    env = {**os.environ, "COLUMNS": columns, "LANG": language, "LANGUAGE": "de", "PYTHONUTF8": "1"}
    script = "import sys; from scripts.generate_man import page; sys.stdout.write(page())"
    argv = [sys.executable, "-c", script]
    ran = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT, env=env, timeout=60)
    assert ran.stdout == page()


def test_no_text_is_taken_for_a_request() -> None:
    """Dots and quotes at the beginning of a line, backslashes, and letters that a terminal may not have."""
    assert escaped(".SH x") == "\\&.SH x"
    assert escaped("'x' `y` a\\b") == "\\(aqx\\(aq \\(gay\\(ga a\\eb"
    assert escaped("--all …") == "\\-\\-all \\[u2026]"
    assert page().isascii()


def test_a_formatter_has_nothing_to_complain_about() -> None:
    """Where there is one."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    argv = ["groff", "-man", "-Tutf8", "-ww", "-z", str(PAGE)]
    ran = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert ran.stderr == ""


def test_the_page_comes_with_the_wheel(tmp_path: Path) -> None:
    """Where `man` of an environment, and pipx, look for it."""
    argv = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(argv, capture_output=True, check=True, timeout=110)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        [name] = [each for each in opened.namelist() if each.endswith("/share/man/man1/laneway.1")]
        assert opened.read(name) == PAGE.read_bytes()
