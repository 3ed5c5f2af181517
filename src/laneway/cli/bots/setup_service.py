"""`laneway setup service`: writes a service that runs the bots that are set up, without a terminal.

One service for all of them, in one process: so a conversation can be shown on several. Starts nothing
unless asked to, and replaces no file that somebody else wrote.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from laneway.app.bots import BOTS, access_of, variables
from laneway.app.chat_platforms import require
from laneway.base.errors import LanewayError, UsageError
from laneway.base.paths import state_home
from laneway.base.plain import plain
from laneway.base.settings import Settings, load
from laneway.cli.bots import service_files
from laneway.cli.bots.service_files import ServicePlace
from laneway.cli.bots.service_unit import ServiceWords, service_text, service_words
from laneway.cli.clients import files
from laneway.cli.clients.command import choose
from laneway.cli.clients.show import short
from laneway.cli.codex_flags import folder
from laneway.store.files import make_folder

CLIENT = "service"
LOG = "service.log"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")

Action: TypeAlias = Literal["added", "replaced", "unchanged", "removed", "absent", "printed"]


class ServiceSetupResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, as `--json` prints it."""

    client: str = CLIENT
    file: str
    action: Action
    platforms: list[str] = []
    is_started: bool = False
    commands: list[str] = []
    """That start it, or end it, by hand."""
    content: str = ""
    """With `--print`."""
    problem: str = ""
    notes: list[str] = []


def run(options: argparse.Namespace) -> int:
    service = service_files.place(Path.home(), os.environ)
    result = _remove(service) if options.remove else _set_up(options, service)
    if options.json:
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    elif result.action == "printed":
        print(f"This belongs into {short(service.file)}:", file=sys.stderr)
        print(result.content, end="")
    else:
        for line in _lines(service, result):
            print(plain(line))
    return 1 if result.problem and not options.remove else 0


def _set_up(options: argparse.Namespace, service: ServicePlace) -> ServiceSetupResult:
    cwd = folder(options.cwd).absolute()
    platforms = _platforms(options.platform, _settings_of_service(cwd))
    command = choose(shared=False, environment=os.environ)
    words = _words(command.words, platforms, cwd)
    text = service_text(service.kind, words)
    notes = [*command.notes, *_notes(service)]
    if options.print:
        return ServiceSetupResult(
            file=str(service.file), action="printed", platforms=platforms, content=text, notes=notes
        )
    before = files.read(service.file)
    if before.data is not None and not service_files.is_ours(service.file) and not options.force:
        raise UsageError(f"{short(service.file)} was not written by Laneway: replace it with --force.")
    is_new = text != before.text
    if is_new:
        if service.kind == "launchd":
            make_folder(words.log.parent)
        files.write(before, text)
    problem = _started(service) if options.start else ""
    return ServiceSetupResult(
        file=str(service.file),
        action="unchanged" if not is_new else "added" if before.data is None else "replaced",
        platforms=platforms,
        is_started=options.start and not problem,
        commands=[shlex.join(each) for each in service.starting],
        problem=problem,
        notes=notes,
    )


def _words(laneway: tuple[str, ...], platforms: Sequence[str], cwd: Path) -> ServiceWords:
    if not laneway[0].startswith("/"):
        laneway = (shutil.which(laneway[0]) or laneway[0], *laneway[1:])
    return service_words(laneway, platforms, cwd, os.environ, state_home() / LOG)


def _settings_of_service(cwd: Path) -> Settings:
    """As the service will find them: without the variables of this terminal that are settings."""
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith(("LANEWAY_", "ATM_CONFIG"))
    }
    return load({}, kept, cwd, Path.home())


def _platforms(chosen: Sequence[str] | None, settings: Settings) -> list[str]:
    """Those that were asked for, or all that are set up. Raises `UsageError` for one that could not start."""
    found = [name for name in BOTS if settings.value(f"chat.{name}.token")]
    platforms = list(dict.fromkeys(chosen or found))
    if not platforms and not any(_variable(name) for name in BOTS):
        raise UsageError(
            "No bot is set up yet: run `laneway setup telegram` or `laneway setup discord` first."
        )
    for name in platforms or [each for each in BOTS if _variable(each)]:
        if not settings.value(f"chat.{name}.token"):
            if variable := _variable(name):
                raise UsageError(
                    f"The token for {name} comes from {variable}, which a service does not have: "
                    f"store it by `printenv {variable} | laneway config set chat.{name}.token -`."
                )
            raise UsageError(f"There is no token for {name}: run `laneway setup {name}` first.")
        access_of(name, settings)
    require(platforms)
    return platforms


def _variable(platform: str) -> str:
    """The variable of this terminal that has the token; empty if none has."""
    return next((name for name in variables(platform) if os.environ.get(name, "").strip()), "")


def _notes(service: ServicePlace) -> list[str]:
    notes = []
    if any(os.environ.get(name) for name in PROXIES):
        notes.append(
            "The proxy of this terminal is not written, because it may contain a password. Add it yourself."
        )
    if any(name.startswith("LANEWAY_") for name in os.environ):
        notes.append("Laneway's variables of this terminal are not written; your settings files count.")
    if service.kind == "systemd":
        notes.append("It runs while you are logged in; `loginctl enable-linger` keeps it running always.")
    return notes


def _started(service: ServicePlace) -> str:
    """Why it could not be started; empty if it was."""
    try:
        for words in service.restarting:
            service_files.call(words)
    except LanewayError as problem:
        return str(problem)
    return ""


def _remove(service: ServicePlace) -> ServiceSetupResult:
    if not os.path.lexists(service.file):
        return ServiceSetupResult(file=str(service.file), action="absent")
    if not service_files.is_ours(service.file):
        raise UsageError(f"{short(service.file)} was not written by Laneway: it stays.")
    problem = service_files.end_and_remove(service)
    notes = [f"If it still runs, end it by hand ({problem})"] if problem else []
    return ServiceSetupResult(file=str(service.file), action="removed", problem=problem, notes=notes)


def _lines(service: ServicePlace, result: ServiceSetupResult) -> list[str]:
    file, names = short(service.file), " and ".join(result.platforms)
    lines = [
        {
            "added": f"A service for {names} is written ({file}).",
            "replaced": f"The service for {names} is written anew ({file}).",
            "unchanged": f"The service for {names} is as it was ({file}).",
            "removed": f"The service has ended and is removed ({file}).",
            "absent": f"There is nothing to remove: there is no {file}.",
            "printed": "",
        }[result.action]
    ]
    if result.action == "removed" and result.problem:
        lines[0] = f"The service is removed ({file})."
    elif result.problem:
        lines.append(f"  ✘ It was not started: {result.problem}")
    elif result.is_started:
        lines.append("  It runs now, and starts again whenever you log in.")
    elif result.commands:
        lines += ["  This starts it, now and at each login:", *(f"    {each}" for each in result.commands)]
    return [*lines, *(f"  {note}" for note in result.notes)]
