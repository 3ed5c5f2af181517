"""`laneway login`: runs the login of Codex, or of Claude Code, as Laneway uses it. Laneway sees no key."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from laneway.base.engines import BACKENDS, DEFAULT_BACKEND
from laneway.base.errors import UsageError
from laneway.base.plain import plain
from laneway.cli.command_settings import settings_in
from laneway.codex import binary, locate

STATUS_S = 30.0
"""For `--status`: app-server answers in a tenth of a second."""

EPILOG = """\
All other arguments go to `codex login`, or to `claude auth login`, unchanged:

  laneway login                                            in the browser
  laneway login --device-auth                              if there is no browser
  printenv OPENAI_API_KEY | laneway login --with-api-key   with a key
  laneway login --engine claude                            to Claude

The exit code is the program's own. With --status: 0 if you are logged in or no login is needed, else 1.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Log in to Codex, or to Claude: runs the login of the program that Laneway uses."
    parser.epilog = EPILOG
    parser.usage = (
        "laneway login [-h] [--engine NAME] [--status [--json]] [--codex-bin PATH] [--claude-bin PATH]"
        " [LOGIN ARGUMENTS …]"
    )
    parser.allow_abbrev = False
    parser.add_argument("--status", action="store_true", help="only report whether you are logged in")
    parser.add_argument("--json", action="store_true", help="with --status: for programs")
    parser.add_argument(
        "--codex-bin", metavar="PATH", help="the codex executable (default: found automatically)"
    )
    parser.add_argument(
        "--claude-bin", metavar="PATH", help="the Claude Code executable (default: found automatically)"
    )
    parser.add_argument(
        "--engine", choices=tuple(BACKENDS), help="whose login (default: the setting engine, else codex)"
    )
    parser.set_defaults(run=login)
    _pass_on_the_rest(parser)


def _pass_on_the_rest(parser: argparse.ArgumentParser) -> None:
    """Keep unknown arguments in order; `argparse.REMAINDER` fails if they begin with an option."""
    known = parser.parse_known_args

    def parse(args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:
        options, rest = known(args, namespace)
        options.rest = rest
        return options, []

    parser.parse_known_args = parse  # type: ignore[method-assign, assignment]


def login(options: argparse.Namespace) -> int:
    settings = settings_in(
        {"codex_bin": options.codex_bin, "claude_bin": options.claude_bin, "engine": options.engine}
    )
    if settings.engine != DEFAULT_BACKEND:
        from laneway.cli.login_claude import login_claude  # few need it

        return login_claude(options, settings)
    codex = locate.find(options.codex_bin, settings.codex_bin)
    if options.status:
        if options.rest:
            raise UsageError(f"--status takes no {options.rest[0]}.")
        return asyncio.run(status(codex, as_json=options.json))
    return become_codex_login(codex, options.rest)


def become_codex_login(codex: locate.Binary, arguments: Sequence[str]) -> int:
    """Run Codex's own login in the place of this process. Returns only by an error."""
    from laneway.codex.locate import child_environment

    sys.stdout.flush()
    try:
        # The terminal, the signals and the exit code are Codex's own.
        os.execve(codex.path, [codex.path, "login", *arguments], child_environment(os.environ))
    except OSError as problem:
        raise binary.cannot_run(codex.path, problem) from problem


async def status(codex: locate.Binary, *, as_json: bool) -> int:
    from laneway.base.errors import EngineLost
    from laneway.cli.checks.codex import on_login, read_login
    from laneway.codex.engine import codex_engine

    engine = codex_engine(codex)
    try:
        async with asyncio.timeout(STATUS_S):
            check = on_login(await read_login(await engine.link()))
    except TimeoutError:
        raise EngineLost(f"no answer within {STATUS_S:g} s") from None
    finally:
        await engine.aclose()
    if as_json:
        data = {"logged_in": check.facts["type"] is not None, **check.facts}
        print(msgspec.json.encode(data).decode())
    else:
        print(plain(check.message + (f" {check.remedy}" if check.remedy else "")))
    return 0 if check.severity == "ok" else 1
