"""The command `laneway ask`: reads its flags, then runs one turn with one of the engines."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from laneway.app.local_socket import socket_of
from laneway.app.runtime import LOCAL, open_runtime
from laneway.base.engines import BACKENDS, CLAUDE, DEFAULT_BACKEND
from laneway.base.errors import UsageError
from laneway.base.settings import Settings
from laneway.cli.ask.ending import continue_hint, exit_code, summary, write_last_message
from laneway.cli.ask.follow import Follower, Interrupts
from laneway.cli.ask.inputs import images_of, output_file, prompt_of, schema_of
from laneway.cli.ask.view import JsonLines, TerminalView
from laneway.cli.codex_flags import (
    add_approval,
    add_config,
    add_folder,
    add_model,
    add_sandbox,
    folder,
    overrides,
)
from laneway.cli.codex_profile import codex_home, profile
from laneway.cli.command_settings import claude_choice, codex_choice, settings_in
from laneway.cli.main import add_common
from laneway.core.hub import Hub
from laneway.core.ports import ImagePart, Part, TextPart, ThreadSpec, TurnSpec
from laneway.core.session import Session, Timing
from laneway.terminal.prompting.asking import Prompter
from laneway.terminal.prompting.keyboard import find_keyboard

EPILOG = """\
The answer goes to standard output, everything else to standard error, so a pipe gets only the answer.
Before Codex leaves its sandbox you are asked at the terminal, even if the prompt came through a pipe;
without a terminal the answer is no. Ctrl-C stops the turn, a second Ctrl-C exits.

  laneway ask "why does test_x fail?"
  git diff | laneway ask "is this change safe?"    piped text is added after the prompt
  laneway ask --last "and now fix it"              continue the last thread in this folder
  laneway ask -i screen.png "what is wrong here?"
  laneway ask --engine claude "and what do you think?"
  laneway ask --rehearse "%help"                   list what the scripted model can do
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Ask Codex, or Claude, one thing and watch it work."
    parser.epilog = EPILOG
    parser.add_argument("prompt", nargs="?", help="what to ask; - or no prompt reads it from standard input")
    parser.add_argument(
        "-i",
        "--image",
        action="append",
        default=[],
        metavar="FILE",
        help="attach this image (repeatable)",
    )
    add_folder(parser, "the folder Codex works in (default: the current one)", Path())
    parser.add_argument(
        "--add-dir",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="also let Codex write here, if its sandbox allows writing (repeatable)",
    )
    parser.add_argument(
        "--engine", choices=tuple(BACKENDS), help="who is asked (default: the setting engine, else codex)"
    )
    parser.add_argument(
        "--claude-bin", metavar="PATH", help="the Claude Code executable (default: found automatically)"
    )
    add_model(parser)
    parser.add_argument(
        "-p", "--profile", metavar="NAME", help="apply $CODEX_HOME/NAME.config.toml on top of config.toml"
    )
    add_sandbox(parser)
    add_approval(parser)
    add_config(parser)
    thread = parser.add_mutually_exclusive_group()
    thread.add_argument("--last", action="store_true", help="continue the last thread in this folder")
    thread.add_argument("--thread", metavar="THREAD", help="continue this thread")
    _add_output(parser)
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help="stop the turn after S seconds, not counting your time for answers",
    )
    add_common(parser)
    parser.set_defaults(run=run)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output-last-message", metavar="FILE", help="also write the last message to this file"
    )
    parser.add_argument("--output-schema", metavar="FILE", help="a JSON Schema that the answer must follow")
    parser.add_argument("--full", action="store_true", help="show everything commands print, and whole diffs")
    parser.add_argument(
        "--thoughts", action="store_true", help="show all of Codex's reasoning, not just a line of it"
    )


class AskRequest(msgspec.Struct, frozen=True):
    """The turn and the thread that the command line asks for, checked before anything is started."""

    turn: TurnSpec
    spec: ThreadSpec
    settings: Settings
    thread_id: str | None
    output: Path | None


def run(options: argparse.Namespace) -> int:
    request = read(options)
    return asyncio.run(ask(options, request))


def read(options: argparse.Namespace) -> AskRequest:
    cwd = folder(options.cwd)
    images = images_of(options.image)
    schema = schema_of(options.output_schema)
    output = output_file(options.output_last_message)
    settings, config = configuration(options, cwd)
    roots = tuple(str(folder(each)) for each in options.add_dir)
    thread_id = options.thread
    if options.last:
        from laneway.cli.ask import recent  # not needed for a new thread

        thread_id = None if options.rehearse else recent.last_thread(cwd, home_of(settings))
        if thread_id is None:
            raise UsageError(f"`laneway ask` has no earlier thread in {cwd}: ask without --last.")
    # Read last: errors in the flags are reported before somebody has typed a long prompt.
    prompt = prompt_of(options.prompt)
    parts: tuple[Part, ...] = (TextPart(prompt), *(ImagePart(path=str(image)) for image in images))
    spec = ThreadSpec(
        cwd=cwd,
        backend=settings.engine,
        model=settings.model if settings.engine == DEFAULT_BACKEND else options.model,
        sandbox=settings.sandbox,
        approval_policy=settings.approval_policy,
        config=config,
        writable_roots=roots,
    )
    return AskRequest(TurnSpec(parts=parts, output_schema=schema), spec, settings, thread_id, output)


def configuration(options: argparse.Namespace, cwd: Path) -> tuple[Settings, dict[str, Any]]:
    """The settings, and the overrides of Codex's own config: a flag wins over a profile."""
    config: dict[str, Any] = {}
    if _engine(options, cwd) != DEFAULT_BACKEND:
        return configuration_of_claude(options, cwd)
    if options.profile is not None:
        if options.rehearse:
            raise UsageError("--profile cannot be used with --rehearse, which has its own configuration.")
        config = profile(options.profile, codex_home())
    settings = settings_in(
        {
            "codex_bin": options.codex_bin,
            "engine": options.engine,
            "model": options.model or config.pop("model", None),
            "sandbox": options.sandbox or config.pop("sandbox_mode", None),
            "approval_policy": options.approval or config.pop("approval_policy", None),
        },
        cwd,
    )
    config |= overrides(options.config)
    if settings.reasoning_effort is not None:
        config.setdefault("model_reasoning_effort", settings.reasoning_effort)
    return settings, config


def _engine(options: argparse.Namespace, cwd: Path) -> str:
    return settings_in({"engine": options.engine}, cwd).engine


def configuration_of_claude(options: argparse.Namespace, cwd: Path) -> tuple[Settings, dict[str, Any]]:
    """Model and effort of the settings are Codex's: for Claude only flags choose them."""
    if options.profile is not None:
        raise UsageError(f"--profile cannot be used with {CLAUDE}: profiles are Codex's.")
    flags = {
        "claude_bin": options.claude_bin,
        "engine": options.engine,
        "sandbox": options.sandbox,
        "approval_policy": options.approval,
    }
    return settings_in(flags, cwd), overrides(options.config)


def home_of(settings: Settings) -> Path:
    """Where the engine keeps its threads."""
    if settings.engine == DEFAULT_BACKEND:
        return codex_home()
    from laneway.claude.locate import config_home

    return Path(config_home(os.environ))


@asynccontextmanager
async def open_hub(options: argparse.Namespace, settings: Settings, timing: Timing) -> AsyncIterator[Hub]:
    if settings.engine == DEFAULT_BACKEND:
        async with open_runtime(codex_choice(options, settings), timing, asks_login=True) as runtime:
            yield runtime.hub
    else:
        from laneway.app.claude import open_claude

        async with open_claude(claude_choice(options, settings), timing) as hub:
            yield hub


async def ask(options: argparse.Namespace, request: AskRequest) -> int:
    keyboard = find_keyboard()
    prompter = Prompter(keyboard, cwd=str(request.spec.cwd)) if keyboard is not None else None
    view = (
        JsonLines()
        if options.json
        else TerminalView(
            is_full=options.full,
            with_thoughts=options.thoughts,
            engine=BACKENDS[request.settings.engine],
        )
    )
    timing = Timing(turn_s=options.timeout, retry_s=request.settings.retry_secs)
    with view:
        async with (
            open_hub(options, request.settings, timing) as hub,
            socket_of(hub, "ask"),
        ):
            session = await open_thread(hub, request)
            view.begin(session)
            if request.spec.writable_roots and is_read_only(session):
                view.say("--add-dir has no effect: the sandbox is read-only (try -s workspace-write)")
            turn = session.say(request.turn)
            follower = Follower(session, view, prompter)
            if not options.rehearse:
                follower.on_accepted = partial(keep_thread, session, request)
            with Interrupts(turn, partial(leave, view, prompter)):
                result = await follower.follow(turn)
    if request.output is not None:
        write_last_message(request.output, result.text)
    hint = (
        None
        if options.rehearse
        else continue_hint(session.thread_id, request.spec.cwd, session.engine.backend)
    )
    view.note_end(summary(view.seconds, view.tokens), hint)
    return exit_code(result, is_stopped=follower.is_stopped, engine=session.engine.name)


async def open_thread(hub: Hub, request: AskRequest) -> Session:
    if request.thread_id is not None:
        return await hub.resume(LOCAL, request.thread_id, request.spec)
    return await hub.start(LOCAL, request.spec)


def is_read_only(session: Session) -> bool:
    sandbox = session.info.native.get("sandbox")
    return isinstance(sandbox, dict) and sandbox.get("type") == "readOnly"


def keep_thread(session: Session, request: AskRequest) -> None:
    """Remember this thread for `--last`."""
    from laneway.cli.ask import recent

    recent.remember(session.thread_id, request.spec.cwd, home_of(request.settings))


def leave(view: JsonLines | TerminalView, prompter: Prompter | None) -> None:
    """Restore the terminal, because the process exits at once."""
    view.close()
    if prompter is not None:
        prompter.restore()
