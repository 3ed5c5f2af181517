"""`laneway sessions`: lists all known sessions, live or ended, of `mcp`, `ask` and editors.

Pruning is in `sessions_prune`; watching and stopping live ones in `sessions_watch` and `sessions_stop`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from laneway.cli.session_filters import passes_filters
from laneway.cli.session_output import print_problems, print_table
from laneway.cli.stores import add_team, open_store

if TYPE_CHECKING:
    from laneway.cli.session_list import KnownSession

EPILOG = """\
Name a session by its name, its id, or at least six characters of its id. One whose process is gone is
shown as stale. Pruning removes closed and stale sessions of `laneway mcp` from the list, with their
summaries, and removes those that were killed from their team; Codex's transcripts are kept.
Sessions that a living process uses are left alone.

  laneway sessions                          live sessions, and recent ones
  laneway sessions --from editor            only those of editors; also: mcp, ask
  laneway sessions --identity codex --json  one identity, for programs
  laneway sessions --prune --dry-run        what would be removed
  laneway sessions --prune --older-than 30  remove what ended more than 30 days ago
  laneway sessions watch reviewer           see a live one at work, from another terminal
  laneway sessions stop reviewer            cancel what it is doing
"""

MAX_SHOWN = 25
"""Sessions that are listed without --all: one screen."""


def configure(parser: argparse.ArgumentParser) -> None:
    from laneway.cli import sessions_stop, sessions_watch

    parser.description = "Live and earlier sessions, newest first."
    parser.epilog = EPILOG
    add_listing(parser)
    parser.set_defaults(run=run, older_than=0.0, is_flat=False)
    below = parser.add_subparsers(title="what to do", metavar="ACTION")
    for name, add, summary in (
        ("list", add_listing, "list or prune them, as without an action"),
        ("watch", sessions_watch.configure, "see a live session at work"),
        ("stop", sessions_stop.configure, "cancel the work of a live session, or close it"),
    ):
        inner = below.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            # Otherwise the action's defaults would override flags that come before it.
            argument_default=argparse.SUPPRESS,
        )
        add(inner)


def add_listing(parser: argparse.ArgumentParser) -> None:
    add_team(parser)
    parser.add_argument("--identity", metavar="NAME", help="only this identity's")
    parser.add_argument("--repo", metavar="NAME", help="only those of a repository, by its name or its path")
    parser.add_argument("--status", choices=("active", "stale", "closed", "interrupted"), help="only these")
    parser.add_argument(
        "--from", dest="source", choices=("mcp", "ask", "editor"), help="only those started from there"
    )
    parser.add_argument("--prune", action="store_true", help="remove closed and stale sessions from the list")
    parser.add_argument("--older-than", type=float, metavar="DAYS", help="prune only what is older")
    parser.add_argument("--dry-run", action="store_true", help="only show what pruning would remove")
    parser.add_argument("--yes", action="store_true", help="prune without asking")
    parser.add_argument("--all", action="store_true", help="all, not only the latest")
    parser.add_argument("--json", action="store_true", help="all as data, for programs")


def run(options: argparse.Namespace) -> int:
    store = open_store(options.team, is_flat=options.is_flat)
    if options.prune or options.dry_run:
        from laneway.cli.sessions_prune import prune

        return prune(store, options)
    from laneway.cli.session_list import known_sessions, with_digests

    # Those of `ask` and of editors have neither a team nor a name.
    is_about_team = options.team is not None or options.identity is not None or options.is_flat
    known = known_sessions(store, with_others=not is_about_team)
    matches = [each for each in known.sessions if passes_filters(options, each)]
    if options.json:
        sessions = msgspec.to_builtins(with_digests(matches))
        print(json.dumps({"team": store.team, "sessions": sessions, "problems": known.problems}))
    else:
        show(store.team, with_digests(matches if options.all else latest(matches)), len(matches))
        print_problems(known.problems)
    return 1 if known.problems else 0


def latest(sessions: Sequence[KnownSession]) -> list[KnownSession]:
    """The first sessions, and all further ones that are live."""
    return [
        *sessions[:MAX_SHOWN],
        *(each for each in sessions[MAX_SHOWN:] if each.status == "active"),
    ]


def show(team: str, sessions: Sequence[KnownSession], total: int) -> None:
    if not sessions:
        print(f"No sessions in team {team}.")
        return
    print_table(sessions)
    if len(sessions) < total:
        print(f"{total - len(sessions)} more: --all")
