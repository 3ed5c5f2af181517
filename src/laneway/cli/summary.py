"""`laneway summary`: what a session that ended said of itself."""

from __future__ import annotations

import argparse

from laneway.base.errors import UsageError
from laneway.cli.sessions import add_team, open_store


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "The summary that a session left when it ended."
    parser.add_argument("session", help="its agent id or thread id, as `laneway sessions` shows them")
    add_team(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    store = open_store(options.team)
    found = [e for e in store.view().entries if options.session in (e.agent_id, e.backend_id)]
    if not found:
        raise UsageError(
            f"There is no session {options.session} in team {store.team}: see `laneway sessions`."
        )
    entry = found[0]
    text = store.summary(entry.identity, entry.backend_id) if entry.backend_id else None
    if text is None:
        raise UsageError(f"Session {options.session} left no summary.")
    print(text)
    return 0
