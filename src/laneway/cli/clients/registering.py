"""Writes or removes one server entry of one client's config, and proves a written one by starting it.

An entry that does not answer is put back. Every change can be undone by `laneway setup --undo`.
Only `laneway.cli.setup` calls this.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.errors import UsageError
from laneway.base.redact import redact
from laneway.base.server_words import is_ours, is_stale, program
from laneway.cli.clients import changing, edit, files, journal, keeping
from laneway.cli.clients.entry import command_line_of, with_command_line
from laneway.cli.clients.files import FileSnapshot
from laneway.cli.clients.keeping import CommandLine, EntryRequest
from laneway.cli.clients.known import KnownClient
from laneway.cli.clients.proof import prove
from laneway.cli.clients.show import command_line, short
from laneway.cli.handshake import HandshakeResult
from laneway.cli.registrations import parse, problem_text

Action: TypeAlias = Literal[
    "added", "replaced", "unchanged", "removed", "absent", "printed", "broken", "put back"
]


class SetupResult(msgspec.Struct, frozen=True):
    """The result of `setup`, as `--json` prints it."""

    client: str
    file: str | None
    server: str
    action: Action
    command: list[str] = []
    backup: str | None = None
    can_undo: bool = False
    """True if something was written."""
    notes: list[str] = []
    proof: HandshakeResult | None = None
    entry: dict[str, Any] | None = None

    @property
    def exit_code(self) -> int:
        return 1 if self.action in ("broken", "put back") else 0


class SetupJob(msgspec.Struct, frozen=True):
    """One call of `setup`: which file, which entry, what to write."""

    client: KnownClient
    file: Path
    is_shared: bool
    name: str
    request: EntryRequest
    notes: tuple[str, ...]
    deadline_s: float
    is_forced: bool


class _Plan(msgspec.Struct, frozen=True):
    """The entry before and after, and its command line."""

    keys: tuple[str, ...]
    before: dict[str, Any] | None
    after: dict[str, Any]
    line: CommandLine
    notes: list[str]


async def register(job: SetupJob) -> SetupResult:
    """Write the entry, prove it, put the file back if it does not answer."""
    before = _read(job)
    try:
        plan = _plan(job, before)
        is_new = plan.after != plan.before
        text = edit.put(before.text, job.file, plan.keys, plan.after) if is_new else before.text
    except ValueError as problem:
        raise files.refused(job.file, problem_text(problem)) from problem
    if not is_new:
        proof = await _proof(job, plan)
        return _done(job, "unchanged" if proof.is_good else "broken", plan, proof=proof)
    record = journal.Journal.begin(journal.folder(), "setup", job.client.name)
    applied = changing.apply(before, text, [journal.changed(plan.keys, plan.before, plan.after)], record)
    try:
        proof = await _proof(job, plan)
    except BaseException:
        applied.take_back()  # interrupted: an unproved entry does not stay
        raise
    if not proof.is_good and not job.is_forced:
        applied.take_back()
        return _done(job, "put back", plan, proof=proof)
    action: Action = "broken" if not proof.is_good else "added" if plan.before is None else "replaced"
    return _done(job, action, plan, backup=applied.backup, can_undo=True, proof=proof)


def remove(job: SetupJob) -> SetupResult:
    """Remove the entry."""
    before = _read(job)
    try:
        keys, existing = _existing(job, before)
        if existing is None:
            return _done(job, "absent")
        if not can_renew(existing) and not job.is_forced:
            raise UsageError(
                f"The server {job.name!r} of {short(job.file)} is not Laneway: remove it with --force."
            )
        text = edit.drop(before.text, job.file, keys)
    except ValueError as problem:
        raise files.refused(job.file, problem_text(problem)) from problem
    record = journal.Journal.begin(journal.folder(), "setup", job.client.name)
    applied = changing.apply(before, text, [journal.changed(keys, existing, None)], record)
    return _done(job, "removed", backup=applied.backup, can_undo=True)


def can_renew(entry: dict[str, Any]) -> bool:
    """Whether it starts Laneway, or the removed server that Laneway replaces."""
    words = command_line_of(entry) or [""]
    starts_laneway = any(program(word) == "laneway" for word in words) and is_ours(words[0], words[1:])
    return starts_laneway or is_stale(words[0], words[1:])


def _read(job: SetupJob) -> FileSnapshot:
    return files.read(job.file, files.SHARED if job.is_shared else files.PRIVATE)


def _existing(job: SetupJob, before: FileSnapshot) -> tuple[tuple[str, ...], dict[str, Any] | None]:
    """The keys of the entry, and the entry itself if there is one."""
    tree = parse(before.text, job.file) if before.text.strip() else {}
    keys = (*job.client.table_in(tree), job.name)
    entry = edit.look(tree, keys)
    if entry is not None and not isinstance(entry, dict):
        raise ValueError(f"its {job.name!r} is not an entry for a server")
    return keys, entry


def _plan(job: SetupJob, before: FileSnapshot) -> _Plan:
    """The entry to write: ours, with what the user has added to the existing one."""
    keys, existing = _existing(job, before)
    if existing is None:
        line = keeping.fresh(job.request)
        return _Plan(keys, None, job.client.entry(list(line.words)), line, list(job.notes))
    words = command_line_of(existing)
    if not can_renew(existing) or words is None:
        return _instead(job, keys, existing)
    line = keeping.renewed(words, job.request)
    notes = [*job.notes, *line.notes]
    entry = {**existing, **job.client.entry(list(line.words))}
    if isinstance(existing.get("command"), dict):  # Zed's older shape, with the variables inside
        entry = with_command_line(existing, list(line.words))
    if entry.pop("disabled", False) is True or entry.get("enabled") is False:
        notes.append("It was switched off there; it is switched on now.")
    if "enabled" in entry:
        entry["enabled"] = True
    return _Plan(keys, existing, entry, line, notes)


def _instead(job: SetupJob, keys: tuple[str, ...], existing: dict[str, Any]) -> _Plan:
    """Replace another server of that name, which needs --force."""
    if not job.is_forced:
        raise UsageError(
            f"{short(job.file)} has another server called {job.name!r}: choose another --name, "
            "or replace it with --force."
        )
    line = keeping.fresh(job.request)
    words = command_line_of(existing)
    old_command = f": `{command_line(words)}`" if words else ""
    note = f"Another server of that name was replaced{old_command}. `laneway setup --undo` brings it back."
    return _Plan(keys, existing, job.client.entry(list(line.words)), line, [*job.notes, note])


async def _proof(job: SetupJob, plan: _Plan) -> HandshakeResult:
    return await prove(job.file, plan.keys, job.deadline_s, is_agent=plan.line.door == "acp")


def _done(job: SetupJob, action: Action, plan: _Plan | None = None, **facts: Any) -> SetupResult:
    command = [redact(word) for word in plan.line.words] if plan else []
    notes = plan.notes if plan else []
    return SetupResult(job.client.name, str(job.file), job.name, action, command, notes=notes, **facts)
