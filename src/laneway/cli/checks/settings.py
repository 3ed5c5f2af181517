"""Check of Laneway's own settings: whether they can be read, and what in them is ignored."""

from __future__ import annotations

from laneway.base.errors import SettingError
from laneway.base.redact import redact
from laneway.base.settings import load
from laneway.cli.checks.model import Check, CheckContext, in_thread, sentence


async def look(context: CheckContext) -> list[Check]:
    flags = {"codex_bin": context.codex_bin}
    try:
        loaded = await in_thread(lambda: load(flags, context.environment, context.folder, context.home))
    except SettingError as error:
        problem = sentence(redact(f"A setting is invalid: {error}"))
        return [Check("settings", "error", problem, "Correct it: until then most commands refuse to start.")]
    context.settings = loaded
    changed = sum(value.source.kind != "default" for value in loaded.values.values())
    files = {kind: str(path) for kind, path in loaded.files.items()}
    summary = "all are defaults" if not changed else f"{changed} differ from the default"
    good = Check("settings", "ok", f"The settings can be read; {summary}.", facts={"files": files})
    remedy = "See `laneway config`."
    return [
        good,
        *(Check("settings", "note", sentence(redact(f"Ignored: {each}")), remedy) for each in loaded.ignored),
    ]
