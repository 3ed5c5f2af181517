"""Slash commands: what a person asks of the session instead of the model.

A prompt that begins with `/name` is a command, known or not: an unknown one is answered here and
never sent to the model. Each is served by its `CommandSession`, in the order of the prompts; one that
the session's engine has nothing for is neither listed nor run. Nothing that comes with it is dropped in
silence. What a command says is in `words`; what it finds out about files is in `repo_diff` and
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
from laneway.commands import repo_diff, reviews, undo_command, words
from laneway.commands.session import CommandSession, Invocation
from laneway.core import access
from laneway.core import session_settings as settings
from laneway.core.offers import Account, Compaction, Limit, Offers, PlanMode
from laneway.core.ports import Part, TextPart
from laneway.wire.git import in_thread

LIKENESS = 0.6
"""How near a name must be to be meant: one slip in a short word."""

_PLANNING = (
    "Plan mode is on until `/plan off`: Codex is told to plan and to change nothing. "
    "What it may do is still up to the session's mode."
)
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z-]*)(?:\s+|\Z)")

__all__ = ["COMMANDS", "CommandSession", "Invocation", "SlashCommand", "available", "find", "run"]


Run: TypeAlias = Callable[[CommandSession, Invocation], Awaitable[str | None]]
"""Returns how the turn ended that it has run; none if it needed no turn."""
Tell: TypeAlias = Callable[[CommandSession, str], Awaitable[str]]


class SlashCommand(msgspec.Struct, frozen=True):
    name: str
    description: str
    run: Run
    hint: str = ""
    """What may follow the name; nothing may where there is no hint."""
    takes_files: bool = False
    """Links and embedded files go into its turn; else they are left aside, and that is said."""
    takes_images: bool = False
    is_offered: Callable[[Offers], bool] = lambda offers: True
    """Whether an engine has what it takes."""


def available(offers: Offers) -> list[SlashCommand]:
    """The commands of a session whose engine offers this."""
    return [command for command in COMMANDS.values() if command.is_offered(offers)]


def find(parts: tuple[Part, ...]) -> Invocation | None:
    """The command that a prompt is; none for a path, or where a blank stands in front."""
    first = parts[0] if parts else None
    found = _COMMAND.match(first.text) if isinstance(first, TextPart) else None
    if found is None or not isinstance(first, TextPart):
        return None
    name = found[1]
    if name.lower() not in COMMANDS and not name.islower():
        return None  # no command of anybody's: rather `/Users`
    return Invocation(name.lower(), first.text[found.end() :].strip(), parts[1:])


async def run(session: CommandSession, invocation: Invocation) -> str | None:
    """Serve a command; returns how its turn ended, none if it needed no turn."""
    command = COMMANDS.get(invocation.name)
    if command is None or not command.is_offered(session.offers):
        await session.say(_unknown(invocation.name, available(session.offers)))
        return None
    if invocation.words and not command.hint:
        await session.say(f"/{command.name} takes nothing after its name. Nothing was done.")
        return None
    if invocation.has_images and not command.takes_images:
        await session.say(f"/{command.name} takes no images. Nothing was done.")
        return None
    if not command.takes_files:
        await _leave_files(session, invocation)
    return await command.run(session, invocation)


async def _leave_files(session: CommandSession, invocation: Invocation) -> None:
    if invocation.has_files:
        await session.say(f"What is attached is not used by /{invocation.name}.")


def _unknown(name: str, known: Iterable[SlashCommand]) -> str:
    near = _nearest(name, (command.name for command in known))
    meant = f" Did you mean /{near}?" if near else ""
    return (
        f"There is no command /{words.one_line(name)}.{meant} See all commands with /help. "
        "To say it to the model, put a blank in front."
    )


def _nearest(name: str, known: Iterable[str]) -> str | None:
    import difflib  # only for those who mistype

    return next(iter(difflib.get_close_matches(name, list(known), 1, LIKENESS)), None)


def _told(tell: Tell) -> Run:
    """A command that only says something, be it what Codex has against it."""

    async def run_it(session: CommandSession, invocation: Invocation) -> str | None:
        try:
            text = await tell(session, invocation.words)
        except EngineRefused as refusal:
            text = words.refused(invocation.name, refusal)
        await session.say(text)
        return None

    return run_it


# ── commands that start a turn ─────────────────────────────────────────────


async def _plan(session: CommandSession, invocation: Invocation) -> str | None:
    is_switch = invocation.words.lower() in ("on", "off") and not invocation.has_images
    is_bare = not (invocation.words or invocation.has_files or invocation.has_images)
    if is_switch or is_bare:
        await _leave_files(session, invocation)
        return await _told(_switch_plan)(session, invocation)
    if not session.is_planning:
        await session.say(f"{_PLANNING}\n\n")
    spoken = (TextPart(invocation.arguments),) if invocation.arguments else ()
    stop = await session.turn((*spoken, *invocation.rest), _plan_mode(session, is_on=True))
    session.is_planning = True
    return stop


async def _switch_plan(session: CommandSession, arguments: str) -> str:
    is_on = arguments.lower() != "off"
    planning, mode = session.offers.planning, _plan_mode(session, is_on=is_on)
    assert planning is not None
    await session.awake(lambda: planning.switch(session.thread_id, mode))
    session.is_planning = is_on
    return _PLANNING if is_on else "Plan mode is off."


def _plan_mode(session: CommandSession, *, is_on: bool) -> PlanMode:
    model = settings.current_model(session.choices, session.facts)
    return PlanMode(is_on, model, settings.current_effort(session.choices, session.facts))


async def _review(session: CommandSession, invocation: Invocation) -> str | None:
    _, _, what = invocation.name.partition("-")
    spoken = [f"{what} {invocation.arguments}".strip()]
    spoken += [part.text for part in invocation.rest if isinstance(part, TextPart)]
    target = await in_thread(reviews.target, session.cwd, "\n".join(text for text in spoken if text))
    if isinstance(target, str):
        await session.say(target)
        return None
    return await session.errand(target)


async def _compact(session: CommandSession, invocation: Invocation) -> str | None:
    return await session.errand(Compaction())


async def _init(session: CommandSession, invocation: Invocation) -> str | None:
    if await asyncio.to_thread(os.path.lexists, session.cwd / "AGENTS.md"):
        await session.say(
            "There is an AGENTS.md already, and it is left as it is. Ask for a change in a prompt."
        )
        return None
    return await session.turn((TextPart(words.INIT_PROMPT),))


async def _login(session: CommandSession, invocation: Invocation) -> str | None:
    await session.login()
    return None


# ── commands that tell ─────────────────────────────────────────────────────


async def _diff(session: CommandSession, arguments: str) -> str:
    found = await in_thread(repo_diff.changes, session.cwd)
    if found.problem:
        return found.problem
    shown = [fenced(plain_code(found.diff), "diff")] if found.diff else []
    return "\n\n".join([*shown, *found.notes]) or "Nothing has changed since the last commit."


async def _status(session: CommandSession, arguments: str) -> str:
    account = await _account(session)
    return words.status(
        words.Status(
            session_id=session.session_id,
            folder=str(session.cwd),
            model=settings.current_model(session.choices, session.facts),
            effort=settings.current_effort(session.choices, session.facts),
            mode=session.choices.mode,
            access=access.words(settings.policy(session.choices, session.facts)),
            is_planning=session.is_planning,
            usage=session.usage,
            account=account,
            limits=await _limits(session) if account is not None and account.kind else (),
            engine_version=session.engine_version,
            laneway_version=__version__,
        )
    )


async def _account(session: CommandSession) -> Account | None:
    """None where the engine will not tell: the rest of the answer is worth having."""
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
    return words.mcp_servers(await session.awake(lambda: servers.servers(session.thread_id)))


async def _skills(session: CommandSession, arguments: str) -> str:
    skills = session.offers.skills
    assert skills is not None
    return words.skills(await skills.skills(str(session.cwd)))


async def _model(session: CommandSession, arguments: str) -> str:
    current = settings.current_model(session.choices, session.facts)
    if not arguments:
        return words.models(session.facts.models, current)
    known = {
        name.lower(): model.model for model in session.facts.models for name in (model.name, model.model)
    }
    name = " ".join(arguments.lower().split())
    wanted = known.get(name)
    if wanted is None:
        near = _nearest(name, known)
        meant = f" Did you mean {known[near]}?" if near else ""
        return f"Codex names no model {words.one_line(arguments)}.{meant} See the models with /model."
    if wanted == current:
        return f"The model is {wanted} already."
    await session.choose("model", wanted)
    return f"The model is {wanted} from the next turn on."


async def _fork(session: CommandSession, arguments: str) -> str:
    copy = await session.fork()
    return f"The copy is the session `{copy}`. Open it from your list of sessions; this one stays as it is."


async def _logout(session: CommandSession, arguments: str) -> str:
    await session.logout()
    return "You are logged out of Codex. Log in again with /login."


async def _help(session: CommandSession, arguments: str) -> str:
    listed = [
        f"- `/{command.name}{f' {command.hint}' if command.hint else ''}`: {command.description}"
        for command in available(session.offers)
    ]
    return "\n".join(listed)


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
    SlashCommand("diff", "Show what has changed since the last commit, new files included", _told(_diff)),
    SlashCommand(
        "undo",
        "Take back the last turn and its edits",
        undo_command.run,
        is_offered=lambda offers: offers.undo is not None,
    ),
    SlashCommand("status", "Show model, mode, folder, tokens, account and versions", _told(_status)),
    SlashCommand("model", "Show the models, or choose one", _told(_model), "[NAME]"),
    SlashCommand(
        "mcp",
        "Show the MCP servers and their tools",
        _told(_mcp),
        is_offered=lambda offers: offers.mcp_servers is not None,
    ),
    SlashCommand(
        "skills", "Show the skills", _told(_skills), is_offered=lambda offers: offers.skills is not None
    ),
    SlashCommand("fork", "Copy this session into a new one", _told(_fork)),
    SlashCommand("login", "Log in to Codex", _login, is_offered=_has_accounts),
    SlashCommand("logout", "Log out of Codex", _told(_logout), is_offered=_has_accounts),
    SlashCommand("help", "Show the commands", _told(_help)),
)
COMMANDS = {command.name: command for command in _TABLE}
