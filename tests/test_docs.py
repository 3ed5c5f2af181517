"""What the documents name exists: paths, make targets, commands and their flags."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from pathlib import Path

import pytest

from laneway.cli.main import COMMANDS, build_parser, command_first
from laneway.rehearsal.script import HELP
from tests.cli.support import start

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
MADE = {".venv", ".venv/bin/pytest", "bench/results.json"}
"""Paths that exist only after set-up."""

every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


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


def test_the_walk_counts_files_that_exist() -> None:
    """Each list is as long as it says, and names modules of ours; the tables say the same."""
    _, _, walk = (ROOT / "docs" / "architecture.md").read_text().partition("\n## Walk\n")
    walk, _, _ = walk.partition("\n## ")
    _, _, named = (ROOT / "docs" / "decisions.md").read_text().partition("\n## The files of the walk\n")
    lists = re.findall(r"^- [^\n]*? \((\d+)\): (.*?)\.$", named, re.MULTILINE | re.DOTALL)
    assert len(lists) == 7
    rows = [row for row in walk.splitlines() if row.startswith("| ") and not row.startswith("| to ")]
    for (count, text), row in zip(lists, rows, strict=True):
        files = re.findall(r"`([\w/]+\.py)`", text)
        assert [name for name in files if not (ROOT / "src" / "laneway" / name).exists()] == []
        assert (len(files), len(set(files))) == (int(count), int(count))
        assert re.match(rf"{count}\b", row.split(" | ")[-1])


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
            if words[-1] == "--help":
                with pytest.raises(SystemExit, match=r"^0$"):
                    build_parser(words).parse_args(words)
                continue
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


EXITS = re.compile(r"[ \t]+# .*exits with (\d+).*$", re.MULTILINE)
RUN_S = 120
"""For one command line: the slowest takes five seconds on a quiet machine."""
EXITS_OF_DOCTOR = {0, 1, 3}
"""Which of them it is depends on the machine; 2 would be a wrong command line."""


def rehearsed(text: str) -> dict[tuple[str, ...], int]:
    """Every command line of a page that needs no account, with the exit code that its comment promises."""
    found: dict[tuple[str, ...], int] = {}
    for block in blocks(text, "sh"):
        for words in command_lines(EXITS.sub(r" exits-with=\1", block)):
            code = int(words.pop().partition("=")[2]) if words[-1].startswith("exits-with=") else 0
            if "--rehearse" in words:
                found[tuple(words)] = code
    return found


REHEARSED = {words: code for page in DOCUMENTS for words, code in rehearsed(page.read_text()).items()}


def test_the_exit_code_that_a_comment_promises_is_found() -> None:
    """Behind a prompt of several lines, too."""
    text = '```sh\nlaneway ask --rehearse "%think\n%fail 500"   # as it exits with 1\nlaneway ask hi\n```\n'
    assert rehearsed(text) == {("ask", "--rehearse", "%think\n%fail 500"): 1}
    assert len(REHEARSED) > 5
    assert 1 in REHEARSED.values()


@pytest.mark.parametrize("words", REHEARSED, ids=" ".join)
async def test_a_command_line_that_needs_no_account_exits_as_documented(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """Run in an empty folder with the real Codex. Nobody is at a terminal, so questions are declined."""
    path = os.pathsep.join(
        str(ROOT / part) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part
    )
    async with asyncio.timeout(RUN_S):
        process = await start(*words, env={"PYTHONPATH": path}, cwd=tmp_path)
        out, err = await process.communicate()
    expected = EXITS_OF_DOCTOR if words[0] == "doctor" else {REHEARSED[words]}
    assert process.returncode in expected, (out + err).decode()


def test_every_page_is_in_the_index() -> None:
    """Whoever opens the folder finds it."""
    index = (ROOT / "docs" / "README.md").read_text()
    docs = ROOT / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.glob("**/*.md")} - {"README.md"}
    assert {page for page in pages if f"({page})" not in index} == set()


def test_the_script_language_is_documented_word_for_word() -> None:
    """`%help` and the page say the same."""
    assert HELP in (ROOT / "docs" / "rehearsal.md").read_text()


def test_the_page_of_versions_is_the_table_of_the_code() -> None:
    """`scripts/generate_versions.py` writes it."""
    from scripts.generate_versions import PAGE, page

    assert PAGE.read_text() == page()


def test_every_package_is_on_the_page_of_the_architecture() -> None:
    """A newcomer finds the place for a line of code by the names alone."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    packages = {path.parent for path in (ROOT / "src" / "laneway").glob("*/*.py")}
    for package in sorted(packages):
        assert f"`{package.relative_to(ROOT)}" in page, package
