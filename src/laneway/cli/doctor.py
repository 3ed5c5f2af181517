"""`laneway doctor`: runs all checks of this machine, prints their results, and writes a report for bugs."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from laneway import __version__
from laneway.cli.main import add_common
from laneway.terminal import Style

if TYPE_CHECKING:
    from laneway.cli.checks.model import Check, CheckContext, Probe

DEADLINE_S = 20.0
"""For each check. The slowest takes half a second on a healthy machine."""
MAX_TEXT_CHARS = 4000
"""Of one sentence on the screen, which may name several long paths."""
EXIT = {"ok": 0, "note": 0, "warning": 1, "error": 3}

EPILOG = """\
It starts app-server, runs a command in the sandbox, has Claude Code, where it is installed, take a turn
from a scripted model, and writes in Laneway's own folders. It changes nothing of yours: it only reads
other programs' files, and asks no model.

exit codes of this command:
  0    nothing is wrong (there may be notes)
  1    there are warnings
  2    the command line, or a setting, is wrong
  3    there are errors: something does not work

  laneway doctor --report report.json    a file for a bug report: no secrets, no names
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Check that everything Laneway needs works on this machine."
    parser.epilog = EPILOG
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="also write a redacted report for a bug report"
    )
    parser.add_argument(
        "--deadline",
        type=_seconds,
        default=DEADLINE_S,
        metavar="S",
        help="seconds for each check (default: 20)",
    )
    parser.add_argument(
        "--claude-bin", metavar="PATH", help="the Claude Code executable (default: found automatically)"
    )
    add_common(parser)
    parser.set_defaults(run=run)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return seconds


def run(options: argparse.Namespace) -> int:
    if sys.platform == "win32":
        # Before anything is imported that Windows does not have.
        print("laneway: Windows is not supported for now: use Laneway in WSL 2.", file=sys.stderr)
        return EXIT["error"]
    return asyncio.run(doctor(options))


async def doctor(options: argparse.Namespace) -> int:
    from laneway.cli.checks import bundle
    from laneway.cli.checks.model import run_probe, worst

    report = bundle.open_report(options.report) if options.report else None
    output = CheckPrinter(quiet=options.json)
    checks: list[Check] = []
    async with AsyncExitStack() as stack:
        context = await _open_case(options, stack)
        for probe in _probes():
            output.wait_for(probe)
            results = await run_probe(probe, context, options.deadline)
            output.show(results)
            checks += results
    severity = worst(checks)
    version = _codex_version(context)
    if report is not None:
        bundle.write_report(report, bundle.bundle(checks, context))
    if options.json:
        data = {"laneway": __version__, "codex": version, "severity": severity, "checks": checks}
        sys.stdout.write(msgspec.json.encode(data).decode() + "\n")
    else:
        output.close(checks, options.report)
    return EXIT[severity]


async def _open_case(options: argparse.Namespace, stack: AsyncExitStack) -> CheckContext:
    """The `CheckContext` of this run, closed with `stack`; a rehearsal gets a Codex home of its own."""
    from laneway.cli.checks.model import CheckContext

    context = CheckContext(Path.home(), Path.cwd(), dict(os.environ), options.codex_bin, options.claude_bin)
    if options.rehearse:
        from laneway.rehearsal.home import throwaway_home
        from laneway.rehearsal.server import ModelServer

        model = await stack.enter_async_context(ModelServer())
        context.codex_environment["CODEX_HOME"] = str(stack.enter_context(throwaway_home(model.base_url)))
    stack.push_async_callback(context.aclose)
    return context


def _probes() -> list[Probe]:
    from laneway.base.program_versions import PROBE_S
    from laneway.cli.checks import bots, claude, clients, codex, folders, lanes, machine, sandbox, settings
    from laneway.cli.checks.model import Probe

    # The sandbox's probe removes leftovers of killed rehearsals, so the folders are checked before it.
    asks_versions_s = PROBE_S * (1 + codex.MAX_OTHERS) + 1
    return [
        Probe("platform", "looking at this machine", machine.look),
        Probe("settings", "reading the settings", settings.look),
        Probe("folders", "writing in Laneway's folders", folders.look),
        Probe("codex", "looking for Codex", codex.look_for_binary, asks_versions_s),
        Probe("app-server", "starting app-server", codex.look_at_handshake),
        Probe("login", "checking the login", codex.look_at_login),
        Probe("codex-config", "reading Codex's configuration", codex.look_at_config),
        Probe("sandbox", "running a command in the sandbox", sandbox.look),
        Probe("codex-says", "collecting Codex's own warnings", codex.look_at_warnings),
        Probe("claude", "trying Claude Code", claude.look),
        Probe("lanes", "importing lane plugins", lanes.look),
        Probe("chat", "asking the lanes of `laneway chat`", lanes.look_at_chat),
        Probe("bots", "asking Telegram and Discord about your bots", bots.look, 3 * bots.ANSWER_S),
        Probe("registrations", "reading other programs' configs", clients.look),
    ]


def _codex_version(context: CheckContext) -> str | None:
    from laneway.codex.binary import spell

    return None if context.version is None else spell(context.version)


# ── on the screen ──────────────────────────────────────────────────────────


class CheckPrinter:
    """Prints one line per check, and on a terminal what is being checked. Prints nothing with `--json`."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._style = style = Style(sys.stdout)
        self._marks = {
            "ok": style.green("✔"),
            "note": style.cyan("·"),
            "warning": style.yellow("!"),
            "error": style.red("✘"),
        }

    def wait_for(self, probe: Probe) -> None:
        if self._style.is_on and not self._quiet:
            print(self._style.dim(f"\r\x1b[K… {probe.doing}"), end="", flush=True)

    def show(self, checks: list[Check]) -> None:
        if self._quiet:
            return
        if self._style.is_on:
            print("\r\x1b[K", end="")
        for check in checks:
            print(f"{self._marks[check.severity]} {check.name:<16} {printable(check.message)}", flush=True)
            if check.remedy:
                print(self._style.dim(f"{'':18} → {printable(check.remedy)}"), flush=True)

    def close(self, checks: list[Check], report: Path | None) -> None:
        counted = [
            f"{count} {word}{'' if count == 1 else 's'}"
            for word in ("error", "warning", "note")
            if (count := sum(check.severity == word for check in checks))
        ]
        print(f"\n{len(checks)} checks: {', '.join(counted) or 'everything works'}.")
        if report is not None:
            print(f"The report is in {report}; look through it before you send it.")


def printable(text: str) -> str:
    """Foreign text without control characters that a terminal would obey."""
    from laneway.base.plain import label

    return label(text, MAX_TEXT_CHARS)
