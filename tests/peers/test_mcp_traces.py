"""The stored traces of `codex mcp-server` are still what the real one says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laneway.testing.mcp_compare import differences
from laneway.testing.mcp_scenarios import SCENARIOS
from laneway.testing.mcp_traces import Scenario, converse, load

FOLDER = os.environ.get("LANEWAY_PEERS", "")
GOLDEN = Path(__file__).parent.parent / "golden" / "mcp-server-0.153.4"


def old_codex() -> str:
    """The last Codex with an `mcp-server`."""
    found = [path for path in Path(FOLDER).glob("codex-0.153.4/**/codex") if os.access(path, os.X_OK)]
    assert found, "scripts/fetch_peers.py brings Codex 0.153.4"
    return str(next(path for path in found if path.is_file()))


@pytest.mark.peers
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_the_real_server_still_says_what_was_recorded(scenario: Scenario) -> None:
    """What `laneway mcp-server` is measured by is not an artefact of one day or one machine."""
    said = await converse([old_codex(), "mcp-server"], scenario, repaired=False)
    assert differences(load((GOLDEN / f"{scenario.name}.json").read_bytes()), said) == []
