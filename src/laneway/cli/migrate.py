"""`laneway migrate`: replaces the removed `codex mcp-server` by Laneway in the configs of all clients.

Shows what it would change, changes it with `--write`, proves each entry by starting it as its
client would, and undoes the last run with `--undo`. An entry that does not answer is put back.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.base.errors import ClientFileError, StoreError, UsageError
from laneway.base.plain import code_label
from laneway.cli.setup import DEADLINE_S, seconds_of

if TYPE_CHECKING:
    from laneway.cli.clients.changing import Applied
    from laneway.cli.clients.files import FileSnapshot
    from laneway.cli.clients.journal import Journal
    from laneway.cli.handshake import HandshakeResult
    from laneway.cli.registrations import Registration

EPILOG = """\
Looks where `laneway doctor` looks: Claude Code (your own files, projects and plugins), Claude
Desktop, Codex, OpenCode, VS Code, Cursor, Windsurf, Gemini, Zed, and .mcp.json files from here up
to the root of the repository. In each stale entry `codex` becomes `laneway`; flags, wrappers,
variables, comments and layout stay. A Codex that was named by its path stays the one that is used.

  laneway migrate              show what would change
  laneway migrate --write      change it, and start it; what does not answer is put back
  laneway migrate --undo       take the last --write back
  laneway migrate ./.mcp.json  only this file

exit codes of this command:
  0    nothing is stale, or everything was changed and answers, or all was taken back
  1    something stale is left, a handshake failed, or a file cannot be edited
  2    the command line is wrong
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Replace the removed `codex mcp-server` in the configs of your other programs."
    parser.epilog = EPILOG
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="only these (default: all known)")
    parser.add_argument("--write", action="store_true", help="change the files, and prove it")
    parser.add_argument("--undo", action="store_true", help="take the last --write back")
    parser.add_argument(
        "--force",
        action="store_true",
        help="keep what does not answer; undo in files that were changed since",
    )
    parser.add_argument(
        "--deadline", type=seconds_of, default=DEADLINE_S, metavar="S", help="for a handshake (default: 30)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    parser.set_defaults(run=run)


class MigrationItem(msgspec.Struct):
    """One stale entry, as `--json` prints it."""

    server: str
    keys: tuple[str, ...]
    enabled: bool
    state: str = "stale"
    """`stale`, `migrated`, `put back` or `broken`."""
    command: list[str] = []
    """The new command."""
    notes: list[str] = []
    problem: str = ""
    proof: HandshakeResult | None = None


class FileReport(msgspec.Struct):
    """The stale entries of one file, and what was done with them."""

    file: str
    items: list[MigrationItem]
    diff: str = ""
    backup: str | None = None
    problem: str = ""


class MigrationReport(msgspec.Struct):
    """The result of a run, as `--json` prints it."""

    files: list[FileReport]
    unreadable: list[dict[str, str]]
    written: bool

    @property
    def exit_code(self) -> int:
        is_done = all(item.state == "migrated" for file in self.files for item in file.items)
        return 0 if is_done else 1


class MigrationPlan(msgspec.Struct):
    """The changes of one file."""

    before: FileSnapshot
    text: str
    changes: list[tuple[MigrationItem, dict[str, Any], dict[str, Any]]]
    """The entry, its value before, and its value after."""
    report: FileReport


def run(options: argparse.Namespace) -> int:
    if options.undo:
        if options.write or options.files:
            raise UsageError(
                "--undo takes the last --write back as a whole: it goes with no other file or --write."
            )
        from laneway.cli.undo import undo

        return undo("migrate", is_forced=options.force, has_json=options.json)
    report = asyncio.run(migrate(options))
    if options.json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        _print(report)
    return report.exit_code


async def migrate(options: argparse.Namespace) -> MigrationReport:
    from laneway.cli.registrations import places, scan

    named = [file.expanduser().absolute() for file in options.files]
    for file in named:
        if not file.exists():
            raise UsageError(f"There is no file {code_label(str(file))}.")
    result = scan(named or places(Path.home(), Path.cwd(), os.environ))
    unreadable = [{"file": str(each.file), "problem": each.problem} for each in result.unreadable]
    plans = [_plan(file, list(stale)) for file, stale in _by_file(result.stale)]
    report = MigrationReport([plan.report for plan in plans], unreadable, written=options.write)
    if options.write:
        from laneway.cli.clients import journal

        record = journal.Journal.begin(journal.folder(), "migrate")
        for plan in plans:
            await _apply(plan, record, options)
    return report


def _by_file(stale: Iterable[Registration]) -> list[tuple[Path, list[Registration]]]:
    """The entries by file; each real file once, however many links lead to it."""
    files: dict[str, tuple[Path, list[Registration]]] = {}
    for entry in stale:
        real = os.path.realpath(entry.file)
        file, entries = files.setdefault(real, (entry.file, []))
        if file == entry.file:
            entries.append(entry)
    return list(files.values())


# ── planning ───────────────────────────────────────────────────────────────


def _plan(file: Path, stale: list[Registration]) -> MigrationPlan:
    """The changes of one file. Entries that cannot be changed get a problem in the report."""
    from laneway.cli.clients import edit, files, show
    from laneway.cli.registrations import parse, problem_text

    items = [MigrationItem(entry.server, entry.keys, entry.is_enabled) for entry in stale]
    report = FileReport(str(file), items)
    try:
        before = files.read(file)
        tree = parse(before.text, file)
    except (ClientFileError, ValueError) as problem:  # it was readable a moment ago
        report.problem = str(problem)
        return MigrationPlan(files.FileSnapshot(file, file, None, 0), "", [], report)
    plan = MigrationPlan(before, before.text, [], report)
    for item in items:
        node = edit.look(tree, item.keys)
        after = _rewritten(node, item, file) if isinstance(node, dict) else None
        if after is None:
            continue
        try:
            plan.text = edit.put(plan.text, file, item.keys, after)
        except ValueError as problem:
            item.problem = f"The file cannot be edited: {problem_text(problem)}."
            continue
        plan.changes.append((item, node, after))
    report.diff = show.difference(before.text, plan.text, file)
    return plan


def _rewritten(node: dict[str, Any], item: MigrationItem, file: Path) -> dict[str, Any] | None:
    from laneway.base.redact import redact
    from laneway.cli.clients.command import choose
    from laneway.cli.clients.entry import command_line_of, with_command_line
    from laneway.cli.clients.keeping import with_laneway

    words = command_line_of(node)
    if words is None:
        item.problem = "One of its arguments is no text."
        return None
    command = choose(shared=_is_shared(file), environment=os.environ)
    new, notes = with_laneway(words, command.words)
    if new.problem:
        item.problem = f"It was left as it is: {new.problem}. Change it by hand."
        return None
    item.command = [redact(word) for word in new.words]
    item.notes = [*command.notes, *notes]
    if not item.enabled:
        item.notes.append("It is switched off there, and stays so.")
    if "plugins" in file.parts and ".claude" in file.parts:
        item.notes.append("It belongs to a plugin: an update of the plugin may bring the old one back.")
    return with_command_line(node, list(new.words))


def _is_shared(file: Path) -> bool:
    """Whether others share this file: it is in a project, and the project is not the home folder."""
    from laneway.cli.clients.known import ConfigFolders

    home = Path.home()
    project = ConfigFolders(home, Path.cwd(), os.environ).project
    return project != home and file.is_relative_to(project)


# ── writing ────────────────────────────────────────────────────────────────


async def _apply(plan: MigrationPlan, record: Journal, options: argparse.Namespace) -> None:
    """Change the file so that it can be undone, then prove each of its entries."""
    from laneway.cli.clients import changing, journal
    from laneway.cli.clients.proof import prove

    if not plan.changes:
        return
    entries = [journal.changed(item.keys, old, new) for item, old, new in plan.changes]
    try:
        applied = changing.apply(plan.before, plan.text, entries, record)
    except (ClientFileError, StoreError) as problem:
        plan.report.problem = str(problem)
        return
    plan.report.backup = applied.backup
    for item, _, _ in plan.changes:
        item.state = "migrated"
    for item, _, _ in plan.changes:
        item.proof = await prove(plan.before.file, item.keys, options.deadline)
        if not item.proof.is_good:
            item.state = "broken" if options.force else "put back"
    _put_back(plan, applied)


def _put_back(plan: MigrationPlan, applied: Applied) -> None:
    """Restore the entries that do not answer; the others stay changed."""
    from laneway.cli.clients import edit, files, journal

    failed = [(item, old) for item, old, _ in plan.changes if item.state == "put back"]
    if not failed:
        return
    try:
        if len(failed) == len(plan.changes):
            applied.take_back()
            plan.report.backup = None
            return
        after, text = applied.after, applied.after.text
        for item, old in failed:
            text = edit.put(text, after.file, item.keys, old)
        files.write(after, text)
        failed_keys = {item.keys for item, _ in failed}
        applied.changed.entries = [
            entry for entry in applied.changed.entries if entry.keys not in failed_keys
        ]
        applied.changed.after_sha256 = journal.digest(after.encoded(text))
        applied.journal.save()
    except (ClientFileError, StoreError) as problem:
        plan.report.problem = f"{problem} `laneway migrate --undo` takes it back."
        for item, _ in failed:
            item.state = "broken"


# ── output ─────────────────────────────────────────────────────────────────


def _print(report: MigrationReport) -> None:
    from laneway.base.plain import plain
    from laneway.cli.clients.show import coloured, short
    from laneway.terminal import Style

    style = Style(sys.stdout)
    for file in report.files:
        if file.diff:
            print(coloured(file.diff, style))
        for item in file.items:
            _print_item(item, style)
        if file.problem:
            print(style.red(f"  ✘ {plain(file.problem)}"))
        if file.backup:
            print(style.dim(f"  The file as it was: {short(Path(file.backup))}"))
        print()
    for each in report.unreadable:
        print(
            f"{short(Path(each['file']))} could not be looked at: {plain(each['problem'])}.", file=sys.stderr
        )
    print(_summary(report))


def _print_item(item: MigrationItem, style: Any) -> None:
    from laneway.base.plain import code_label, plain
    from laneway.cli.clients.show import proof_lines

    name = code_label(item.server)
    if item.problem:
        print(style.yellow(f"  ! {name}: {plain(item.problem)}"))
    if item.proof is not None:
        print(f"  {name}:")
        for line in proof_lines(item.proof, style):
            print(line)
    if item.state == "put back":
        print("    → It was put back as it was; --force would keep the new one.")
    for note in item.notes:
        print(f"  {plain(note)}")


def _summary(report: MigrationReport) -> str:
    items = [item for file in report.files for item in file.items]
    if not items:
        return "Nothing here starts the removed `codex mcp-server`."
    entries = "1 entry" if len(items) == 1 else f"{len(items)} entries"
    if not report.written:
        changeable = sum(bool(item.command) and not item.problem for item in items)
        hint = " `laneway migrate --write` changes it." if changeable == len(items) == 1 else ""
        hint = hint or (f" `laneway migrate --write` changes {changeable} of them." if changeable else "")
        start = "starts" if len(items) == 1 else "start"
        return f"{entries} still {start} the removed `codex mcp-server`; nothing was changed.{hint}"
    done = sum(item.state == "migrated" for item in items)
    if done == len(items):
        return f"{entries} changed, and what is started answers. `laneway migrate --undo` takes it back."
    return f"{done} of {entries} changed and answering; the others are listed above."
