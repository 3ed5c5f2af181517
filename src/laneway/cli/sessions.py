"""`laneway sessions`: the sessions that are kept, of living and of dead processes; and their pruning.

Watching and stopping live ones is in `sessions_watch` and `sessions_stop`.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import timedelta
from typing import Any

from laneway.base.plain import plain
from laneway.cli.kept import open_store
from laneway.cli.terminal import Style
from laneway.store.registry import Entry
from laneway.store.store import Store

EPILOG = """\
A session marked active whose process is gone is shown as stale. Pruning removes closed and stale
ones from the list, and their summaries; the transcripts are Codex's and stay. Sessions whose
identity a living process holds are left alone.

  laneway sessions                          what is going on in your team
  laneway sessions --identity codex --json  one identity, for programs
  laneway sessions --prune --older-than 30  forget what ended more than 30 days ago
  laneway sessions watch reviewer           see a live one at work, from another terminal
  laneway sessions stop reviewer            cancel what it is doing
"""


def configure(parser: argparse.ArgumentParser) -> None:
    from laneway.cli import sessions_stop, sessions_watch

    parser.description = "The sessions that are kept, newest first; and the live ones at work."
    parser.epilog = EPILOG
    add_listing(parser)
    parser.set_defaults(run=run, older_than=0.0, is_flat=False)
    below = parser.add_subparsers(title="what to do", metavar="ACTION")
    for name, add, summary in (
        ("list", add_listing, "list or prune them, as without an action"),
        ("watch", sessions_watch.configure, "see a live session at work"),
        ("stop", sessions_stop.configure, "cancel what a live session does, or close it"),
    ):
        inner = below.add_parser(
            name,
            help=summary,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            # A flag that stands before the action is not taken back by the default behind it.
            argument_default=argparse.SUPPRESS,
        )
        add(inner)


def add_listing(parser: argparse.ArgumentParser) -> None:
    add_team(parser)
    parser.add_argument("--identity", metavar="NAME", help="only this identity's")
    parser.add_argument("--repo", metavar="NAME", help="only those of a repository, by its name or its path")
    parser.add_argument("--status", choices=("active", "stale", "closed", "interrupted"), help="only these")
    parser.add_argument("--prune", action="store_true", help="remove closed and stale sessions from the list")
    parser.add_argument("--older-than", type=float, metavar="DAYS", help="prune only what is older")
    parser.add_argument("--json", action="store_true", help="as data, for programs")


def add_team(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--team", metavar="NAME", help="the team (default: by your settings)")


def run(options: argparse.Namespace) -> int:
    store = open_store(options.team, is_flat=options.is_flat)
    if options.prune:
        return prune(store, options)
    view = store.view()
    shown = [
        entry
        for entry in sorted(view.entries, key=lambda entry: entry.last_active, reverse=True)
        if is_meant(options, entry)
    ]
    if options.json:
        print(
            json.dumps(
                {"team": store.team, "sessions": [public(e) for e in shown], "problems": view.problems}
            )
        )
    else:
        show(store.team, shown)
        tell_problems(view.problems)
    return 1 if view.problems else 0


def is_meant(options: argparse.Namespace, entry: Entry) -> bool:
    """Whether the filters of the command line let it through."""
    return (
        options.identity in (None, entry.identity)
        and options.status in (None, entry.status)
        and options.repo in (None, entry.repo_name, entry.repo_root)
    )


def prune(store: Store, options: argparse.Namespace) -> int:
    pruned = store.prune(timedelta(days=options.older_than), lambda entry: is_meant(options, entry))
    if options.json:
        removed = [public(entry) for entry in pruned.removed]
        print(json.dumps({"removed": removed, "in_use": pruned.in_use, "problems": pruned.problems}))
    else:
        print(f"{len(pruned.removed)} removed.")
        for identity in pruned.in_use:
            print(f"{identity} is in use and was left alone.")
        tell_problems(pruned.problems)
    return 1 if pruned.problems else 0


def public(entry: Entry) -> dict[str, Any]:
    return {
        "agent_id": entry.agent_id,
        "thread_id": entry.backend_id,
        "identity": entry.identity,
        "team": entry.team,
        "status": entry.status,
        "started_at": entry.started_at,
        "last_active": entry.last_active,
        "cwd": entry.cwd,
        "branch": entry.branch,
        "tag": entry.tag,
    }


def show(team: str, entries: list[Entry]) -> None:
    style = Style(sys.stdout)
    if not entries:
        print(f"No sessions in team {team}.")
    for entry in entries:
        where = " ".join(part for part in (entry.cwd, entry.branch and f"({entry.branch})") if part)
        row = plain(f"{entry.identity:<20} {entry.status:<12} {entry.last_active:<26} {where}")
        print(style.bold(row))
        print(style.dim(plain(f"  {entry.agent_id}  thread {entry.backend_id or 'none yet'}")))


def tell_problems(problems: tuple[str, ...]) -> None:
    for problem in problems:
        print(f"laneway: {plain(problem)}", file=sys.stderr)
