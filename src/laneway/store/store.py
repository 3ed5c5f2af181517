"""The files of one team: sessions by identity, locks, summaries, one audit log.

    store = Store(sessions_root(), "default")
    with store.claim("codex") as claim:
        claim.registry.update(Entry(agent_id=…, identity="codex", team="default"))
        claim.audit.append(AuditLine(event_type="codex", agent_id=…, identity="codex"))
        claim.summaries.write(backend_id, text)

Any number of processes may have a store on the same folder. Reading needs no claim and writes
nothing. Everything blocks: from asyncio call through `asyncio.to_thread`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec

from laneway.base.errors import FileDamaged, FileNewer, IdentityHeld, StoreError
from laneway.store.audit import AuditLog
from laneway.store.claim import HeldIdentity, Registry, mark_of
from laneway.store.files import keep_aside, make_folder, read_whole, sweep, trouble
from laneway.store.layout import Layout
from laneway.store.listing import Listing, SessionRow, disowned, row_of
from laneway.store.locks import Holder, Lock, LockedPaths, Locks
from laneway.store.names import is_name
from laneway.store.registry import ENDED, MAX_REGISTRY_BYTES, Entry, RegistryContent, decode, is_older
from laneway.store.retention import Retention
from laneway.store.stamps import Now, stamp, utc_now
from laneway.store.summaries import Summaries, read_summary

log = logging.getLogger(__name__)


class StoreView(msgspec.Struct, frozen=True):
    """All sessions of the team, as anybody may list them."""

    entries: tuple[Entry, ...]
    """A session marked active whose identity no process holds is listed as stale."""
    problems: tuple[str, ...] = ()
    """Files that cannot be read, as sentences. They are left as they are."""


class Rows(msgspec.Struct, frozen=True):
    """A `StoreView` with all fields of each session."""

    rows: tuple[SessionRow, ...]
    problems: tuple[str, ...] = ()


class Pruned(msgspec.Struct, frozen=True):
    removed: tuple[Entry, ...]
    in_use: tuple[str, ...]
    """Identities that were left alone, because a process holds them."""
    problems: tuple[str, ...]


class Store:
    """The store of one team."""

    def __init__(
        self,
        root: Path,
        team: str,
        *,
        flat: bool = False,
        retention: Retention = Retention(),  # noqa: B008  frozen
        now: Now = utc_now,
    ) -> None:
        self.team = team
        self.layout = Layout.of(root, team, flat=flat)
        self._retention = retention
        self._now = now
        self._locks = Locks(self.layout.claims_gate)
        self._listing = Listing()
        self.audit = AuditLog(self.layout.audit, self.layout.audit_gate, retention=retention, now=now)

    # ── claiming ───────────────────────────────────────────────────────────

    def claim(self, identity: str, *, agent_id: str | None = None) -> HeldIdentity:
        """Lock this identity until the claim is released or this process ends, else `IdentityHeld`."""
        holder = Holder(os.getpid(), agent_id, stamp(self._now()))
        lock = self._locks.take(self._locked_paths(identity), identity, holder)
        try:
            return self._settle(lock, holder, identity)
        except BaseException:
            lock.release()
            raise

    def _locked_paths(self, identity: str) -> LockedPaths:
        return LockedPaths(self.layout.lock(identity), self.layout.home(identity))

    def _settle(self, lock: Lock, holder: Holder, identity: str) -> HeldIdentity:
        home = self.layout.home(identity)
        make_folder(home)
        sweep(home)
        content, reports = self._content_to_own(identity)
        summaries = Summaries(lambda backend_id: self.layout.summary(identity, backend_id), lock.check)
        registry = Registry(
            self.layout.registry(identity),
            content,
            (self.team, identity),
            max_sessions=self._retention.max_sessions,
            check=lock.check,
            summaries=summaries,
            mark=mark_of(self.layout.registry(identity)),
        )
        registry.change(RegistryContent.disowned)
        claim = HeldIdentity(
            lock, holder, registry, summaries, self.audit, identity=identity, now=self._now, reports=reports
        )
        if self._retention.session_age is not None:
            claim.prune(self._retention.session_age)
        claim.reports += self._tidied()
        return claim

    def _tidied(self) -> tuple[str, ...]:
        """Apply the age limits of the audit log. A problem is reported and does not stop the claim."""
        try:
            self.audit.tidy()
        except StoreError as problem:
            log.warning("The audit log is left as it is: %s", problem)
            return (str(problem),)
        return ()

    def _content_to_own(self, identity: str) -> tuple[RegistryContent, tuple[str, ...]]:
        """The identity's content. A damaged or newer file is moved aside first, and reported."""
        path = self.layout.registry(identity)
        try:
            content = _load(path)
        except (FileDamaged, FileNewer) as problem:
            why = "newer" if isinstance(problem, FileNewer) else "corrupt"
            aside = keep_aside(path, why, self._now())
            report = f"{problem} It is kept as {aside.name}; a new registry begins."
            log.warning("%s", report)
            return RegistryContent(), (report,)
        if content is not None:
            return content, ()
        try:
            return self._old_content(identity), ()
        except StoreError as problem:
            return RegistryContent(), (str(problem),)

    def _old_content(self, identity: str) -> RegistryContent:
        """The sessions of an identity in the old team-wide registry, if it has no registry of its own yet."""
        content = _load(self.layout.old_registry) or RegistryContent()
        rows = tuple(row for row in content.rows if row.entry and row.entry.identity == identity)
        return RegistryContent(rows)

    # ── reading ────────────────────────────────────────────────────────────

    def holder(self, identity: str) -> Holder | None:
        """Who holds the identity now; `None` if it is free."""
        return self._locks.holder(self._locked_paths(identity))

    def view(self) -> StoreView:
        """All sessions of the team, of running and ended processes, and of the old registry."""
        view = self.rows()
        return StoreView(tuple(row.entry for row in view.rows), view.problems)

    def rows(self) -> Rows:
        """The same with all fields that a resume needs."""
        rows: list[SessionRow] = []
        problems: list[str] = []
        identities: set[str] = set()
        paths = self._registry_paths()
        for identity, path in paths.items():
            try:
                file_rows = self._look(identity, path)
            except StoreError as problem:
                problems.append(str(problem))
                file_rows = ()
            if file_rows is not None:
                identities.add(identity)
                rows += file_rows
        self._listing.keep_only(set(paths.values()))
        try:
            for identity in self._old_identities() - identities:
                rows += map(row_of, self._old_content(identity).disowned().entries)
        except StoreError as problem:
            problems.append(str(problem))
        return Rows(tuple(rows), tuple(dict.fromkeys(problems)))

    def _registry_paths(self) -> dict[str, str]:
        """The path of each identity's registry, in the order of their names."""
        try:
            names = sorted(os.listdir(self.layout.folder))
        except FileNotFoundError:
            return {}
        except OSError as problem:
            raise trouble(self.layout.folder, problem, "read") from problem
        return self.layout.registries(names)

    def identities(self) -> tuple[str, ...]:
        """Identities with a registry of their own."""
        try:
            names = sorted(name for name in os.listdir(self.layout.folder) if is_name(name))
        except FileNotFoundError:
            return ()
        except OSError as problem:
            raise trouble(self.layout.folder, problem, "read") from problem
        return tuple(name for name in names if os.path.lexists(self.layout.registry(name)))

    def summary(self, identity: str, backend_id: str) -> str | None:
        return read_summary(self.layout.summary(identity, backend_id))

    def _look(self, identity: str, path: str) -> tuple[SessionRow, ...] | None:
        rows = self._listing.rows(path)
        if rows is None or all(row.status != "active" for row in rows):
            return rows  # the lock need not be checked: it matters for active sessions only
        # A free identity is read while nobody can claim it: else sessions of a new owner would look stale.
        with self._locks.looking(self._locked_paths(identity)) as holder:
            rows = None if holder else self._listing.rows(path)
        if holder:
            return self._listing.rows(path)
        return None if rows is None else tuple(map(disowned, rows))

    def _old_identities(self) -> set[str]:
        content = _load(self.layout.old_registry) or RegistryContent()
        return {entry.identity for entry in content.entries if is_name(entry.identity)}

    # ── pruning ────────────────────────────────────────────────────────────

    def prunable(self, min_age: timedelta, is_selected: Callable[[SessionRow], bool]) -> Rows:
        """Sessions that `prune` would remove now. Changes nothing."""
        view = self.rows()
        now = self._now()
        ended = [row for row in view.rows if row.status in ENDED and is_older(row.entry, min_age, now)]
        is_free = {row.identity: self._is_free(row.identity) for row in ended}
        rows = tuple(row for row in ended if is_free[row.identity] and is_selected(row))
        return Rows(rows, view.problems)

    def _is_free(self, identity: str) -> bool:
        return is_name(identity) and self.holder(identity) is None

    def prune(
        self, min_age: timedelta = timedelta(0), is_selected: Callable[[Entry], bool] = lambda entry: True
    ) -> Pruned:
        """Remove closed and stale sessions of all identities that no process holds, and old audit files.

        Transcripts are Codex's and stay. A holder prunes its own (`HeldIdentity.prune`).
        """
        removed: list[Entry] = []
        in_use: list[str] = []
        problems: list[str] = []
        for identity in self._known_identities():
            try:
                with self.claim(identity) as claim:
                    problems += claim.reports
                    removed += claim.prune(min_age, is_selected)
            except IdentityHeld:
                in_use.append(identity)
            except StoreError as problem:
                problems.append(str(problem))
        problems += self._tidied()
        return Pruned(tuple(removed), tuple(in_use), tuple(dict.fromkeys(problems)))

    def _known_identities(self) -> list[str]:
        """Identities of both kinds of registries; without the old one's if that is damaged."""
        try:
            return sorted({*self.identities(), *self._old_identities()})
        except (FileDamaged, FileNewer):
            return list(self.identities())


def _load(path: Path) -> RegistryContent | None:
    data = read_whole(path, MAX_REGISTRY_BYTES)
    return None if data is None else decode(data, str(path))
