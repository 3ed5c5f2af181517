"""Which of the user's other programs still call the removed `codex mcp-server`."""

from __future__ import annotations

from pathlib import Path

from laneway.cli.checks.model import Case, Check, in_thread
from laneway.cli.registrations import REMOVED_IN, Registration, Scan, Unreadable, places, scan
from laneway.codex.binary import spell


async def look(case: Case) -> list[Check]:
    found = await in_thread(lambda: scan(places(case.home, case.folder, case.environment)))
    return on_scan(found, case.version)


def on_scan(found: Scan, version: tuple[int, ...] | None) -> list[Check]:
    checks = [_on_stale(entry, version) for entry in found.stale]
    checks += [_on_unreadable(file) for file in found.unreadable]
    if not found.stale:
        files = "1 file was read" if len(found.read) == 1 else f"{len(found.read)} files were read"
        message = f"No program here is told to start the removed `codex mcp-server` ({files})."
        facts = {"read": [str(path) for path in found.read]}
        checks.append(Check("registrations", "ok", message, facts=facts))
    return checks


def _on_stale(entry: Registration, version: tuple[int, ...] | None) -> Check:
    # Neither arguments nor environment: people keep keys there.
    facts = {"file": str(entry.file), "keys": entry.keys, "server": entry.server, "enabled": entry.is_enabled}
    what = f"{_short(entry.file)} starts `codex mcp-server` as {entry.server!r}"
    if not entry.is_enabled:
        message = f"{what}, but it is switched off."
        remedy = "Remove it, or let `laneway migrate --write` change it."
        return Check("registrations", "note", message, remedy, facts)
    remedy = "Run `laneway migrate` to see, and `laneway migrate --write` to let it start Laneway instead."
    removed = f"Codex {spell(REMOVED_IN)} removed that"
    if version is not None and version < REMOVED_IN:
        return Check(
            "registrations", "note", f"{what}; {removed}, so an upgrade will break it.", remedy, facts
        )
    return Check("registrations", "warning", f"{what}; {removed}, so it fails.", remedy, facts)


def _on_unreadable(file: Unreadable) -> Check:
    facts = {"file": str(file.file)}
    message = f"{_short(file.file)} could not be looked at: {file.problem}."
    return Check("registrations", "note", message, "Correct it, if it is a config that you use.", facts)


def _short(file: Path) -> str:
    home = Path.home()
    return f"~/{file.relative_to(home)}" if file.is_relative_to(home) else str(file)
