"""`laneway uninstall`: shows everything that Laneway has left on this machine, and removes it on request.

The program itself is removed by its installer; the command for that is shown at the end. Never
touches Codex's transcripts, nor anything that others own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.base.counting import counted
from laneway.base.errors import LanewayError, UsageError
from laneway.base.plain import plain

if TYPE_CHECKING:
    from laneway.base.installed import Installation
    from laneway.cli.uninstalling.model import Remnant, Surroundings

EPILOG = """\
Looks for Laneway's entries in the clients that `laneway setup` knows, yours and those of this
project, in teams, for the service of your bots, and for its own state, caches, copies and sessions'
records. What others share stays, and is named with the way to remove it. Codex's transcripts are
never touched.

  laneway uninstall --dry-run      only show it
  laneway uninstall                show it, ask, remove it
  laneway uninstall --yes          for scripts: do not ask

exit codes of this command:
  0    removed, or only shown
  1    something could not be removed, or Laneway is still running, or you said no
  2    the command line is wrong, or there is no terminal to ask at
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show what Laneway has left on this machine, and remove it."
    parser.epilog = EPILOG
    parser.add_argument("--dry-run", action="store_true", help="only show what there is, and how it goes")
    parser.add_argument("--yes", action="store_true", help="do not ask: for scripts")
    parser.add_argument("--settings", action="store_true", help="remove your own settings file, too")
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    parser.set_defaults(run=run)


class RemovalOutcome(msgspec.Struct):
    """One remnant, as `--json` prints it."""

    kind: str
    what: str
    path: str
    goes: bool
    why: str
    is_removed: bool = False
    problem: str = ""


def run(options: argparse.Namespace) -> int:
    from laneway.base.installed import installed_how
    from laneway.cli.uninstalling.model import Surroundings
    from laneway.doors.local.socket_files import live_sockets

    around = Surroundings(Path.home(), Path.cwd(), dict(os.environ), options.settings)
    remnants = find(around)
    outcomes = [
        RemovalOutcome(each.kind, each.what, str(each.path), each.goes, each.why) for each in remnants
    ]
    running = sorted({socket.pid for socket in live_sockets(around.environment)})
    installation = installed_how()
    if not options.json:
        _show(outcomes, running)
    goes = any(each.goes for each in remnants)
    if goes and not options.dry_run:
        if running:
            raise LanewayError(f"Nothing was removed: {_running(running, outcomes)}")
        if jobs := _unfinished_jobs(around.environment):
            what = counted(jobs, "background job has", "background jobs have")
            raise LanewayError(f"Nothing was removed: {what} not ended. `laneway jobs` shows them.")
        if not options.yes and not asyncio.run(_is_agreed()):
            print("Nothing was removed.", file=sys.stderr)
            return 1
        _remove(remnants, outcomes)
    _report(options, outcomes, running, installation)
    return 1 if any(each.problem for each in outcomes) else 0


def find(around: Surroundings) -> list[Remnant]:
    """All remnants, in the order in which they are removed."""
    from laneway.cli.uninstalling import clients, folders, services, teams
    from laneway.cli.uninstalling.model import TITLES

    remnants = [*services.find(around), *clients.find(around), *teams.find(around), *folders.find(around)]
    order = list(TITLES)
    return sorted(remnants, key=lambda remnant: order.index(remnant.kind))


def _unfinished_jobs(environment: Mapping[str, str]) -> int:
    """They need our state, and no server of ours need be running for them."""
    from laneway.jobs.ledger import Ledger
    from laneway.store.database import Database, database_path

    path = database_path(environment)
    if not path.exists():
        return 0
    try:
        with Database(path) as database:
            return len(Ledger(database).unfinished())
    except LanewayError:
        return 0  # damaged, or of a newer Laneway: nobody can tell


async def _is_agreed() -> bool:
    """Ask at the terminal; whatever is not a clear yes is a no."""
    from laneway.terminal.prompting.keyboard import find_keyboard

    keyboard = find_keyboard()
    if keyboard is None:
        raise UsageError(
            "Nothing was removed: there is no terminal to ask at. In a script, use `laneway uninstall --yes`."
        )
    typed = await keyboard.read_line("Remove everything that is marked with ✘? [y/N] ")
    return (typed or "").casefold() in ("y", "yes")


def _remove(remnants: list[Remnant], outcomes: list[RemovalOutcome]) -> None:
    """Remove each remnant by itself: one that cannot be removed does not stop the others."""
    for remnant, outcome in zip(remnants, outcomes, strict=True):
        if remnant.remove is None:
            continue
        try:
            remnant.remove()
            outcome.is_removed = True
        except LanewayError as problem:
            outcome.problem = str(problem)
        except OSError as problem:
            outcome.problem = f"It could not be removed: {problem.strerror or 'the system refused'}."


# ── output ─────────────────────────────────────────────────────────────────


def _running(running: list[int], outcomes: list[RemovalOutcome]) -> str:
    pids = ", ".join(map(str, running))
    processes = "process" if len(running) == 1 else "processes"
    service = any(each.kind == "service" and each.goes for each in outcomes)
    bots = " `laneway setup service --remove` ends your bots." if service else ""
    return (
        f"Laneway is still running ({processes} {pids}). End the programs that use it, then try again.{bots}"
    )


def _show(outcomes: list[RemovalOutcome], running: list[int]) -> None:
    from laneway.cli.uninstalling.model import TITLES
    from laneway.terminal import Style

    style = Style(sys.stdout)
    for kind, title in TITLES.items():
        of_kind = [each for each in outcomes if each.kind == kind]
        if of_kind:
            print(style.bold(title))
        for each in of_kind:
            mark = style.red("✘") if each.goes else style.dim("·")
            reason = f": {plain(each.why)}" if each.why else ""
            print(f"  {mark} {plain(each.what)}{'' if each.goes else ' stays'}{reason}")
    if not outcomes:
        print("Laneway has left nothing on this machine.")
    elif running:
        print(_running(running, outcomes))


def _report(
    options: argparse.Namespace,
    outcomes: list[RemovalOutcome],
    running: list[int],
    installation: Installation,
) -> None:
    if options.json:
        data: dict[str, Any] = {
            "remnants": outcomes,
            "running": running,
            "is_dry_run": options.dry_run,
            "installed": installation.how,
            "uninstall": installation.removing(),
        }
        sys.stdout.write(msgspec.json.encode(data).decode() + "\n")
        return
    for each in outcomes:
        if each.problem:
            print(f"laneway: {plain(each.what)}: {plain(each.problem)}", file=sys.stderr)
    removed = sum(each.is_removed for each in outcomes)
    if removed:
        print(f"Removed: {removed} of {sum(each.goes for each in outcomes)}.")
    elif options.dry_run and any(each.goes for each in outcomes):
        print("Nothing was removed: `laneway uninstall` removes what is marked with ✘.")
    print(_program_line(installation))


def _program_line(installation: Installation) -> str:
    line = installation.removing()
    if line is not None:
        note = f" The folder {installation.source} stays." if installation.is_editable else ""
        return f"The program itself: `{line}`.{note}"
    if installation.how == "temporary":
        return "The program itself is not installed: it runs from a cache, which its owner empties."
    return "The program itself is not installed: it runs from a source folder."
