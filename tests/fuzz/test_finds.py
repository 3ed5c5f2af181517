"""Everything the fuzzer ever found, again; and the seeds that it begins with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS, folders, loop

FINDS = sorted((Path(__file__).parent / "finds").glob("*/*"))


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """The fuzzer keeps one loop and one folder for all its runs; here they end with the test."""
    yield
    if loop.cache_info().currsize:
        loop().close()
        loop.cache_clear()
    if folders.cache_info().currsize:
        folders()[0].cleanup()
        folders.cache_clear()


@pytest.mark.parametrize("find", FINDS, ids=lambda path: f"{path.parent.name}-{path.name[:12]}")
def test_what_was_found_once_stays_fixed(find: Path) -> None:
    """A find is a file under the name of its target; whoever fixes it leaves the file."""
    TARGETS[find.parent.name](find.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_holds_for_its_seeds(name: str) -> None:
    """The fuzzer begins where everything is well."""
    for seed in seeds(name):
        TARGETS[name](seed)


def test_every_find_belongs_to_a_target() -> None:
    """A renamed target must take its finds along."""
    assert {find.parent.name for find in FINDS} <= set(TARGETS)
