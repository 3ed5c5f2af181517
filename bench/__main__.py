"""The command `python -m bench [--only NAME] [--quick]`: prints one table, writes one JSON file."""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path

import msgspec

from bench import (
    acp_cost,
    acp_sessions,
    acp_start,
    acp_stream,
    chat_discord,
    chat_memory,
    chat_telegram,
    chat_turns,
    claude_memory,
    claude_turns,
    cost,
    jobs_events,
    jobs_queue,
    jobs_snapshots,
    jobs_workers,
    latency,
    listing,
    mail,
    mcp_calls,
    mcp_load,
    mcp_start,
    mcp_turns,
    memory,
    page,
    startup,
    stream,
)
from bench.rig import rig
from bench.table import render
from laneway import __version__
from laneway.codex import binary, locate

SUBJECTS = {
    "stream": stream.run,
    "latency": latency.run,
    "cost": cost.run,
    "startup": startup.run,
    "memory": memory.run,
    "mcp-start": mcp_start.run,
    "mcp-calls": mcp_calls.run,
    "mcp-turns": mcp_turns.run,
    "mcp-load": mcp_load.run,
    "acp-start": acp_start.run,
    "acp-stream": acp_stream.run,
    "acp-sessions": acp_sessions.run,
    "acp-cost": acp_cost.run,
    "chat-discord": chat_discord.run,
    "chat-telegram": chat_telegram.run,
    "claude-turns": claude_turns.run,
    "claude-memory": claude_memory.run,
    "chat-turns": chat_turns.run,
    "chat-memory": chat_memory.run,
    "page": page.run,
    "listing": listing.run,
    "mail": mail.run,
    "jobs-queue": jobs_queue.run,
    "jobs-events": jobs_events.run,
    "jobs-snapshots": jobs_snapshots.run,
    "jobs-workers": jobs_workers.run,
}
RESULTS = Path(__file__).with_name("results.json")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Laneway beside the raw Codex.")
    parser.add_argument("--only", action="append", choices=SUBJECTS, metavar="NAME", help=", ".join(SUBJECTS))
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: a smoke test")
    options = parser.parse_args()
    before = time.perf_counter()
    load_before = os.getloadavg()[0]
    sections = {}
    with rig() as bench_rig:
        codex = binary.spell(binary.probe(locate.find()))
        for name in options.only or SUBJECTS:
            print(f"measuring {name} …", flush=True)
            sections[name] = SUBJECTS[name](bench_rig, quick=options.quick)
    machine = {
        "cpus": os.cpu_count(),
        "load_before": load_before,
        "system": platform.platform(),
        "python": platform.python_version(),
    }
    print(
        f"\nLaneway {__version__} beside Codex {codex}, Python {machine['python']}, {machine['cpus']} CPUs,"
        f" load {load_before:.1f} before, {time.perf_counter() - before:.0f} s\n"
    )
    if load_before > 0.5:
        print("Others were using this machine: believe no ratio that another run does not repeat.\n")
    print(render(list(sections.values())))
    results = {
        "laneway": __version__,
        "codex": codex,
        "quick": options.quick,
        "machine": machine,
        "subjects": {
            name: {"rows": [row.record() for row in section.rows], "samples": section.samples}
            for name, section in sections.items()
        },
    }
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")


if __name__ == "__main__":
    main()
