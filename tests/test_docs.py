"""What the documents name exists: paths, make targets, commands and their flags."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from laneway.cli.main import COMMANDS, build_parser, command_first
from laneway.rehearsal.script import HELP

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
MADE = {".venv", ".venv/bin/pytest", "bench/results.json"}
"""Paths that exist only after set-up."""

every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def spoken(text: str) -> str:
    """A document without its code blocks."""
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


@every_document
def test_every_path_in_a_document_exists(document: Path) -> None:
    """In backticks or as a link."""
    text = spoken(document.read_text())
    named = set(re.findall(r"`((?:src|tests|docs|scripts|bench|requirements)/[\w./-]+)`", text))
    named |= {link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link}
    missing = [
        path for path in named - MADE if not (ROOT / path).exists() and not (document.parent / path).exists()
    ]
    assert missing == []


@every_document
def test_every_make_target_in_a_document_exists(document: Path) -> None:
    """Also in code blocks."""
    named = set(re.findall(r"(?:^|`)make ((?:[a-z-]+ ?)+?)(?=`|\s*#|$)", document.read_text(), re.MULTILINE))
    assert {target for words in named for target in words.split()} <= TARGETS


@every_document
def test_every_command_line_in_a_document_is_understood(document: Path) -> None:
    """The commands exist and take these flags."""
    for block in blocks(document.read_text(), "sh"):
        for words in command_lines(block):
            if words[:1] == ["--version"]:
                continue
            words = command_first(words)
            assert words[0] in COMMANDS, words
            options = build_parser(words).parse_args(words)
            assert callable(options.run)


def command_lines(block: str) -> list[list[str]]:
    """The `laneway …` calls in a block of shell, behind pipes too; quotes may span lines."""
    bare = re.sub(r"\s+# .*$", "", block, flags=re.MULTILINE)
    lexer = shlex.shlex(bare, posix=True, punctuation_chars="|;&\n")
    lexer.whitespace = " \t"
    lexer.commenters = ""
    lexer.whitespace_split = True  # a comma is part of a word
    found: list[list[str]] = []
    words: list[str] = []
    for word in [*lexer, "\n"]:
        if set(word) <= set("|;&\n"):
            if words[:1] == ["laneway"]:
                found.append(words[1:])
            words = []
        else:
            words.append(word)
    return found


def test_the_command_lines_are_really_found() -> None:
    """A test that checks nothing would pass for ever."""
    text = 'git diff | laneway ask -  # why\nlaneway ask "%think\n%run ls" -m x\n'
    assert command_lines(text) == [["ask", "-"], ["ask", "%think\n%run ls", "-m", "x"]]


def test_the_script_language_is_documented_word_for_word() -> None:
    """`%help` and the page say the same."""
    assert HELP in (ROOT / "docs" / "rehearsal.md").read_text()


def test_the_page_of_versions_is_the_table_of_the_code() -> None:
    """`scripts/generate_versions.py` writes it."""
    from scripts.generate_versions import PAGE, page

    assert PAGE.read_text() == page()


def test_every_module_of_the_house_is_in_its_plan() -> None:
    """A newcomer finds the room for a line of code by the names alone."""
    plan = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {path.parent for path in (ROOT / "src" / "laneway").glob("*/*.py")}
    for room in sorted(rooms):
        assert room.name in plan, room
