"""`docs/lanes.md`: its lane is run through its own tests, and its table through the registry."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from laneway.lanes.names import ENGINE_LANES
from tests.test_docs import blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lanes.md"


@pytest.mark.covers("003-lane.13")
def test_the_lane_of_the_page_passes_the_tests_of_the_page(tmp_path: Path) -> None:
    """In a folder of its own; skipped is what the page leaves out: failures, and what the model is given."""
    lane, tests, *_ = blocks(PAGE.read_text(), "python")
    (tmp_path / "my_lanes").mkdir()
    (tmp_path / "my_lanes" / "run.py").write_text(lane)
    (tmp_path / "test_run_lane.py").write_text(tests)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\npythonpath = .\n")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-n", "0"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=110)
    counts = {kind: int(count) for count, kind in re.findall(r"(\d+) (passed|failed|skipped)", done.stdout)}
    assert (done.returncode, counts) == (0, {"passed": 14, "skipped": 3}), done.stdout


def test_the_page_names_the_lanes_that_laneway_brings() -> None:
    """No plugin may have their names."""
    named = ", ".join(f"`{name}`" for name in sorted(ENGINE_LANES))
    assert f"Laneway itself ({named})" in PAGE.read_text()
