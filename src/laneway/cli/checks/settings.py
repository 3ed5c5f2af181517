"""Whether our own settings can be read, and what in them is ignored."""

from __future__ import annotations

from laneway.base.errors import SettingError
from laneway.base.redact import redact
from laneway.base.settings import load
from laneway.cli.checks.model import Case, Check, in_thread, sentence


async def look(case: Case) -> list[Check]:
    flags = {"codex_bin": case.codex_bin}
    try:
        found = await in_thread(lambda: load(flags, case.environment, case.folder, case.home))
    except SettingError as error:
        problem = sentence(redact(f"A setting is invalid: {error}"))
        return [Check("settings", "error", problem, "Correct it: until then most commands refuse to start.")]
    case.settings = found
    chosen = sum(value.source.kind != "default" for value in found.values.values())
    files = {kind: str(path) for kind, path in found.files.items()}
    what = "all are defaults" if not chosen else f"{chosen} differ from the default"
    good = Check("settings", "ok", f"The settings can be read; {what}.", facts={"files": files})
    remedy = "See `laneway config`."
    return [
        good,
        *(Check("settings", "note", sentence(redact(f"Ignored: {each}")), remedy) for each in found.ignored),
    ]
