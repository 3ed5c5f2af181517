"""Checks of other programs' configs: which still start `codex mcp-server`, and old copies beside them."""

from __future__ import annotations

from pathlib import Path

from laneway.base.counting import counted
from laneway.cli.checks.model import Check, CheckContext, in_thread
from laneway.cli.clients import backups
from laneway.cli.registrations import REMOVED_IN, Registration, Scan, Unreadable, places, scan
from laneway.codex.binary import spell

NAMED_COPIES = 3
"""Copies named in a message; the rest is counted."""


async def look(context: CheckContext) -> list[Check]:
    files = places(context.home, context.folder, context.environment)
    result = await in_thread(lambda: scan(files))
    copies = await in_thread(lambda: backups.beside(files))
    return [*on_scan(result, context.version), *on_copies(copies)]


def on_scan(result: Scan, version: tuple[int, ...] | None) -> list[Check]:
    checks = [_on_stale(entry, version) for entry in result.stale]
    checks += [_on_unreadable(file) for file in result.unreadable]
    if not result.stale:
        files = counted(len(result.read), "file was", "files were") + " read"
        message = f"No program here is configured to start the removed `codex mcp-server` ({files})."
        facts = {"read": [str(path) for path in result.read]}
        checks.append(Check("registrations", "ok", message, facts=facts))
    return checks


def on_copies(copies: list[Path]) -> list[Check]:
    """Copies of configs that earlier versions left beside them, where keys and repositories are."""
    if not copies:
        return []
    named = ", ".join(_short(path) for path in copies[:NAMED_COPIES])
    more = f" and {len(copies) - NAMED_COPIES} more" if len(copies) > NAMED_COPIES else ""
    message = f"An earlier Laneway left copies of configs, which may hold keys: {named}{more}."
    remedy = "Remove them, once you do not need them any more; newer copies lie in Laneway's state folder."
    facts = {"files": [str(path) for path in copies]}
    return [Check("old-copies", "note", message, remedy, facts)]


def _on_stale(entry: Registration, version: tuple[int, ...] | None) -> Check:
    # Neither arguments nor environment: people keep keys there.
    facts = {"file": str(entry.file), "keys": entry.keys, "server": entry.server, "enabled": entry.is_enabled}
    what = f"{_short(entry.file)} starts `codex mcp-server` as {entry.server!r}"
    if not entry.is_enabled:
        message = f"{what}, but is disabled."
        remedy = "Remove it, or run `laneway migrate --write` to change it."
        return Check("registrations", "note", message, remedy, facts)
    remedy = "Run `laneway migrate` to preview, then `laneway migrate --write` to start Laneway instead."
    removed = f"Codex {spell(REMOVED_IN)} removed that"
    if version is not None and version < REMOVED_IN:
        return Check(
            "registrations", "note", f"{what}; {removed}, so an upgrade will break it.", remedy, facts
        )
    return Check("registrations", "warning", f"{what}; {removed}, so it fails.", remedy, facts)


def _on_unreadable(file: Unreadable) -> Check:
    facts = {"file": str(file.file)}
    message = f"{_short(file.file)} could not be read: {file.problem}."
    return Check("registrations", "note", message, "Correct it, if you use this config.", facts)


def _short(file: Path) -> str:
    home = Path.home()
    return f"~/{file.relative_to(home)}" if file.is_relative_to(home) else str(file)
