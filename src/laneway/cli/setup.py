"""`laneway setup`: registers Laneway in a client's config, and proves it by starting what was registered.

Owns the flags and the output; `laneway.cli.clients.registering` does the work. Bots and the service that
runs them are `laneway.cli.bots`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.base.errors import UsageError
from laneway.base.plain import plain

if TYPE_CHECKING:
    from laneway.cli.clients.command import LaunchCommand
    from laneway.cli.clients.known import KnownClient
    from laneway.cli.clients.registering import SetupJob, SetupResult

CLIENT_NAMES = (
    "claude",
    "claude-project",
    "claude-desktop",
    "codex",
    "cursor",
    "windsurf",
    "vscode",
    "zed",
    "opencode",
    "gemini",
    "generic",
    "jetbrains",
)
BOT_NAMES = ("telegram", "discord")
SERVICE_NAME = "service"
DEADLINE_S = 30.0
"""For the handshake; see `laneway.cli.handshake`."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
"""Server names that every client accepts."""

EPILOG = """\
The server is registered as `codex`, as the removed `codex mcp-server` usually was: its tools keep
their names (mcp__codex__codex), so permissions and prompts written for them still work. In Codex's
own config it is called `laneway`. --name changes that.

The entry starts `laneway` by its full path, unless it lies where every program looks
(/usr/local/bin, /usr/bin, /bin): a client that was started from a desktop does not know the
PATH of your terminal. A project's file, which others share, gets the plain name if it is on PATH.

Comments and layout of the file stay, and so do the flags, variables and folder of an entry that
is there already (`--` alone drops the flags). The new entry is then started as the client
would start it. If it does not answer, the old file is restored (--force keeps the new one). --undo
restores the file as it was before the last setup, from a copy in Laneway's state folder.

  laneway setup claude                        Claude Code, in all your projects
  laneway setup claude-project                for everyone who uses this repository
  laneway setup codex --door mcp-server       only the two tools of the removed server
  laneway setup cursor -- --tools codex       everything after -- is for the server
  laneway setup vscode --scope project        .vscode/mcp.json
  laneway setup zed --print                   only show what would be written
  laneway setup zed --door acp                as an agent of the editor, not a server of its tools
  laneway setup jetbrains                     the same for IntelliJ, PyCharm and the others
  laneway setup generic --file their.json     any client that has `mcpServers`
  laneway setup claude --remove               remove it again
  laneway setup --undo                        undo the last setup

Bots: you are asked for the token, which is never shown, and then send the bot a code, so that it knows its
owner. Token and owner are stored in your own settings, which only you can read. A second run adds the person
who types the code; --force makes them the only one, and --remove removes the bot.

  laneway setup telegram
  laneway setup discord
  printenv MY_TOKEN | laneway setup telegram --token-stdin    without a terminal; the code is printed
  laneway setup service -C ~/work      a systemd unit or launchd file that runs all bots that are set up
  laneway setup service --start        the same, and start it now

exit codes of this command:
  0    registered and proved, or there already, or removed, or taken back
  1    it does not answer, nobody typed the code, or the file cannot be edited: nothing was changed
  2    the command line is wrong
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Register Laneway in a client, and prove it by a handshake; or set up a bot."
    parser.epilog = EPILOG
    parser.usage = (
        "laneway setup CLIENT [options] [-- FLAG …]\n"
        "       laneway setup telegram|discord [--token-stdin] [--force] [--remove]\n"
        "       laneway setup service [--platform NAME] [-C DIR] [--start] [--remove]\n"
        "       laneway setup --undo [CLIENT]"
    )
    every = (*CLIENT_NAMES, *BOT_NAMES, SERVICE_NAME)
    parser.add_argument("client", nargs="?", choices=every, metavar="CLIENT", help=", ".join(every))
    parser.add_argument("--name", metavar="NAME", help="the server's name there (default: codex; see below)")
    parser.add_argument(
        "--door", choices=("mcp", "mcp-server", "acp"), help="what it starts (default: mcp; jetbrains: acp)"
    )
    parser.add_argument(
        "--scope", choices=("user", "project"), help="for you everywhere, or for this project"
    )
    parser.add_argument("--file", type=Path, metavar="FILE", help="this file, not the client's usual one")
    parser.add_argument("--print", action="store_true", help="only show what would be written")
    parser.add_argument("--remove", action="store_true", help="remove the entry")
    parser.add_argument("--undo", action="store_true", help="undo the last setup, or the client's last")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace another server of that name; keep what does not answer; undo in a changed file",
    )
    parser.add_argument(
        "--deadline",
        type=seconds_of,
        metavar="S",
        help="for the handshake (default: 30), or for the code to be typed (600)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    _add_bot_flags(parser)
    parser.set_defaults(run=run)
    _split_at_dashes(parser)


def _add_bot_flags(parser: argparse.ArgumentParser) -> None:
    bots = parser.add_argument_group("for telegram and discord")
    bots.add_argument("--token-stdin", action="store_true", help="read the token from standard input")
    service = parser.add_argument_group("for service")
    service.add_argument(
        "--platform",
        action="append",
        choices=BOT_NAMES,
        metavar="NAME",
        help="only this bot, repeatable (default: all that are set up)",
    )
    service.add_argument(
        "-C",
        "--cwd",
        type=Path,
        metavar="DIR",
        help="the folder of new conversations (default: the current one)",
    )
    service.add_argument("--start", action="store_true", help="start it now, and at each login")


def _split_at_dashes(parser: argparse.ArgumentParser) -> None:
    """Keep everything after `--` for the server: argparse fails on it if a flag comes before."""
    inner = parser.parse_known_args

    def parse(args: Any = None, namespace: Any = None) -> Any:
        words = list(args or ())
        at = words.index("--") if "--" in words else len(words)
        options, rest = inner(words[:at], namespace)
        options.flags = tuple(words[at + 1 :]) if at < len(words) else None
        return options, rest

    parser.parse_known_args = parse  # type: ignore[method-assign]


def seconds_of(text: str) -> float:
    """A deadline from the command line."""
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return seconds


def run(options: argparse.Namespace) -> int:
    _check(options)
    if options.undo:
        from laneway.cli.undo import undo

        return undo("setup", options.client or "", is_forced=options.force, has_json=options.json)
    if options.client in BOT_NAMES:
        from laneway.cli.bots import setup_bot

        return setup_bot.run(options)
    if options.client == SERVICE_NAME:
        from laneway.cli.bots import setup_service

        return setup_service.run(options)
    job, command = _job(options)
    if options.print or job is None:
        return _print(options, command)
    from laneway.cli.clients.registering import register, remove

    result = remove(job) if options.remove else asyncio.run(register(job))
    if options.json:
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    else:
        _print_result(job, result)
    return result.exit_code


def _check(options: argparse.Namespace) -> None:
    if options.undo:
        if options.remove or options.print or options.flags is not None or options.name or options.file:
            raise UsageError("--undo takes the last setup back as a whole: it goes with a client at most.")
        return
    if options.client is None:
        every = (*CLIENT_NAMES, *BOT_NAMES, SERVICE_NAME)
        raise UsageError(f"Name the client: {', '.join(every)}.")
    if options.name is not None and not options.remove and not _NAME.match(options.name):
        raise UsageError("A server's name has letters, digits, - and _, at most 64 of them: see --name.")
    if options.remove and (options.flags is not None or options.print):
        raise UsageError("--remove goes with neither --print nor flags for the server.")
    _check_flags(options)


def _check_flags(options: argparse.Namespace) -> None:
    """Refuse what another kind of setup would have used."""
    of_clients = {
        "--name": options.name,
        "--door": options.door,
        "--scope": options.scope,
        "--file": options.file,
        "-- FLAG": options.flags is not None,
    }
    of_bots = {"--token-stdin": options.token_stdin}
    of_service = {"--platform": options.platform, "-C": options.cwd, "--start": options.start}
    if options.client in BOT_NAMES:
        foreign = {**of_clients, **of_service, "--print": options.print}
    elif options.client == SERVICE_NAME:
        foreign = {**of_clients, **of_bots, "--deadline": options.deadline}
        options.cwd = options.cwd or Path()
    else:
        foreign = {**of_bots, **of_service}
        options.deadline = options.deadline or DEADLINE_S
    for flag, given in foreign.items():
        if given:
            raise UsageError(f"`laneway setup {options.client}` does not take {flag}.")


def _job(options: argparse.Namespace) -> tuple[SetupJob | None, LaunchCommand]:
    from laneway.cli.clients.command import choose
    from laneway.cli.clients.keeping import EntryRequest
    from laneway.cli.clients.known import ConfigFolders, wsl_note
    from laneway.cli.clients.registering import SetupJob

    client, default_door = _client(options)
    scopes = tuple(client.files)
    scope = options.scope or (scopes[0] if scopes else "user")
    if options.scope and options.scope not in scopes:
        allowed = f"only --scope {scopes[0]}" if scopes else "no --scope: name its --file"
        raise UsageError(f"`laneway setup {client.name}` has {allowed}.")
    is_shared = scope == "project"
    command = choose(shared=is_shared, environment=os.environ)
    folders = ConfigFolders(Path.home(), Path.cwd(), os.environ)
    file = options.file.expanduser().absolute() if options.file else None
    if file is None and scopes:
        file = client.files[scope](folders)
    if file is None:
        if options.remove:
            raise UsageError("`laneway setup generic --remove` needs the file: name it with --file.")
        return None, command
    request = EntryRequest(command.words, options.door, options.flags, default_door)
    name = options.name or client.default_name
    on_windows = wsl_note(client, (*command.words, default_door), os.environ)
    notes = (*command.notes, *([on_windows] if on_windows else []))
    job = SetupJob(client, file, is_shared, name, request, notes, options.deadline, options.force)
    return job, command


def _client(options: argparse.Namespace) -> tuple[KnownClient, str]:
    """The client of that name for that `--door`, and the default `--door`.

    An editor can be a client of MCP and of ACP, each in a table of its own.
    """
    from laneway.cli.clients.known import CLIENTS, EDITORS

    door = options.door or ("mcp" if options.client in CLIENTS else "acp")
    client = (EDITORS if door == "acp" else CLIENTS).get(options.client)
    if client is None:
        known = f"--door acp is for {' and '.join(EDITORS)}" if door == "acp" else "it has only --door acp"
        raise UsageError(f"`laneway setup {options.client}` cannot do that: {known}.")
    return client, door


# ── output ─────────────────────────────────────────────────────────────────


def _print(options: argparse.Namespace, command: LaunchCommand) -> int:
    """Print the entry as it would be written, for copy and paste."""
    from laneway.cli.clients import edit
    from laneway.cli.clients.registering import SetupResult

    job, _ = _job(options)
    client, door = _client(options)
    name = options.name or client.default_name
    entry = client.entry([*command.words, door, *(options.flags or ())])
    file = job.file if job is not None else Path("mcp.json")
    if options.json:
        file_name = str(file) if job else None
        result = SetupResult(client.name, file_name, name, "printed", entry=entry, notes=list(command.notes))
        print(msgspec.json.encode(result).decode())
        return 0
    heading = f"This belongs into {_short(file)}:" if job else "This belongs into the client's config:"
    print(heading, file=sys.stderr)
    print(edit.put("", file, (*client.table, name), entry), end="")
    for note in command.notes:
        print(plain(note), file=sys.stderr)
    return 0


def _print_result(job: SetupJob, result: SetupResult) -> None:
    from laneway.cli.clients.show import command_line, proof_lines
    from laneway.terminal import Style

    style = Style(sys.stdout)
    where = f"{job.client.title} as {json.dumps(result.server)} ({_short(job.file)})"
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
        }[result.action]
    )
    if result.command:
        print(style.dim(f"  starts {command_line(result.command)}"))
    for line in proof_lines(result.proof, style) if result.proof else ():
        print(line)
    if result.action == "put back":
        print("  The file is as it was. --force would keep the entry.")
    for note in result.notes:
        print(f"  {plain(note)}")
    if result.action in ("added", "replaced"):
        print(f"  {job.client.after}")
    if result.can_undo:
        backup = f" The file as it was: {_short(Path(result.backup))}" if result.backup else ""
        print(style.dim(f"  `laneway setup --undo` takes it back.{backup}"))


def _short(file: Path) -> str:
    from laneway.cli.clients.show import short

    return short(file)
