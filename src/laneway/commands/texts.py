"""The answers of slash commands as Markdown: status, lists, results. Pure.

Foreign names and descriptions are shown on one line, shortened, and without control characters.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from laneway.base.errors import EngineRefused
from laneway.base.plain import label, quoted
from laneway.core.model import Usage
from laneway.core.models import Model
from laneway.core.offers import Account, Limit, McpServerStatus, Skill
from laneway.rendering.refusals import too_old

MAX_ABOUT_CHARS = 160
"""Of a foreign description in a list: one or two lines of an editor's panel."""
MAX_LISTED = 100
"""Entries of one list: nobody reads more."""

INIT_PROMPT = """\
Write a file AGENTS.md into the top folder of this project: the guide that a coding agent needs to \
work here well.

First look around: the files that describe the project, how it is built, tested and linted, how the \
code is laid out and which habits it follows. Then write what you found, in this order, leaving out \
what does not apply:

- what the project is, in two or three sentences;
- the commands to set it up, build it, test it (all tests and a single one), and check its style;
- where things are: the main folders and files, and what belongs where;
- the habits of the code: naming, structure, error handling, tests, commit messages;
- what to be careful with: generated files, secrets, slow or dangerous commands.

Keep it under 400 words. State only what you have seen in the files, and no general advice. \
Change no other file."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    session_id: str
    folder: str
    model: str
    effort: str | None
    mode: str
    access: str
    """In words; empty for an engine that does not report it."""
    is_planning: bool
    usage: Usage | None
    account: Account | None
    """None if the engine did not say."""
    limits: tuple[Limit, ...]
    engine: str
    """Its name."""
    engine_version: str
    laneway_version: str


def status(facts: Status) -> str:
    plan = ", plan mode" if facts.is_planning else ""
    lines = [
        ("Model", one_line(facts.model) + (f", effort {one_line(facts.effort)}" if facts.effort else "")),
        ("Mode", f"{facts.mode} ({facts.access}){plan}" if facts.access else ""),
        ("Folder", quoted(facts.folder)),
        ("Session", f"`{facts.session_id}`"),
        ("Tokens", _tokens(facts.usage)),
        ("Account", _account(facts.account)),
        ("Limits", "; ".join(map(_limit, facts.limits))),
        ("Versions", f"{facts.engine} {facts.engine_version}, Laneway {facts.laneway_version}"),
    ]
    return "\n".join(f"- **{name}**: {text}" for name, text in lines if text)


def _tokens(usage: Usage | None) -> str:
    if usage is None:
        return "none used yet"
    total = f"{usage.total.total:,} used"
    if not usage.window:
        return total
    share = 100 * usage.last.total // usage.window
    return f"{total}; the context holds {usage.last.total:,} of {usage.window:,} ({share} %)"


def _account(account: Account | None) -> str:
    if account is None:
        return ""
    match account.kind:
        case None:
            return "nobody is logged in; use /login" if account.is_login_possible else "none needed"
        case "apiKey":
            return "API key"
        case "chatgpt":
            return f"ChatGPT ({one_line(account.who)})" if account.who else "ChatGPT"
        case kind:
            return one_line(kind)


def _limit(limit: Limit) -> str:
    minutes, resets = limit.window_minutes, limit.resets_at
    window = f" of {_span(minutes)}" if minutes is not None and minutes > 0 else ""
    until = f", until {_moment(resets)}" if resets is not None else ""
    return f"{'?' if limit.used_percent is None else limit.used_percent} %{window} used{until}"


def _span(minutes: int) -> str:
    for unit, size in (("days", 24 * 60), ("hours", 60)):
        if minutes % size == 0:
            return f"{minutes // size} {unit}"
    return f"{minutes} minutes"


def _moment(epoch_s: int) -> str:
    try:
        return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, OSError, ValueError):
        return "an unknown time"


def mcp_server_list(servers: tuple[McpServerStatus, ...]) -> str:
    if not servers:
        return "No MCP servers are set up. Add one to Codex with `codex mcp add`, or in your editor."
    return "\n".join(["MCP servers:", *_listed([_server(server) for server in servers])])


def _server(server: McpServerStatus) -> str:
    details = [_STATES.get(server.state, "state unknown")]
    details.append(f"{len(server.tools)} tools" if len(server.tools) != 1 else "1 tool")
    if server.error:
        details.append(one_line(server.error))
    name = one_line(server.name)
    if server.needs_login:
        details.append(f"needs a login: `codex mcp login {name}`")
    tools = ", ".join(f"`{one_line(tool)}`" for tool in server.tools[:MAX_LISTED])
    return f"**{name}**: {', '.join(details)}{f': {tools}' if tools else ''}"


_STATES = {
    "": "set up",
    "notStarted": "not started",
    "starting": "starting",
    "connected": "connected",
    "authenticationRequired": "needs a login",
    "failed": "failed",
    "cancelled": "cancelled",
    "disabled": "disabled",
}


def skill_list(skills: tuple[Skill, ...]) -> str:
    if not skills:
        return "There are no skills here."
    lines = [
        f"`${one_line(skill.name)}`" + (f": {one_line(skill.about)}" if skill.about else "")
        for skill in skills
    ]
    return "\n".join(["Skills. Use one by its name in a prompt:", *_listed(lines)])


def model_list(models: tuple[Model, ...], current: str, engine: str) -> str:
    lines = [_model(model, current) for model in models if not model.is_hidden or model.model == current]
    if not lines:
        return f"The model is {one_line(current)}. {engine} names no others."
    return "\n".join(["Models. Choose one with `/model NAME`:", *_listed(lines)])


def _model(model: Model, current: str) -> str:
    marker = " (current)" if model.model == current else ""
    description = f": {one_line(model.description)}" if model.description else ""
    return f"`{one_line(model.model)}`{marker}{description}"


def undone(files: tuple[str, ...], failure_reason: str, engine: str) -> str:
    if failure_reason:
        result = f"Its edits were left in the files, because {failure_reason}."
    elif files:
        result = (
            f"Its edits are out of the files again: {', '.join(quoted(name) for name in files[:MAX_LISTED])}."
        )
    else:
        result = "It had edited no files."
    return (
        f"The last turn is taken back: {engine} no longer knows of it. {result} "
        "What shell commands changed is not undone; see what is there with /diff."
    )


def not_undone(reason: str, engine: str, *, has_edits: bool) -> str:
    edits_note = " Its edits stay in the files." if has_edits else ""
    return (
        f"{engine} cannot take back this turn: {one_line(reason)}. Nothing was changed. "
        f"The next /undo goes on with the turn before it, and takes this one along.{edits_note}"
    )


def unanswered(timeout_s: float, engine: str) -> str:
    return (
        f"{engine} did not say within {timeout_s:g} seconds whether the last turn is taken back. "
        "The files were left as they are."
    )


def refused(name: str, refusal: EngineRefused) -> str:
    if refusal.is_unknown_method:
        return f"/{name} does not work here. {too_old(refusal)}"
    return f"/{name} failed, because {refusal.engine} refused it: {one_line(refusal.message)}"


def one_line(text: str) -> str:
    """Foreign text on one line, shortened."""
    return label(" ".join(text.split()), MAX_ABOUT_CHARS)


def _listed(lines: list[str]) -> list[str]:
    listed = [f"- {line}" for line in lines[:MAX_LISTED]]
    return listed if len(lines) <= MAX_LISTED else [*listed, f"- and {len(lines) - MAX_LISTED} more"]
