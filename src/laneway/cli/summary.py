"""`laneway summary`: prints the summary that a session left when it ended."""

from __future__ import annotations

import argparse
import json
import sys

from laneway.base.errors import UsageError
from laneway.base.plain import plain
from laneway.cli.live_sessions import stored_entries
from laneway.cli.local_time import when
from laneway.cli.session_names import ambiguous
from laneway.cli.stores import add_team, open_store
from laneway.store.registry import Entry
from laneway.store.stamps import parse, utc_now
from laneway.store.store import Store


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "The summary that a session left when it ended."
    parser.add_argument("session", metavar="SESSION", help="its name, or its id, or the end of its id")
    add_team(parser)
    parser.add_argument("--json", action="store_true", help="as data, for programs")
    parser.set_defaults(run=run, is_flat=False)


def run(options: argparse.Namespace) -> int:
    store = open_store(options.team, is_flat=options.is_flat)
    entry = one_of(store, options.session)
    text = store.summary(entry.identity, entry.backend_id) if entry.backend_id else None
    if text is None:
        raise UsageError(f"Session {options.session} left no summary.")
    if options.json:
        ids = {"agent_id": entry.agent_id, "thread_id": entry.backend_id, "identity": entry.identity}
        print(json.dumps({**ids, "summary": text}))
    else:
        print(plain(text) if sys.stdout.isatty() else text)
    return 0


def one_of(store: Store, who: str) -> Entry:
    """The session that `who` names; of several, the only one that left a summary."""
    entries = stored_entries(store, who)
    if not entries:
        raise UsageError(f"There is no session {who} in team {store.team}: see `laneway sessions`.")
    with_summary = [
        each for each in entries if each.backend_id and store.summary(each.identity, each.backend_id)
    ]
    if len(entries) > 1 and len(with_summary) != 1:
        raise ambiguous(who, ((each.agent_id, about(each)) for each in with_summary or entries))
    return (with_summary or entries)[0]


def about(entry: Entry) -> str:
    last = when(parse(entry.last_active or entry.started_at), utc_now())
    return "  ".join(part for part in (entry.identity, entry.status, last, entry.cwd) if part)
