"""Requirements and the tests that show them: what tests say of themselves, and the lists in the repository.

A test names its requirements by `@pytest.mark.covers("FR-2.5", …)`, or by its own name
(`test_fr_2_5_…`). `seed_001.toml`, `seed_003.toml` and `seed_004.toml` are the lists that people read;
`python -m tests.requirements.manifest` writes their tests anew from what the tests say, and keeps all else.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
HEAD = """\
# {what}, and the tests that show it. `tests` are written by
# `python -m tests.requirements.manifest` from the marks on the tests; all else is written by hand.
# `later` is what is not shown yet, and where it belongs; `bench` is measured, not tested.
"""

FUNCTIONAL = {
    "FR-1": 3,
    "FR-2": 8,
    "FR-3": 4,
    "FR-4": 7,
    "FR-5": 5,
    "FR-6": 4,
    "FR-7": 4,
    "FR-8": 13,
    "FR-9": 3,
    "FR-10": 2,
    "FR-11": 3,
    "FR-12": 5,
    "FR-13": 7,
    "FR-14": 3,
    "FR-15": 2,
    "FR-16": 6,
    "FR-17": 11,
    "FR-18": 5,
    "FR-19": 5,
    "FR-20": 5,
}
"""How many parts each chapter of the seed has."""
CODES = [f"NFR-6/-3200{number}" for number in range(1, 10)]
SEED_001 = [
    *(f"{chapter}.{part}" for chapter, parts in FUNCTIONAL.items() for part in range(1, parts + 1)),
    *(f"NFR-{number}" for number in range(1, 7)),
    *CODES,
    *("NFR-6/-32602", "NFR-6/child", "NFR-6/isError"),
]
JOBS = {
    "004-tools": 6,
    "004-concurrency": 1,
    "004-boss": 5,
    "004-recursion": 1,
    "004-tree": 3,
    "004-a2": 6,
    "004-bounds": 2,
    "004-events": 2,
    "004-document": 1,
    "J-tools": 21,
    "J-workers": 18,
    "J-supervision": 9,
    "J-a2": 23,
    "J-nodes": 7,
    "J-boss": 4,
    "J-proof": 6,
}
"""How many parts each requirement of seed 004 has, and each section of the issue about jobs."""
SCENARIOS = {
    "004-tools": ("s",),
    "004-concurrency": ("s",),
    "004-boss": ("s",),
    "004-recursion": ("s",),
    "004-tree": ("s",),
    "004-a2": ("s1", "s2"),
    "004-bounds": ("s",),
    "004-cancel": ("s1", "s2"),
    "004-events": ("s",),
    "004-document": ("s",),
}
SEED_004 = [
    *(f"{chapter}.{part}" for chapter, parts in JOBS.items() for part in range(1, parts + 1)),
    *(f"{chapter}.{name}" for chapter, names in SCENARIOS.items() for name in names),
    "004-git",
]
LANES = {"003-verify": 9, "003-case": 15, "003-lane": 14}
"""Of seed 003: its verification points, its edge cases, and the parts of its plugin contract."""
SEED_003 = [f"{chapter}.{part}" for chapter, parts in LANES.items() for part in range(1, parts + 1)]

Requirement = dict[str, Any]


class Listing(NamedTuple):
    """One list of requirements in the repository."""

    path: Path
    what: str
    ids: list[str]
    """All of them, in the order of the list."""

    def read(self) -> dict[str, Requirement]:
        """As it stands in the repository."""
        return tomllib.loads(self.path.read_text())

    def written(self, requirements: dict[str, Requirement]) -> str:
        """As a file."""
        head = HEAD.format(what=self.what)
        return head + "".join(_entry(name, requirements[name]) for name in self.ids)


_HERE = Path(__file__).parent
LISTINGS = (
    Listing(_HERE / "seed_001.toml", "Every requirement of seed 001", SEED_001),
    Listing(
        _HERE / "seed_003.toml",
        "Seed 003: its verification points, its edge cases and its contract of lanes",
        SEED_003,
    ),
    Listing(
        _HERE / "seed_004.toml",
        "Seed 004 with its scenarios, and the sentences of the issue about jobs (J)",
        SEED_004,
    ),
)


def tagged() -> dict[str, list[str]]:
    """By requirement, the tests that say that they show it, by reading and not by running them."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text()
        if "covers(" not in text and "_fr_" not in text:
            continue  # parsing all of them takes seconds
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for requirement in dict.fromkeys(_ids(node)):
                    found[requirement].append(f"{path.relative_to(ROOT)}::{node.name}")
    return dict(found)


def _ids(test: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for chapter, part in re.findall(r"(?<=_)fr_(\d+)_(\d+)(?=_)", test.name):
        yield f"FR-{chapter}.{part}"
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.covers":
            yield from (str(ast.literal_eval(argument)) for argument in mark.args)


def _entry(name: str, requirement: Requirement) -> str:
    lines = ["", f'["{name}"]', f"asks = {_text(requirement['asks'])}"]
    lines += [f"{key} = {_text(requirement[key])}" for key in ("later", "bench") if key in requirement]
    if requirement.get("tests"):
        lines += ["tests = [", *(f"  {_text(test)}," for test in requirement["tests"]), "]"]
    return "\n".join([*lines, ""])


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main() -> int:
    shown = tagged()
    for listing in LISTINGS:
        known = listing.read()
        requirements = {name: {**known[name], "tests": shown.get(name, [])} for name in listing.ids}
        listing.path.write_text(listing.written(requirements))
    return 0


if __name__ == "__main__":
    sys.exit(main())
