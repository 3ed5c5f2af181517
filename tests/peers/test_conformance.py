"""The official conformance suite against our server over HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TypeAlias

import pytest

from laneway.base.clock import LoopClock
from tests.doors.mcp.http_support import serving
from tests.peers.conformance_server import server, with_token
from tests.peers.conformance_table import SUITES, Suite
from tests.peers.support import DEADLINE_S, brought, node

Check: TypeAlias = tuple[str, str, str | None]
"""Its id, its status, and what was wrong."""


@pytest.mark.peers
@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.title)
async def test_the_suite_finds_what_the_table_says(suite: Suite, tmp_path: Path) -> None:
    """What is listed as passing passes, what is listed as failing fails, and there is nothing else."""
    script = brought(
        f"conformance-{suite.version}", "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    )
    async with serving(server(), wrap=with_token, clock=LoopClock(), deadline_s=DEADLINE_S) as place:
        words = ("server", "--url", place.url, *suite.words, "-o", str(tmp_path))
        ran = await node(script, *words)
    found = outcomes(tmp_path)
    listed = {*suite.passes, *suite.gaps, *suite.unchecked}
    assert set(found) == listed, ran.err[-2000:]
    wrong = {name: checks for name, checks in found.items() if expected(suite, name) != verdict(checks)}
    assert wrong == {}
    partly = {
        name for name, checks in found.items() if name in suite.passes and "SKIPPED" in statuses(checks)
    }
    assert partly == set(suite.skipped)


def expected(suite: Suite, name: str) -> str:
    if name in suite.gaps:
        return "fails"
    return "unchecked" if name in suite.unchecked else "passes"


def verdict(checks: list[Check]) -> str:
    """Without a check that succeeded nothing was shown, whatever the suite calls it."""
    if "FAILURE" in statuses(checks):
        return "fails"
    return "passes" if "SUCCESS" in statuses(checks) else "unchecked"


def statuses(checks: list[Check]) -> set[str]:
    return {status for _, status, _ in checks}


def outcomes(folder: Path) -> dict[str, list[Check]]:
    """The checks of each scenario that was run."""
    found: dict[str, list[Check]] = {}
    for results in sorted(folder.glob("server-*/checks.json")):
        # The folder's name ends with a time.
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", results.parent.name.removeprefix("server-"))
        checks = json.loads(results.read_text())
        found[name] = [(check["id"], check["status"], check.get("errorMessage")) for check in checks]
    return found
