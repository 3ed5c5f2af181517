"""Records golden traces of the removed `codex mcp-server`, from the last version that had it.

    python scripts/record_mcp_traces.py tests/golden [scenario ...]

Needs what `make test-peers` fetches: the real Codex 0.153.4. Plays the scenarios of
`laneway.testing.mcp_scenarios` to it, against the scripted model, in a bare environment, and
writes one `<scenario>.json` per scenario below `mcp-server-<version>/`: a message per line.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
from pathlib import Path

from laneway.testing.mcp_scenarios import SCENARIOS
from laneway.testing.mcp_traces import Scenario, Trace, converse, dump

VERSION = "0.153.4"
"""The last Codex with an `mcp-server`."""
AT_ONCE = 2
"""Servers that are recorded side by side."""


def find(peers: Path) -> Path | None:
    candidates = (peers / f"codex-{VERSION}").glob("**/codex")
    return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)


async def record_all(codex: Path, folder: Path, names: list[str]) -> None:
    limit = asyncio.Semaphore(AT_ONCE)

    async def record(scenario: Scenario) -> None:
        async with limit:
            trace = await converse([str(codex), "mcp-server"], scenario, repaired=False)
        (folder / f"{scenario.name}.json").write_bytes(dump(trace))
        print(f"{scenario.name}: {summary(trace)}")

    async with asyncio.TaskGroup() as group:
        for scenario in SCENARIOS:
            if not names or scenario.name in names:
                group.create_task(record(scenario))


def summary(trace: Trace) -> str:
    return f"{sum(line.who == 'server' for line in trace.lines)} messages, {trace.end}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Record golden traces of the removed `codex mcp-server`.")
    parser.add_argument("target", type=Path)
    parser.add_argument("scenarios", nargs="*", help="only these; all without")
    parser.add_argument("--peers", type=Path, default=Path(".peers"), help="where `make test-peers` put it")
    options = parser.parse_args()
    unknown = set(options.scenarios) - {scenario.name for scenario in SCENARIOS}
    if unknown:
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}")
    codex = find(options.peers.resolve())
    if codex is None:
        parser.error(f"there is no Codex {VERSION} in {options.peers}: run `make test-peers` first")
    folder = options.target / f"mcp-server-{VERSION}"
    if not options.scenarios:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(record_all(codex, folder, options.scenarios))


if __name__ == "__main__":
    main()
