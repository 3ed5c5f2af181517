"""The page for users, docs/acp.md, says what is so: modes, commands, flags, and tests that exist."""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path

import pytest

from laneway.cli import acp
from laneway.commands.slash import COMMANDS
from laneway.core.access import KEPT, MODES

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "acp.md").read_text()
NODE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
OF_SETUP = {"--door", "--remove"}
OF_OTHERS = {"--port"}
"""Of programs that the page tells how to start."""
COLUMNS = 5


def section(title: str) -> str:
    after = PAGE.split(f"\n### {title}\n", 1)[1]
    return re.split(r"\n##+ ", after, maxsplit=1)[0]


def rows(text: str) -> list[list[str]]:
    """Of all tables in a text, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    ruled = [index for index, line in enumerate(lines) if set(line) <= set("|-")]
    return [row for index, row in enumerate(cells) if index not in ruled and index + 1 not in ruled]


def functions_of(file: str) -> set[str]:
    path = ROOT / file
    tree = ast.parse(path.read_text()) if path.exists() else ast.Module([], [])
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


COMPARED = rows(section("Compared"))


def test_every_test_that_the_comparison_names_exists() -> None:
    """A claim whose test is gone is a claim without proof."""
    named = NODE.findall(section("Compared"))
    assert named
    missing = [f"{file}::{test}" for file, test in named if test not in functions_of(file)]
    assert missing == []


@pytest.mark.parametrize("row", COMPARED, ids=lambda row: row[0])
def test_every_row_of_the_comparison_says_all_and_names_its_test(row: list[str]) -> None:
    """What it is, how it is with each of the three, and nothing but tests in the last column."""
    assert len(row) == COLUMNS
    assert all(row[: COLUMNS - 1])
    assert NODE.search(row[-1])
    assert NODE.sub("", row[-1]).strip() == ""


def test_no_two_rows_compare_the_same_thing() -> None:
    """Rows are found by their names."""
    names = [row[0] for row in COMPARED]
    assert len(names) == len(set(names)) > 40


def test_the_page_has_every_mode_and_every_command_and_no_other() -> None:
    """Whoever reads it can use all of it."""
    text = section("Modes and options")
    modes = [row[0].split("`")[1] for row in rows(text) if len(row) == 3]
    assert modes == list(MODES)
    assert f"`{KEPT}`" in text
    told = set(re.findall(r"`/([a-z-]+)", section("Commands"))) - {"usr"}
    assert told == set(COMMANDS)


def test_the_page_has_every_flag_of_its_own() -> None:
    """And the parser knows each that it names."""
    parser = argparse.ArgumentParser()
    acp.configure(parser)
    known = set(FLAG.findall(parser.format_help())) - OF_SETUP
    told = set(FLAG.findall(PAGE)) - OF_SETUP - OF_OTHERS
    assert told <= known
    assert known - told <= {"--help"}
