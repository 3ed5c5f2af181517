"""Slash commands: what a person asks of the session instead of the model.

A prompt that begins with `/name` is a command, known or not: an unknown one is answered here and
never sent to the model. Each is served at the `Desk` of its session, in the order of the prompts.
Nothing that comes with it is dropped in silence. What a command says is in `command_words`; what it
finds out about files is in `repo_diff` and `reviews`; `/undo` is in `undo_command`.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from laneway import __version__
from laneway.base.errors import EngineRefused
from laneway.base.plain import fenced, plain_code
from laneway.core.ports import Part, TextPart
from laneway.doors.acp.sessions import modes, options
from laneway.doors.acp.slash import command_words as words
from laneway.doors.acp.slash import repo_diff, reviews, undo_command
from laneway.doors.acp.slash.desk import Desk, Invocation
from laneway.wire.git import in_thread

MAX_PAGES = 20
"""Of a list that Codex gives by the page: a server that never ends its list must not hold a prompt."""
LIKENESS = 0.6
"""How near a name must be to be meant: one slip in a short word."""

_PLANNING = (
    "Plan mode is on until `/plan off`: Codex is told to plan and to change nothing. "
    "What it may do is still up to the session's mode."
)
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z-]*)(?:\s+|\Z)")

__all__ = ["AVAILABLE", "COMMANDS", "Command", "Desk", "Invocation", "find", "run"]


Run: TypeAlias = Callable[[Desk, Invocation], Awaitable[str]]
Tell: TypeAlias = Callable[[Desk, str], Awaitable[str]]


class Command(msgspec.Struct, frozen=True):
    name: str
    description: str
    run: Run
    hint: str = ""
    """What may follow the name; nothing may where there is no hint."""
    takes_files: bool = False
    """Links and embedded files go into its turn; else they are left aside, and that is said."""
    takes_images: bool = False


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


async def run(desk: Desk, invocation: Invocation) -> str:
    """Serve a command; returns the stop reason of its prompt."""
    command = COMMANDS.get(invocation.name)
    if command is None:
        await desk.say(_unknown(invocation.name))
        return "end_turn"
    if invocation.words and not command.hint:
        await desk.say(f"/{command.name} takes nothing after its name. Nothing was done.")
        return "end_turn"
    if invocation.has_images and not command.takes_images:
        await desk.say(f"/{command.name} takes no images. Nothing was done.")
        return "end_turn"
    if not command.takes_files:
        await _leave_files(desk, invocation)
    return await command.run(desk, invocation)


async def _leave_files(desk: Desk, invocation: Invocation) -> None:
    if invocation.has_files:
        await desk.say(f"What is attached is not used by /{invocation.name}.")


def _unknown(name: str) -> str:
    near = _nearest(name, COMMANDS)
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

    async def run_it(desk: Desk, invocation: Invocation) -> str:
        try:
            text = await tell(desk, invocation.words)
        except EngineRefused as refusal:
            text = words.refused(invocation.name, refusal)
        await desk.say(text)
        return "end_turn"

    return run_it


# ── commands that start a turn ─────────────────────────────────────────────


async def _plan(desk: Desk, invocation: Invocation) -> str:
    is_switch = invocation.words.lower() in ("on", "off") and not invocation.has_images
    is_bare = not (invocation.words or invocation.has_files or invocation.has_images)
    if is_switch or is_bare:
        await _leave_files(desk, invocation)
        return await _told(_switch_plan)(desk, invocation)
    if not desk.is_planning:
        await desk.say(f"{_PLANNING}\n\n")
    spoken = (TextPart(invocation.arguments),) if invocation.arguments else ()
    stop = await desk.turn((*spoken, *invocation.rest), {"collaborationMode": _mode(desk, "plan")})
    desk.is_planning = True
    return stop


async def _switch_plan(desk: Desk, arguments: str) -> str:
    is_on = arguments.lower() != "off"
    mode = _mode(desk, "plan" if is_on else "default")
    await desk.codex("thread/settings/update", {"threadId": desk.thread_id, "collaborationMode": mode})
    desk.is_planning = is_on
    return _PLANNING if is_on else "Plan mode is off."


def _mode(desk: Desk, mode: str) -> dict[str, Any]:
    # Model and effort of a mode replace the thread's: they must be the ones that are chosen already.
    settings = {
        "model": options.current_model(desk.choices, desk.facts),
        "reasoning_effort": options.current_effort(desk.choices, desk.facts),
        "developer_instructions": None,
    }
    return {"mode": mode, "settings": settings}


async def _review(desk: Desk, invocation: Invocation) -> str:
    _, _, what = invocation.name.partition("-")
    spoken = [f"{what} {invocation.arguments}".strip()]
    spoken += [part.text for part in invocation.rest if isinstance(part, TextPart)]
    target = await in_thread(reviews.target, desk.cwd, "\n".join(text for text in spoken if text))
    if isinstance(target, str):
        await desk.say(target)
        return "end_turn"
    # Only inline: a thread whose history comes by the page takes no detached review.
    return await desk.errand("review/start", {"target": target, "delivery": "inline"})


async def _compact(desk: Desk, invocation: Invocation) -> str:
    return await desk.errand("thread/compact/start", {})


async def _init(desk: Desk, invocation: Invocation) -> str:
    if await asyncio.to_thread(os.path.lexists, desk.cwd / "AGENTS.md"):
        await desk.say(
            "There is an AGENTS.md already, and it is left as it is. Ask for a change in a prompt."
        )
        return "end_turn"
    return await desk.turn((TextPart(words.INIT_PROMPT),))


async def _login(desk: Desk, invocation: Invocation) -> str:
    await desk.login()
    return "end_turn"


# ── commands that tell ─────────────────────────────────────────────────────


async def _diff(desk: Desk, arguments: str) -> str:
    found = await in_thread(repo_diff.changes, desk.cwd)
    if found.problem:
        return found.problem
    shown = [fenced(plain_code(found.diff), "diff")] if found.diff else []
    return "\n\n".join([*shown, *found.notes]) or "Nothing has changed since the last commit."


async def _status(desk: Desk, arguments: str) -> str:
    account = await _known(desk, "account/read")
    is_logged_in = isinstance(account, dict) and account.get("account") is not None
    return words.status(
        words.Status(
            session_id=desk.session_id,
            folder=str(desk.cwd),
            model=options.current_model(desk.choices, desk.facts),
            effort=options.current_effort(desk.choices, desk.facts),
            mode=desk.choices.mode,
            access=modes.words(options.policy(desk.choices, desk.facts)),
            is_planning=desk.is_planning,
            usage=desk.usage,
            account=account,
            limits=await _known(desk, "account/rateLimits/read") if is_logged_in else None,
            codex_version=desk.codex_version,
            laneway_version=__version__,
        )
    )


async def _known(desk: Desk, method: str) -> Any:
    """What Codex says; none where it will not: the rest of the answer is worth having."""
    try:
        return await desk.codex(method, {})
    except EngineRefused:
        return None


async def _mcp(desk: Desk, arguments: str) -> str:
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        asked = {"threadId": desk.thread_id, "detail": "toolsAndAuthOnly", "cursor": cursor}
        page = await desk.codex("mcpServerStatus/list", asked)
        found += page.get("data") or []
        cursor = page.get("nextCursor")
        if not cursor:
            break
    return words.mcp_servers(found)


async def _skills(desk: Desk, arguments: str) -> str:
    return words.skills(await desk.codex("skills/list", {"cwds": [str(desk.cwd)]}))


async def _model(desk: Desk, arguments: str) -> str:
    current = options.current_model(desk.choices, desk.facts)
    if not arguments:
        return words.models(desk.facts.models, current)
    known = {name.lower(): model.model for model in desk.facts.models for name in (model.name, model.model)}
    name = " ".join(arguments.lower().split())
    wanted = known.get(name)
    if wanted is None:
        near = _nearest(name, known)
        meant = f" Did you mean {known[near]}?" if near else ""
        return f"Codex names no model {words.one_line(arguments)}.{meant} See the models with /model."
    if wanted == current:
        return f"The model is {wanted} already."
    await desk.choose("model", wanted)
    return f"The model is {wanted} from the next turn on."


async def _fork(desk: Desk, arguments: str) -> str:
    copy = await desk.fork()
    return f"The copy is the session `{copy}`. Open it from your list of sessions; this one stays as it is."


async def _logout(desk: Desk, arguments: str) -> str:
    await desk.logout()
    return "You are logged out of Codex. Log in again with /login."


async def _help(desk: Desk, arguments: str) -> str:
    listed = [
        f"- `/{command.name}{f' {command.hint}' if command.hint else ''}`: {command.description}"
        for command in COMMANDS.values()
    ]
    return "\n".join(listed)


# ── the table ──────────────────────────────────────────────────────────────

_TABLE = (
    Command(
        "plan",
        "Plan before anything is changed; on its own, switch plan mode on",
        _plan,
        "[on | off | what to plan]",
        takes_files=True,
        takes_images=True,
    ),
    Command(
        "review",
        "Review the uncommitted changes, a branch, a commit, or what you say",
        _review,
        "[branch NAME | commit SHA | instructions]",
        takes_files=True,
    ),
    Command("review-branch", "Review what changed since a branch", _review, "NAME", takes_files=True),
    Command("review-commit", "Review one commit", _review, "SHA", takes_files=True),
    Command("compact", "Summarise the conversation to free the model's context", _compact),
    Command("init", "Have an AGENTS.md written for this project", _init),
    Command("diff", "Show what has changed since the last commit, new files included", _told(_diff)),
    Command("undo", "Take back the last turn and its edits", undo_command.run),
    Command("status", "Show model, mode, folder, tokens, account and versions", _told(_status)),
    Command("model", "Show the models, or choose one", _told(_model), "[NAME]"),
    Command("mcp", "Show the MCP servers and their tools", _told(_mcp)),
    Command("skills", "Show the skills", _told(_skills)),
    Command("fork", "Copy this session into a new one", _told(_fork)),
    Command("login", "Log in to Codex", _login),
    Command("logout", "Log out of Codex", _told(_logout)),
    Command("help", "Show the commands", _told(_help)),
)
COMMANDS = {command.name: command for command in _TABLE}

AVAILABLE: dict[str, Any] = {
    "sessionUpdate": "available_commands_update",
    "availableCommands": [
        {"name": command.name, "description": command.description}
        | ({"input": {"hint": command.hint}} if command.hint else {})
        for command in _TABLE
    ],
}
"""The update that tells a client what it can offer."""
