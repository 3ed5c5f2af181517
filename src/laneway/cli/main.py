"""The command `laneway`: parses the command line, runs one command, reports errors in one sentence.

Imports a command's module only when that command is run: `laneway --help` needs only argparse.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from functools import partial

from laneway.app import prestart

EXIT_CODES = """\
exit codes:
  0    done
  1    the turn failed, you answered a question with “decline and stop”, or a step of the
       tour failed
  2    the command line or a setting is wrong
  3    no usable Codex was found
  4    Codex exited or refused before it was done
  130  interrupted"""

COMMANDS: dict[str, tuple[str, str]] = {
    "chat": ("laneway.cli.chat", "Claude and Codex in one conversation: terminal, browser, bots"),
    "ask": ("laneway.cli.ask.command", "ask Codex or Claude one thing and watch it work"),
    "jobs": ("laneway.cli.jobs.command", "background jobs: several Codex workers at once, with rollback"),
    "console": ("laneway.cli.console", "everything that runs on this machine, in your browser"),
    "sessions": ("laneway.cli.sessions", "list, watch, stop and prune sessions"),
    "mail": ("laneway.cli.mail", "team mail: send, read, broadcast, pending, members"),
    "summary": ("laneway.cli.summary", "show the summary of a session that has ended"),
    "setup": ("laneway.cli.setup", "add Laneway to Claude Code, an editor or a bot"),
    "login": ("laneway.cli.login", "log in to Codex, or to Claude"),
    "doctor": ("laneway.cli.doctor", "check that everything Laneway needs works here"),
    "config": ("laneway.cli.config", "show and change settings, or trust a repository's settings"),
    "migrate": ("laneway.cli.migrate", "replace the removed `codex mcp-server` in clients' configs"),
    "uninstall": ("laneway.cli.uninstall", "show what Laneway has left on this machine, and remove it"),
    "mcp": ("laneway.cli.mcp", "MCP server: named Codex sessions for Claude and other clients"),
    "mcp-server": ("laneway.cli.mcp_server", "the removed `codex mcp-server`, with the same tools and flags"),
    "acp": ("laneway.cli.acp", "Codex in your editor: Zed, JetBrains, Neovim, Emacs, VS Code"),
    "tour": ("laneway.cli.tour", "a guided demo: the real Codex, offline, in under a minute"),
    "completion": ("laneway.cli.completion", "print the completion script for your shell"),
    "version": ("laneway.cli.version", "show the versions of Laneway and Codex"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Errors that users can cause give no traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] in (["--version"], ["-V"]):
        arguments[0] = "version"
    if arguments[:1] == ["__complete"]:  # called by the completion scripts
        from laneway.cli import complete_names

        return complete_names.run(arguments[1:])
    arguments = command_first(arguments)
    if arguments and arguments[0] not in COMMANDS and not arguments[0].startswith("-"):
        return unknown_command(arguments[0])
    prestart.begin(arguments)
    gc.disable()  # imports leave no garbage, and collecting takes a tenth of our start-up time
    prestart.spare_imports(arguments)
    parser = build_parser(arguments)
    if not arguments:
        parser.print_help()
        return 2
    options = parser.parse_args(arguments)
    gc.freeze()  # nor must the collector look through them later, in the middle of a call
    gc.enable()
    return run(options)


def run(options: argparse.Namespace) -> int:
    """Run the chosen command; errors become one sentence and an exit code."""
    from laneway.base.errors import BinaryError, EngineError, LanewayError, SettingError, UsageError

    try:
        check_home()
        configure_logs(options)
        return int(options.run(options))
    except BrokenPipeError:
        # The reader of our output has ended (`laneway ask … | head`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except (UsageError, SettingError) as error:
        return _fail(error, 2)
    except BinaryError as error:
        return _fail(error, 3)
    except EngineError as error:
        return _fail(error, 4)
    except LanewayError as error:
        return _fail(error, 1)
    except OSError as error:
        text = disk_full(error)
        if text is None:
            raise
        return _fail(LanewayError(text), 1)


def check_home() -> None:
    """Refuse to guess where the user's own files are."""
    from laneway.base.errors import UsageError
    from laneway.base.paths import is_home_known

    if not is_home_known():
        problem = "is not an absolute path" if os.environ.get("HOME") else "is not set"
        raise UsageError(f"HOME {problem}: set it to your home folder, where your settings and Codex's are.")


def disk_full(error: OSError) -> str | None:
    """The error text for a full disk; None for any other error."""
    from laneway.base.disk import full_text, is_full

    if not is_full(error):
        return None
    return full_text(os.path.dirname(error.filename) if isinstance(error.filename, str) else "this folder")


def unknown_command(word: str) -> int:
    """Report an unknown command, and suggest a similar one."""
    import difflib

    from laneway.base.errors import UsageError
    from laneway.base.plain import code_label

    similar = difflib.get_close_matches(word.lower(), COMMANDS, n=1)
    remedy = f". Did you mean {similar[0]}?" if similar else ": `laneway --help` lists them all."
    return _fail(UsageError(f"There is no command {code_label(word)}{remedy}"), 2)


def command_first(arguments: list[str]) -> list[str]:
    """Turn `laneway -m X mcp-server` into `laneway mcp-server -m X`: the old server allowed both."""
    if "mcp-server" not in arguments or not arguments[0].startswith("-"):
        return arguments
    from laneway.base.server_words import subcommand_at

    at = subcommand_at(arguments)
    if at is None or arguments[at] != "mcp-server":
        return arguments
    return ["mcp-server", *arguments[:at], *arguments[at + 1 :]]


def build_parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The whole command line; a command's own flags only if it is named in `arguments`."""
    # The width is read once: argparse would read it for every flag, with imports of three milliseconds.
    formatter = partial(argparse.RawDescriptionHelpFormatter, width=terminal_width() - 2)
    parser = argparse.ArgumentParser(
        prog="laneway",
        description="OpenAI Codex and Claude Code, working together: chat, background jobs, editors, MCP.",
        epilog=f"""\
try it now, with no account and no network:
  laneway tour                        a guided demo of all of it
  laneway chat --rehearse             the real Claude Code and Codex, scripted models
  laneway ask --rehearse "hello"      the real Codex, a scripted model

{EXIT_CODES}""",
        formatter_class=formatter,
    )
    parser.add_argument("-V", "--version", action="store_true", help="show Laneway's version and Codex's")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    # The other commands are not needed, and cost a third of a millisecond each.
    names = arguments[:1] if arguments[:1] and arguments[0] in COMMANDS else list(COMMANDS)
    for name in names:
        module, summary = COMMANDS[name]
        command = commands.add_parser(name, help=summary, formatter_class=formatter)
        if name in arguments or not arguments:
            importlib.import_module(module).configure(command)
    return parser


def terminal_width() -> int:
    """In columns, as `shutil.get_terminal_size` finds it."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def add_common(parser: argparse.ArgumentParser, *, has_json: bool = True) -> None:
    """Flags of every command that talks to Codex; servers have no `--json`, as they print nothing."""
    parser.add_argument(
        "--codex-bin", metavar="PATH", help="the codex executable (default: found automatically)"
    )
    parser.add_argument(
        "--rehearse",
        action="store_true",
        help="real Codex, scripted model on loopback: no account, no network",
    )
    if has_json:
        parser.add_argument("--json", action="store_true", help="one JSON object per line, for programs")
    logs = parser.add_argument_group("logging (also available as settings: see docs/settings.md)")
    levels = ("error", "warning", "info", "debug", "trace")
    logs.add_argument("--log-level", choices=levels, metavar="LEVEL", help=", ".join(levels))
    logs.add_argument("--log-file", metavar="FILE", help="log to this file instead of standard error")
    logs.add_argument("--log-format", choices=("human", "json"), metavar="FORM", help="human, json")


def configure_logs(options: argparse.Namespace) -> None:
    """Set up logging by flags and settings; by default only errors, on standard error."""
    from pathlib import Path

    from laneway.base.errors import SettingError, UsageError
    from laneway.base.log import configure
    from laneway.base.settings import load

    flags = {name: getattr(options, name, None) for name in ("log_level", "log_format", "log_file")}
    try:
        settings = load(flags, os.environ, Path(), Path.home())
    except SettingError:
        configure("error")  # the command that needs the settings reports what is wrong with them
        return
    file = Path(settings.log_file).expanduser() if settings.log_file else None
    try:
        configure(settings.log_level, "json" if settings.log_format == "json" else "human", file)
    except OSError as problem:
        raise UsageError(f"The log file {file} cannot be written: {problem.strerror}.") from problem


def _fail(error: Exception, code: int) -> int:
    from laneway.base.plain import plain
    from laneway.base.redact import redact

    print(f"laneway: {plain(redact(str(error)))}", file=sys.stderr)
    return code
