"""`laneway setup`: registers Laneway in a client, and proves it by starting what was registered.

Writes one entry of one file. If what was written does not answer, the file is put back as it was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from laneway.base.errors import ClientFileError, UsageError

if TYPE_CHECKING:
    from laneway.cli.clients.command import Command
    from laneway.cli.clients.files import Snapshot
    from laneway.cli.clients.known import Client
    from laneway.cli.handshake import Proof

CLIENT_NAMES = (
    "claude",
    "claude-project",
    "codex",
    "cursor",
    "vscode",
    "zed",
    "opencode",
    "gemini",
    "generic",
    "jetbrains",
)
DEADLINE_S = 30.0
"""For the handshake; see `laneway.cli.handshake`."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
"""What every client takes for the name of a server."""

EPILOG = """\
The server is called `codex` there, as the removed `codex mcp-server` mostly was: its tools keep
their names (mcp__codex__codex), so permissions and prompts written for it still fit. In Codex's
own config it is called `laneway`. --name changes that.

The entry starts `laneway` by its full path, unless it lies where every program looks
(/usr/local/bin, /usr/bin, /bin): a client that was started from a desktop does not know the
PATH of your terminal. A project's file, which others share, gets the plain name if it is on PATH.

Comments and layout of the file stay, a backup lies beside it, and what was registered is then
started as the client would. If it does not answer, the file is put back (--force keeps it).

  laneway setup claude                        Claude Code, in all your projects
  laneway setup claude-project                for everyone who uses this repository
  laneway setup codex --door mcp-server       only the two tools of the removed server
  laneway setup cursor -- --tools codex       everything after -- is for the server
  laneway setup vscode --scope project        .vscode/mcp.json
  laneway setup zed --print                   only show what would be written
  laneway setup zed --door acp                as an agent of the editor, not a server of its tools
  laneway setup jetbrains                     the same for IntelliJ, PyCharm and the others
  laneway setup generic --file their.json     any client that has `mcpServers`
  laneway setup claude --remove               take it out again

exit codes of this command:
  0    registered and proved, or there already, or removed
  1    it does not answer, or the file cannot be edited: nothing was changed
  2    the command line is wrong
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Register Laneway in a client, and prove it by a handshake."
    parser.epilog = EPILOG
    parser.usage = "laneway setup CLIENT [options] [-- FLAG …]"
    parser.add_argument("client", choices=CLIENT_NAMES, metavar="CLIENT", help=", ".join(CLIENT_NAMES))
    parser.add_argument("--name", metavar="NAME", help="the server's name there (default: codex; see below)")
    parser.add_argument(
        "--door", choices=("mcp", "mcp-server", "acp"), help="what is started (default: mcp; jetbrains: acp)"
    )
    parser.add_argument(
        "--scope", choices=("user", "project"), help="for you everywhere, or for this project"
    )
    parser.add_argument("--file", type=Path, metavar="FILE", help="this file, not the client's usual one")
    parser.add_argument("--print", action="store_true", help="only show what would be written")
    parser.add_argument("--remove", action="store_true", help="take the entry out")
    parser.add_argument(
        "--force", action="store_true", help="replace another server of that name; keep what does not answer"
    )
    parser.add_argument(
        "--deadline", type=seconds_of, default=DEADLINE_S, metavar="S", help="for the handshake (default: 30)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    parser.set_defaults(run=run)
    _split_at_dashes(parser)


def _split_at_dashes(parser: argparse.ArgumentParser) -> None:
    """Everything after `--` is the server's: argparse would give it up once a flag stood before."""
    inner = parser.parse_known_args

    def parse(args: Any = None, namespace: Any = None) -> Any:
        words = list(args or ())
        at = words.index("--") if "--" in words else len(words)
        found, rest = inner(words[:at], namespace)
        found.flags = words[at + 1 :]
        return found, rest

    parser.parse_known_args = parse  # type: ignore[method-assign]


def seconds_of(text: str) -> float:
    """A deadline from the command line."""
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return seconds


Action = Literal["added", "replaced", "unchanged", "removed", "absent", "printed", "broken", "put back"]


class Done(msgspec.Struct, frozen=True):
    """What `setup` did, as `--json` tells it."""

    client: str
    file: str | None
    server: str
    action: Action
    command: list[str] = []
    backup: str | None = None
    notes: list[str] = []
    proof: Proof | None = None
    entry: dict[str, Any] | None = None

    @property
    def exit_code(self) -> int:
        return 1 if self.action in ("broken", "put back") else 0


class Job(msgspec.Struct, frozen=True):
    """One call of `setup`: which file, which entry, what to write."""

    client: Client
    file: Path
    is_shared: bool
    door: str
    name: str
    words: tuple[str, ...]
    notes: tuple[str, ...]
    options: argparse.Namespace


def run(options: argparse.Namespace) -> int:
    if options.name is not None and not options.remove and not _NAME.match(options.name):
        raise UsageError("A server's name has letters, digits, - and _, at most 64 of them: see --name.")
    if options.remove and (options.flags or options.print):
        raise UsageError("--remove goes with neither --print nor flags for the server.")
    job, command = _job(options)
    if options.print or job is None:
        return _print(options, command)
    done = _remove(job) if options.remove else asyncio.run(register(job))
    if options.json:
        sys.stdout.write(msgspec.json.encode(done).decode() + "\n")
    else:
        _tell(job, done)
    return done.exit_code


def _job(options: argparse.Namespace) -> tuple[Job | None, Command]:
    from laneway.cli.clients.command import choose
    from laneway.cli.clients.known import Where

    client, door = _client(options)
    scopes = tuple(client.files)
    scope = options.scope or (scopes[0] if scopes else "user")
    if options.scope and options.scope not in scopes:
        offered = f"only --scope {scopes[0]}" if scopes else "no --scope: name its --file"
        raise UsageError(f"`laneway setup {client.name}` has {offered}.")
    is_shared = scope == "project"
    command = choose(shared=is_shared, environment=os.environ)
    where = Where(Path.home(), Path.cwd(), os.environ)
    file = options.file.expanduser().absolute() if options.file else None
    if file is None and scopes:
        file = client.files[scope](where)
    if file is None:
        if options.remove:
            raise UsageError("`laneway setup generic --remove` needs the file: name it with --file.")
        return None, command
    words = (*command.words, door, *options.flags)
    name = options.name or client.default_name
    return Job(client, file, is_shared, door, name, words, command.notes, options), command


def _client(options: argparse.Namespace) -> tuple[Client, str]:
    """By its name and by the door: an editor can be both, each in a table of its own."""
    from laneway.cli.clients.known import CLIENTS, EDITORS

    door = options.door or ("mcp" if options.client in CLIENTS else "acp")
    client = (EDITORS if door == "acp" else CLIENTS).get(options.client)
    if client is None:
        known = f"--door acp is for {' and '.join(EDITORS)}" if door == "acp" else "it has only --door acp"
        raise UsageError(f"`laneway setup {options.client}` cannot do that: {known}.")
    return client, door


# ── writing ────────────────────────────────────────────────────────────────


async def register(job: Job) -> Done:
    """Write the entry, prove it, put the file back if it does not answer."""
    from laneway.cli.clients import edit, files
    from laneway.cli.clients.proof import prove
    from laneway.cli.registrations import in_words

    before = _read(job)
    try:
        keys, existing = _existing(job, before)
        entry, notes = _entry(job, existing)
        new = before.text if entry == existing else edit.put(before.text, job.file, keys, entry)
    except ValueError as problem:
        raise files.refused(job.file, in_words(problem)) from problem
    notes = [*job.notes, *notes]
    if entry == existing:
        proof = await prove(job.file, keys, job.options.deadline, is_agent=job.door == "acp")
        action: Action = "unchanged" if proof.is_good else "broken"
        return _done(job, action, notes=notes, proof=proof)
    files.check_writable(before)
    backup = files.back_up(before)
    try:
        after = files.write(before, new)
    except ClientFileError:
        _forget(backup)
        raise
    try:
        proof = await prove(job.file, keys, job.options.deadline, is_agent=job.door == "acp")
    except BaseException:
        # Interrupted: what is not proved does not stay.
        files.restore(before, after)
        _forget(backup)
        raise
    if not proof.is_good and not job.options.force:
        files.restore(before, after)
        _forget(backup)
        return _done(job, "put back", notes=notes, proof=proof)
    action = "broken" if not proof.is_good else "added" if existing is None else "replaced"
    return _done(job, action, backup=str(backup) if backup else None, notes=notes, proof=proof)


def _read(job: Job) -> Snapshot:
    from laneway.cli.clients import files

    return files.read(job.file, files.SHARED if job.is_shared else files.PRIVATE)


def _existing(job: Job, before: Snapshot) -> tuple[tuple[str, ...], dict[str, Any] | None]:
    """Where the entry is or will be, and what is there."""
    from laneway.cli.clients import edit
    from laneway.cli.registrations import parse

    tree = parse(before.text, job.file) if before.text.strip() else {}
    keys = (*job.client.table_in(tree), job.name)
    found = edit.look(tree, keys)
    if found is not None and not isinstance(found, dict):
        raise ValueError(f"its {job.name!r} is no entry for a server")
    return keys, found


def _entry(job: Job, existing: dict[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
    """The entry to write: ours, with what the user has added to the one that is there."""
    fresh = job.client.entry(list(job.words))
    if existing is None:
        return fresh, []
    if not _is_ours(existing):
        if not job.options.force:
            raise UsageError(
                f"{_short(job.file)} has another server called {job.name!r}: choose another --name, "
                "or replace it with --force."
            )
        return fresh, ["Another server of that name was replaced; the backup has it."]
    notes = []
    entry = {**existing, **fresh}
    if entry.pop("disabled", False) is True or entry.get("enabled") is False:
        notes.append("It was switched off there; it is switched on now.")
    if "enabled" in entry:
        entry["enabled"] = True
    return entry, notes


def _is_ours(entry: dict[str, Any]) -> bool:
    """Whether it starts Laneway, or the removed server in whose place Laneway comes."""
    from laneway.cli.clients.entry import words_of
    from laneway.cli.registrations import is_stale, program

    words = words_of(entry) or [""]
    return is_stale(words[0], words[1:]) or any(program(word) == "laneway" for word in words[:6])


def _remove(job: Job) -> Done:
    from laneway.cli.clients import edit, files
    from laneway.cli.registrations import in_words

    before = _read(job)
    try:
        keys, existing = _existing(job, before)
        if existing is None:
            return _done(job, "absent")
        if not _is_ours(existing) and not job.options.force:
            raise UsageError(
                f"The server {job.name!r} of {_short(job.file)} is not Laneway: remove it with --force."
            )
        new = edit.drop(before.text, job.file, keys)
    except ValueError as problem:
        raise files.refused(job.file, in_words(problem)) from problem
    files.check_writable(before)
    backup = files.back_up(before)
    try:
        files.write(before, new)
    except ClientFileError:
        _forget(backup)
        raise
    return _done(job, "removed", backup=str(backup))


def _forget(backup: Path | None) -> None:
    if backup is not None:
        backup.unlink(missing_ok=True)


def _done(job: Job, action: Action, **facts: Any) -> Done:
    from laneway.base.redact import redact

    command = [] if action in ("removed", "absent") else [redact(word) for word in job.words]
    return Done(job.client.name, str(job.file), job.name, action, command, **facts)


# ── telling ────────────────────────────────────────────────────────────────


def _print(options: argparse.Namespace, command: Command) -> int:
    """The entry as it would be written, to be pasted."""
    from laneway.cli.clients import edit

    job, _ = _job(options)
    client, door = _client(options)
    name = options.name or client.default_name
    entry = client.entry([*command.words, door, *options.flags])
    file = job.file if job is not None else Path("mcp.json")
    if options.json:
        told = str(file) if job else None
        done = Done(client.name, told, name, "printed", entry=entry, notes=list(command.notes))
        print(msgspec.json.encode(done).decode())
        return 0
    where = f"This belongs into {_short(file)}:" if job else "This belongs into the client's config:"
    print(where, file=sys.stderr)
    print(edit.put("", file, (*client.table, name), entry), end="")
    for note in command.notes:
        print(note, file=sys.stderr)
    return 0


def _tell(job: Job, done: Done) -> None:
    from laneway.cli.clients.show import command_line, proof_lines
    from laneway.cli.terminal import Style

    style = Style(sys.stdout)
    where = f"{job.client.title} as {json.dumps(done.server)} ({_short(job.file)})"
    print(
        {
            "added": f"Laneway is registered in {where}.",
            "replaced": f"Laneway is now registered in {where}, in place of what was there.",
            "unchanged": f"Laneway is registered already in {where}; nothing was written.",
            "removed": f"Laneway is no longer registered in {where}.",
            "absent": f"There is nothing to remove: it is not registered in {where}.",
            "put back": f"Laneway was not registered in {where}: what would be started does not answer.",
            "broken": f"Laneway is registered in {where}, but what is started does not answer.",
            "printed": "",
        }[done.action]
    )
    if done.command:
        print(style.dim(f"  starts {command_line(job.words)}"))
    for line in proof_lines(done.proof, style) if done.proof else ():
        print(line)
    if done.action == "put back":
        print("  The file is as it was. --force would keep the entry.")
    if done.backup:
        print(style.dim(f"  The file as it was: {_short(Path(done.backup))}"))
    for note in done.notes:
        print(f"  {note}")
    if done.action in ("added", "replaced"):
        print(f"  {job.client.after}")


def _short(file: Path) -> str:
    from laneway.cli.clients.show import short

    return short(file)
