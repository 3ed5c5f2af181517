"""Checks of the lanes of `laneway chat`: whether plugins can be imported, and which lanes can be used now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from laneway.base.installed import installed_how
from laneway.cli.checks.model import Check, CheckContext, in_thread
from laneway.lanes.loading import LoadedLanes, load_lanes


async def look(context: CheckContext) -> list[Check]:
    modules = () if context.settings is None else context.settings.chat_lanes
    return on_loaded(await in_thread(lambda: load_lanes(modules))) if modules else []


def on_loaded(loaded: LoadedLanes) -> list[Check]:
    remedy = "Correct the module, or the setting `chat.lanes`: until then that lane is missing."
    checks = [Check("lanes", "warning", each.problem, remedy) for each in loaded.problems]
    commands = [f"/{command}" for each in loaded.commands.values() for command in each]
    if commands:
        facts = {module: list(each) for module, each in loaded.commands.items()}
        checks.append(Check("lanes", "ok", f"Lane plugins: {', '.join(commands)}.", facts=facts))
    return checks


async def look_at_chat(context: CheckContext) -> list[Check]:
    """Asks each lane, as a conversation does before it begins."""
    from laneway.app.chat_lanes import ChatLanes, ChosenEngines  # loads the contract of lanes and the hub
    from laneway.app.chat_platforms import PLATFORMS, TERMINAL, missing_modules
    from laneway.app.options import ClaudeChoice, CodexChoice

    settings = context.settings
    if settings is None:
        return []
    is_rehearsal = context.codex_environment != context.environment
    chosen = ChosenEngines(
        codex=CodexChoice(context.codex_bin, settings.codex_bin, is_rehearsal),
        claude=ClaudeChoice(context.claude_bin, settings.claude_bin, is_rehearsal),
    )
    async with ChatLanes(chosen, settings) as factory:
        problems: dict[str, str | None] = {}
        for name in factory.names:
            lane = factory.make(name, context.folder)
            problems[name] = await lane.probe()
            await lane.close()
    return [*on_problems(problems), *on_terminal(missing_modules(PLATFORMS[TERMINAL]))]


def on_terminal(missing: Sequence[str]) -> list[Check]:
    """What the terminal lacks; a pipe needs none of it."""
    if not missing:
        return []
    text = f"In a terminal `laneway chat` needs {' and '.join(missing)}."
    return [Check("chat", "note", text, f"Add the extra laneway[chat]: {installed_how().adding('chat')}")]


def on_problems(problems: Mapping[str, str | None]) -> list[Check]:
    """By lane: why it cannot be used, if it cannot."""
    usable = [f"/{name}" for name, problem in problems.items() if problem is None]
    text = f"Lanes that `laneway chat` can use: {', '.join(usable)}." if usable else ""
    checks = [Check("chat", "ok", text, facts={"lanes": usable})] if usable else []
    for name, problem in problems.items():
        if problem is not None:
            checks.append(Check("chat", "note", f"The lane /{name} cannot be used: {problem}"))
    return checks
