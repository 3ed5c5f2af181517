"""Loading of plugins by name: exactly those, and their failures one by one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from laneway.lanes import get_all_lanes, loading
from laneway.lanes.adapter import PluginLane
from laneway.lanes.loading import LaneProblem, LoadedLanes, load_lanes, make_lanes
from tests.lanes.samples import AIDER, IMPORT_LINE

pytestmark = pytest.mark.usefixtures("fresh_registry")
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module that can be imported during the test."""
    folder = tmp_path / "installed"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(loading, "_loaded", {})
    written: list[str] = []

    def write_module(text: str, name: str = "") -> str:
        name = name or f"lane_of_a_test_{len(written)}"
        (folder / f"{name}.py").write_text(text)
        written.append(name)
        return name

    yield write_module
    for name in written:
        sys.modules.pop(name, None)


@pytest.mark.covers("003-lane.11")
def test_the_documents_sample_is_loaded_from_a_module_with_one_import_line(write: Write) -> None:
    """By the name in the settings, and twice is once."""
    name = write(IMPORT_LINE + AIDER)
    expected = LoadedLanes({name: ("aider",)})
    assert load_lanes([name, name]) == expected
    assert load_lanes([name]) == expected
    (lane,) = make_lanes(expected).values()
    assert isinstance(lane, PluginLane)
    assert (lane.name, lane.usage) == ("aider", "Usage: /aider <task>")


@pytest.mark.covers("003-lane.12")
def test_nothing_is_imported_that_was_not_named(write: Write) -> None:
    """A module beside it is left alone."""
    write("raise AssertionError('imported')")
    assert load_lanes([]) == LoadedLanes({})
    assert get_all_lanes() == {}


@pytest.mark.covers("003-lane.12")
def test_a_module_that_is_missing_is_told_by_name(write: Write) -> None:
    """Apart from one that misses another."""
    missing = "no_such_module_of_lanes"
    lacking = write(f"import {missing}")
    assert load_lanes([f"{missing}.lane", lacking]).problems == (
        LaneProblem(
            f"{missing}.lane",
            f"There is no module {missing}.lane: install it into the environment of Laneway.",
        ),
        LaneProblem(lacking, f"The module {lacking} cannot be imported: No module named '{missing}'."),
    )


@pytest.mark.covers("003-lane.12")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("raise RuntimeError('no brush, password=hunter2')", "RuntimeError: no brush, password=[redacted]"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("def", "SyntaxError: invalid syntax"),
    ],
)
def test_a_module_that_fails_leaves_no_lane_and_keeps_no_other_from_loading(
    text: str, why: str, write: Write
) -> None:
    """What it had registered is taken back, so that a corrected one can take the name."""
    broken = write(IMPORT_LINE + AIDER + text)
    whole = write(IMPORT_LINE + AIDER)
    loaded = load_lanes([broken, whole])
    assert loaded.commands == {whole: ("aider",)}
    ((module, problem),) = [(each.module, each.problem) for each in loaded.problems]
    assert module == broken
    assert problem.startswith(f"The module {broken} cannot be imported: {why}")


@pytest.mark.covers("003-lane.12")
@pytest.mark.parametrize(
    ("members", "why"),
    [
        ("def __init__(self): raise RuntimeError('no key')", "RuntimeError: no key."),
        ("abilities = property(lambda self: 1 / 0)", "ZeroDivisionError: division by zero."),
        ("usage = 7", "its name, usage and description must be texts, and its abilities LaneAbilities."),
        ("def __init__(self): self.name = 'other'", "it calls itself other."),
    ],
)
def test_a_lane_that_cannot_be_made_is_a_problem_of_its_module(members: str, why: str, write: Write) -> None:
    """Of the richer contract: every conversation makes one, so none could begin."""
    name = write(
        "from laneway.lanes import register_full_lane\n"
        "from tests.lanes.test_lane_kit import NotingLane\n"
        "@register_full_lane\n"
        f"class Broken(NotingLane):\n    name = 'broken'\n    {members}\n"
    )
    whole = write(IMPORT_LINE + AIDER)
    loaded = load_lanes([name, whole])
    assert loaded.commands == {whole: ("aider",)}
    assert loaded.problems == (
        LaneProblem(name, f"The lane broken of the module {name} cannot be made: {why}"),
    )


def test_a_module_without_a_lane_is_a_problem(write: Write) -> None:
    """It is in the settings for a reason."""
    name = write("")
    assert load_lanes([name]).problems == (LaneProblem(name, f"The module {name} registers no lane."),)


def test_a_collision_is_a_problem_of_the_second_module(write: Write) -> None:
    """The first one keeps the name."""
    first, second = write(IMPORT_LINE + AIDER), write(IMPORT_LINE + AIDER)
    loaded = load_lanes([first, second])
    assert loaded.commands == {first: ("aider",)}
    assert "Lane command 'aider' already registered by AiderLane" in loaded.problems[0].problem


def test_a_module_that_prints_does_not_print_into_our_output(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs may read that."""
    load_lanes([write(IMPORT_LINE + AIDER + "\nprint('hello')\n")])
    assert capsys.readouterr() == ("", "hello\n")


def test_a_repositorys_own_module_of_that_name_is_not_imported(tmp_path: Path) -> None:
    """`python -m` and `-c` have the folder they are in on their path; PYTHONPATH is the user's own word."""
    (tmp_path / "lane_of_a_repository.py").write_text(IMPORT_LINE + AIDER)
    program = (
        "from laneway.lanes import loading; print(*loading.load_lanes(['lane_of_a_repository']).commands)"
    )

    def commands(*more: str) -> str:
        path = os.pathsep.join([*more, *(each for each in sys.path if each)])
        environment = {**os.environ, "PYTHONPATH": path}
        words = [sys.executable, "-c", program]
        return subprocess.run(
            words, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    assert commands() == "\n"
    assert commands(str(tmp_path)) == "lane_of_a_repository\n"
