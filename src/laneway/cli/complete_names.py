"""`laneway __complete KIND CURRENT [WORD …]`: prints names, one per line, for completion scripts.

A shell runs it while the user waits after pressing Tab: it reads the stored records and asks no
process, imports little, and on any error prints nothing.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laneway.store.registry import Entry

COMMAND = "__complete"
KINDS = ("live", "ended", "threads", "jobs", "runs")
"""Sessions that run, sessions that do not, threads of Codex to continue, background jobs, their open runs."""
UNFINISHED_VERBS = ("cancel", "wait", "watch")
"""Verbs of `laneway jobs` that are for jobs which have not ended."""
MAX_NAMES = 200
"""More than anybody reads; a shell would ask whether to show them."""
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Shells expand what they are offered, and registries of other programs may hold anything. A colon
separates words in bash, so ids that contain one are left out; the same sessions have other ids."""


def run(arguments: list[str]) -> int:
    """Print the names that fit. Never fails, and prints nothing on standard error."""
    from laneway.base.errors import LanewayError

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        kind, current, *words = arguments
        names = [name for name in names_of(kind, current, words) if name.startswith(current)]
        sys.stdout.write("".join(f"{name}\n" for name in dict.fromkeys(names[:MAX_NAMES])))
        sys.stdout.flush()
    except (LanewayError, OSError, ValueError):
        pass
    return 0


def names_of(kind: str, current: str, words: list[str]) -> Iterator[str]:
    """Names of this kind, the latest first. Thread ids only once one is begun."""
    if kind in ("jobs", "runs"):
        yield from filter(_is_safe, _job_names(kind, words))
        return
    entries = sorted(_entries(_team(words)), key=lambda entry: entry.last_active, reverse=True)
    if kind == "threads":
        yield from filter(_is_safe, (*_ask_thread_ids(), *(entry.backend_id for entry in entries)))
        return
    for entry in entries:
        if (entry.status == "active") is (kind == "live"):
            names = [entry.identity] if kind == "live" else []
            names += [entry.agent_id]
            names += [entry.backend_id] if current and entry.backend_id else []
            yield from filter(_is_safe, names)


def _job_names(kind: str, words: list[str]) -> list[str]:
    """Ids of jobs that a verb is for, or of open runs."""
    from laneway.jobs.ledger import Ledger
    from laneway.jobs.model import UNFINISHED
    from laneway.jobs.run_ledger import RunLedger
    from laneway.store.database import Database, database_path

    if not database_path().exists():
        return []
    with Database(database_path()) as database:
        ledger = Ledger(database)
        if kind == "runs":
            return [run.run_id for run in reversed(RunLedger(ledger).open_runs())]
        is_for_unfinished = any(verb in words for verb in UNFINISHED_VERBS)
        rows = ledger.listed(statuses=UNFINISHED if is_for_unfinished else (), limit=MAX_NAMES)
        return [job.job_id for job in rows]


def _is_safe(name: str | None) -> bool:
    return name is not None and _SAFE.fullmatch(name) is not None


def _team(words: list[str]) -> str | None:
    """The team that the command line names, if any."""
    for at, word in enumerate(words):
        if word.startswith("--team="):
            return word.removeprefix("--team=")
        if word == "--team" and at + 1 < len(words):
            return words[at + 1]
    return None


def _entries(team: str | None) -> Iterable[Entry]:
    from laneway.base.settings import load
    from laneway.store.layout import sessions_root
    from laneway.store.store import Store

    settings = load({"team": team}, os.environ, Path(), Path.home())
    return Store(sessions_root(), settings.team).view().entries


def _ask_thread_ids() -> list[str]:
    """The threads that `laneway ask` had in this folder."""
    from laneway.cli.ask.recent import last_thread
    from laneway.cli.codex_flags import folder
    from laneway.cli.codex_profile import codex_home

    last = last_thread(folder(Path()), codex_home())
    return [last] if last else []
