"""`laneway summary`: what a session that ended said of itself."""

from __future__ import annotations

import argparse
import json

from laneway.base.errors import UsageError
from laneway.cli.kept import open_store
from laneway.cli.sessions import add_team


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "The summary that a session left when it ended."
    parser.add_argument("session", help="its agent id or thread id, as `laneway sessions` shows them")
    add_team(parser)
    parser.add_argument("--json", action="store_true", help="as data, for programs")
    parser.set_defaults(run=run, is_flat=False)


def run(options: argparse.Namespace) -> int:
    store = open_store(options.team, is_flat=options.is_flat)
    found = [e for e in store.view().entries if options.session in (e.agent_id, e.backend_id)]
    if not found:
        raise UsageError(
            f"There is no session {options.session} in team {store.team}: see `laneway sessions`."
        )
    entry = found[0]
    text = store.summary(entry.identity, entry.backend_id) if entry.backend_id else None
    if text is None:
        raise UsageError(f"Session {options.session} left no summary.")
    if options.json:
        told = {"agent_id": entry.agent_id, "thread_id": entry.backend_id, "identity": entry.identity}
        print(json.dumps({**told, "summary": text}))
    else:
        print(text)
    return 0
