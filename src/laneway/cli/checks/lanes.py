"""Check of lane plugins: whether the modules that the settings name can be imported and register lanes."""

from __future__ import annotations

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
