"""Opens a team's store for commands that list or prune sessions, and adds the flag `--team`."""

from __future__ import annotations

import argparse

import msgspec

from laneway.app.stores import retention, store_of
from laneway.cli.command_settings import settings_in
from laneway.store.store import Store


def add_team(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--team", metavar="NAME", help="the team (default: by your settings)")


def open_store(team: str | None, *, is_flat: bool = False) -> Store:
    settings = settings_in({"team": team})
    # These commands remove only what the user asked for; only servers remove old sessions by age.
    limits = msgspec.structs.replace(retention(settings), session_age=None)
    return store_of(settings, is_flat=is_flat, keep=limits)
