"""The versions of Codex that people have: the tour must work on each."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from laneway.codex import binary
from tests.cli.support import laneway

FOLDER = os.environ.get("LANEWAY_PEERS", "")


def codexes() -> list[str]:
    """The executables that `scripts/fetch_peers.py` brought, oldest first."""
    if not FOLDER:
        return ["none fetched"]
    found = [
        path for path in Path(FOLDER).glob("codex-*/**/codex") if path.is_file() and os.access(path, os.X_OK)
    ]
    return [str(path) for path in sorted(found, key=lambda path: binary.parse_version(str(path)) or ())]


@pytest.mark.peers
@pytest.mark.parametrize(
    "codex", codexes(), ids=lambda path: binary.spell(binary.parse_version(path) or (0,))
)
async def test_the_tour_works_on_this_version(codex: str) -> None:
    """Streaming, sandbox, edit, approval, interrupt, resume."""
    ran = await laneway("tour", "--json", "--codex-bin", codex)
    told = json.loads(ran.out)
    assert told["ok"], told
    assert told["codex"] == binary.spell(binary.probe(binary.find(codex)))
