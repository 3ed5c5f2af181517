"""basedpyright finds no error in `laneway.lanes`, nor in lanes written to the document and to our page.

The package is checked as strictly as it goes; a lane as its author's editor does, which does not insist on
annotations: those of the document have none.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from tests.lanes.samples import AIDER, IMPORT_LINE
from tests.peers.support import DEADLINE_S, brought
from tests.test_docs import ROOT, blocks

pytestmark = pytest.mark.peers

FOLDER = "basedpyright-1.40.2"


async def errors(folder: Path, mode: str, *included: Path) -> list[str]:
    """What it calls an error in these files."""
    package = brought(FOLDER, "basedpyright/__init__.py").parent.parent
    settings = {
        "include": [str(path) for path in included],
        "typeCheckingMode": mode,
        "extraPaths": [str(ROOT / "src")],
        "pythonVersion": "3.11",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    words = ["-m", "basedpyright", "--outputjson", "-p", str(folder), "--pythonpath", sys.executable]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    async with asyncio.timeout(DEADLINE_S):
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, env=environment, stdout=PIPE, stderr=PIPE
        )
        out, err = await process.communicate()
    assert out, err.decode()
    result: dict[str, Any] = json.loads(out)
    assert result["summary"]["filesAnalyzed"] > 0
    return [
        f"{each['file']}:{each['range']['start']['line'] + 1}: {each['message']}"
        for each in result["generalDiagnostics"]
        if each["severity"] == "error"
    ]


async def test_laneway_lanes_has_no_error(tmp_path: Path) -> None:
    """In the strict mode."""
    assert await errors(tmp_path, "strict", ROOT / "src" / "laneway" / "lanes") == []


@pytest.mark.covers("003-lane.1", "003-verify.1")
async def test_a_lane_written_to_the_document_has_no_error(tmp_path: Path) -> None:
    """With the one import line, nor has that of our page."""
    (tmp_path / "aider.py").write_text(IMPORT_LINE + AIDER)
    (tmp_path / "run.py").write_text(blocks((ROOT / "docs" / "lanes.md").read_text(), "python")[0])
    assert await errors(tmp_path, "standard", tmp_path / "aider.py", tmp_path / "run.py") == []


async def test_an_error_would_be_seen(tmp_path: Path) -> None:
    """A test that checks nothing would pass for ever."""
    wrong = f"{IMPORT_LINE}from laneway.lanes import get_lane_class\nget_lane_class(3)\n"
    (tmp_path / "wrong.py").write_text(wrong)
    (error,) = await errors(tmp_path, "standard", tmp_path / "wrong.py")
    assert "wrong.py:3: Argument of type" in error
