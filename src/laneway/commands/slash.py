"""The table of slash commands: parses a prompt into a command and runs it on a `CommandSession`.

A prompt that begins with `/name` is a command: an unknown one gets an answer from here and is never
sent to the model. Commands run in the order of the prompts. A command that the session's engine does
not support is neither listed nor run. Attachments that a command does not use are reported, never
dropped in silence. The texts of the answers are in `texts`; what needs git is in `repo_diff` and
`reviews`; `/undo` is in `undo_command`.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

import msgspec

from laneway import __version__
from laneway.base.errors import EngineRefused
from laneway.base.plain import fenced, plain_code
from laneway.commands import repo_diff, reviews, texts, undo_command
from laneway.commands.session import CommandSession, Invocation
from laneway.core import access
from laneway.core import session_settings as settings
from laneway.core.offers import Account, Compaction, Limit, Offers, PlanMode
from laneway.core.ports import Part, TextPart
from laneway.wire.git import in_thread

MIN_SIMILARITY = 0.6
"""Of a mistyped name to one that is suggested: one wrong letter in a short word."""

_PLANNING = (
    "Plan mode is on until `/plan off`: {} is asked to plan and to change nothing. "
    "What it may do is still up to the session's mode."
)
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z-]*)(?:\s+|\Z)")

__all__ = ["COMMANDS", "CommandSession", "Invocation", "SlashCommand", "available", "find", "run"]


Run: TypeAlias = Callable[[CommandSession, Invocation], Awaitable[str | None]]
"""Returns how the turn ended that the command ran; none if it needed no turn."""
Compose: TypeAlias = Callable[[CommandSession, str], Awaitable[str]]
"""Returns the text to show."""


class SlashCommand(msgspec.Struct, frozen=True):
    name: str
    description: str
    run: Run
    hint: str = ""
    """What may follow the name. Without a hint nothing may."""
    takes_files: bool = False
    """Links and embedded files go into its turn; else they are ignored, and the user is told so."""
    takes_images: bool = False
    is_offered: Callable[[Offers], bool] = lambda offers: True
    """Whether an engine supports the command."""


def available(offers: Offers) -> list[SlashCommand]:
    """The commands that an engine with these offers supports."""
    return [command for command in COMMANDS.values() if command.is_offered(offers)]


def find(parts: tuple[Part, ...]) -> Invocation | None:
    """The command in a prompt; none for a path, or where a blank stands in front."""
    first = parts[0] if parts else None
    match = _COMMAND.match(first.text) if isinstance(first, TextPart) else None
    if match is None or not isinstance(first, TextPart):
        return None
    name = match[1]
    if name.lower() not in COMMANDS and not name.islower():
        return None  # no command has capitals: probably a path such as `/Users`
    return Invocation(name.lower(), first.text[match.end() :].strip(), parts[1:])


async def run(session: CommandSession, invocation: Invocation) -> str | None:
    """Run a command; returns how its turn ended, none if it needed no turn."""
    command = COMMANDS.get(invocation.name)
    if command is None:
        await session.say(_unknown(invocation.name, available(session.offers)))
        return None
    if not command.is_offered(session.offers):
        await session.say(f"{session.engine_name} cannot do /{command.name}. See all commands with /help.")
        return None
    if invocation.text and not command.hint:
        await session.say(f"/{command.name} takes nothing after its name. Nothing was done.")
        return None
    if invocation.has_images and not command.takes_images:
        await session.say(f"/{command.name} takes no images. Nothing was done.")
        return None
    if not command.takes_files:
        await _report_unused_files(session, invocation)
    return await command.run(session, invocation)


async def _report_unused_files(session: CommandSession, invocation: Invocation) -> None:
    if invocation.has_files:
        await session.say(f"What is attached is not used by /{invocation.name}.")


def _unknown(name: str, known: Iterable[SlashCommand]) -> str:
    nearest = _nearest(name, (command.name for command in known))
    suggestion = f" Did you mean /{nearest}?" if nearest else ""
    return (
        f"There is no command /{texts.one_line(name)}.{suggestion} See all commands with /help. "
        "To say it to the model, put a blank in front."
    )


def _nearest(name: str, known: Iterable[str]) -> str | None:
    import difflib  # imported only after a typing error

    return next(iter(difflib.get_close_matches(name, list(known), 1, MIN_SIMILARITY)), None)


def _showing(compose: Compose) -> Run:
    """A command that only shows a text, or why Codex refused it."""

    async def run_command(session: CommandSession, invocation: Invocation) -> str | None:
        try:
            text = await compose(session, invocation.text)
        except EngineRefused as refusal:
            text = texts.refused(invocation.name, refusal)
        await session.say(text)
        return None

    return run_command


# ── commands that start a turn ─────────────────────────────────────────────


async def _plan(session: CommandSession, invocation: Invocation) -> str | None:
    is_switch = invocation.text.lower() in ("on", "off") and not invocation.has_images
    is_bare = not (invocation.text or invocation.has_files or invocation.has_images)
    if is_switch or is_bare:
        await _report_unused_files(session, invocation)
        return await _showing(_switch_plan)(session, invocation)
    if not session.is_planning:
        await session.say(f"{_PLANNING.format(session.engine_name)}\n\n")
    text_parts = (TextPart(invocation.arguments),) if invocation.arguments else ()
    stop = await session.turn((*text_parts, *invocation.other_parts), _plan_mode(session, is_on=True))
    session.is_planning = True
    return stop


async def _switch_plan(session: CommandSession, arguments: str) -> str:
    is_on = arguments.lower() != "off"
    planning, mode = session.offers.planning, _plan_mode(session, is_on=is_on)
    assert planning is not None
    await session.call_engine(lambda: planning.switch(session.thread_id, mode))
    session.is_planning = is_on
    return _PLANNING.format(session.engine_name) if is_on else "Plan mode is off."


def _plan_mode(session: CommandSession, *, is_on: bool) -> PlanMode:
    model = settings.current_model(session.choices, session.facts)
    return PlanMode(is_on, model, settings.current_effort(session.choices, session.facts))


async def _review(session: CommandSession, invocation: Invocation) -> str | None:
    _, _, kind = invocation.name.partition("-")
    lines = [f"{kind} {invocation.arguments}".strip()]
    lines += [part.text for part in invocation.other_parts if isinstance(part, TextPart)]
    target = await in_thread(reviews.target, session.cwd, "\n".join(line for line in lines if line))
    if isinstance(target, str):
        await session.say(target)
        return None
    return await session.special_turn(target)


async def _compact(session: CommandSession, invocation: Invocation) -> str | None:
    return await session.special_turn(Compaction())


async def _init(session: CommandSession, invocation: Invocation) -> str | None:
    if await asyncio.to_thread(os.path.lexists, session.cwd / "AGENTS.md"):
        await session.say(
            "There is an AGENTS.md already, and it is left as it is. Ask for a change in a prompt."
        )
        return None
    return await session.turn((TextPart(texts.INIT_PROMPT),))


async def _login(session: CommandSession, invocation: Invocation) -> str | None:
    await session.login()
    return None


# ── commands that show a text ───────────────────────────────────────────────


async def _diff(session: CommandSession, arguments: str) -> str:
    changes = await in_thread(repo_diff.changes, session.cwd)
    if changes.problem:
        return changes.problem
    paragraphs = [fenced(plain_code(changes.diff), "diff")] if changes.diff else []
    return "\n\n".join([*paragraphs, *changes.notes]) or "Nothing has changed since the last commit."


async def _status(session: CommandSession, arguments: str) -> str:
    account = await _account(session)
    return texts.status(
        texts.Status(
            session_id=session.session_id,
            folder=str(session.cwd),
            model=settings.current_model(session.choices, session.facts),
            effort=settings.current_effort(session.choices, session.facts),
            mode=session.choices.mode,
            access="" if session.offers.access is None else _access(session),
            is_planning=session.is_planning,
            usage=session.usage,
            account=account,
            limits=await _limits(session) if account is not None and account.kind else (),
            engine=session.engine_name,
            engine_version=session.engine_version,
            laneway_version=__version__,
        )
    )


def _access(session: CommandSession) -> str:
    return access.description(settings.policy(session.choices, session.facts))


async def _account(session: CommandSession) -> Account | None:
    """None where the engine refuses: the rest of the status is still worth showing."""
    accounts = session.offers.accounts
    try:
        return None if accounts is None else await accounts.read()
    except EngineRefused:
        return None


async def _limits(session: CommandSession) -> tuple[Limit, ...]:
    accounts = session.offers.accounts
    try:
        return () if accounts is None else await accounts.limits()
    except EngineRefused:
        return ()


async def _mcp(session: CommandSession, arguments: str) -> str:
    servers = session.offers.mcp_servers
    assert servers is not None
    return texts.mcp_server_list(await session.call_engine(lambda: servers.servers(session.thread_id)))


async def _skills(session: CommandSession, arguments: str) -> str:
    skills = session.offers.skills
    assert skills is not None
    return texts.skill_list(await skills.skills(str(session.cwd)))


async def _model(session: CommandSession, arguments: str) -> str:
    current = settings.current_model(session.choices, session.facts)
    if not arguments:
        return texts.model_list(session.facts.models, current, session.engine_name)
    known = {name.lower(): each.model for each in session.facts.models for name in (each.name, each.model)}
    name = " ".join(arguments.lower().split())
    model = known.get(name)
    if model is None:
        nearest = _nearest(name, known)
        suggestion = f" Did you mean {known[nearest]}?" if nearest else ""
        unknown = f"{session.engine_name} names no model {texts.one_line(arguments)}."
        return f"{unknown}{suggestion} See the models with /model."
    if model == current:
        return f"The model is {model} already."
    await session.choose("model", model)
    return f"The model is {model} from the next turn on."


async def _fork(session: CommandSession, arguments: str) -> str:
    new_id = await session.fork()
    return f"The copy is the session `{new_id}`. Open it from your list of sessions; this one stays as it is."


async def _logout(session: CommandSession, arguments: str) -> str:
    await session.logout()
    return f"You are logged out of {session.engine_name}. Log in again with /login."


async def _help(session: CommandSession, arguments: str) -> str:
    lines = [
        f"- `/{command.name}{f' {command.hint}' if command.hint else ''}`: {command.description}"
        for command in available(session.offers)
    ]
    return "\n".join(lines)


# ── the table ──────────────────────────────────────────────────────────────


def _has_reviews(offers: Offers) -> bool:
    return offers.reviews


def _has_accounts(offers: Offers) -> bool:
    return offers.accounts is not None


_TABLE = (
    SlashCommand(
        "plan",
        "Plan before anything is changed; on its own, switch plan mode on",
        _plan,
        "[on | off | what to plan]",
        takes_files=True,
        takes_images=True,
        is_offered=lambda offers: offers.planning is not None,
    ),
    SlashCommand(
        "review",
        "Review the uncommitted changes, a branch, a commit, or what you say",
        _review,
        "[branch NAME | commit SHA | instructions]",
        takes_files=True,
        is_offered=_has_reviews,
    ),
    SlashCommand(
        "review-branch",
        "Review what changed since a branch",
        _review,
        "NAME",
        takes_files=True,
        is_offered=_has_reviews,
    ),
    SlashCommand(
        "review-commit", "Review one commit", _review, "SHA", takes_files=True, is_offered=_has_reviews
    ),
    SlashCommand(
        "compact",
        "Summarise the conversation to free the model's context",
        _compact,
        is_offered=lambda offers: offers.compaction,
    ),
    SlashCommand("init", "Have an AGENTS.md written for this project", _init),
    SlashCommand("diff", "Show what has changed since the last commit, new files included", _showing(_diff)),
    SlashCommand(
        "undo",
        "Take back the last turn and its edits",
        undo_command.run,
        is_offered=lambda offers: offers.undo is not None,
    ),
    SlashCommand("status", "Show model, mode, folder, tokens, account and versions", _showing(_status)),
    SlashCommand("model", "Show the models, or choose one", _showing(_model), "[NAME]"),
    SlashCommand(
        "mcp",
        "Show the MCP servers and their tools",
        _showing(_mcp),
        is_offered=lambda offers: offers.mcp_servers is not None,
    ),
    SlashCommand(
        "skills", "Show the skills", _showing(_skills), is_offered=lambda offers: offers.skills is not None
    ),
    SlashCommand(
        "fork",
        "Copy this session into a new one",
        _showing(_fork),
        is_offered=lambda offers: offers.forks,
    ),
    SlashCommand("login", "Log in to Codex", _login, is_offered=_has_accounts),
    SlashCommand("logout", "Log out of Codex", _showing(_logout), is_offered=_has_accounts),
    SlashCommand("help", "Show the commands", _showing(_help)),
)
COMMANDS = {command.name: command for command in _TABLE}
