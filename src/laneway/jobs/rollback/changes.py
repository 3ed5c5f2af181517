"""Changes of a work tree that are made whole or not at all, and are finished after a crash.

Everything that is overwritten, and everything that is written, is on disk before the first path is
touched. Blocking, and one change of a tree at a time: others wait at a gate. Rollbacks and merges are such
changes; each kind has a folder of its own.

A file that is put back is a new file: its mode, and its owner as far as we may, are those from before;
extended attributes and further hard links of the old one are not.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from laneway.base.errors import TreeRefused, UsageError
from laneway.base.foreign_files import NotRegular, TooLarge
from laneway.base.ids import new_id
from laneway.base.plain import code_label
from laneway.base.repo import git_dir
from laneway.jobs.rollback.apply import Application, Watch
from laneway.jobs.rollback.journal import ContentWriter, Kept, StoredRollback, key_of
from laneway.jobs.rollback.model import Operation, Outcome, Refusal, Return, RollbackJournal, Step
from laneway.jobs.rollback.plan import ContentSource, Folders, RollbackPlan, plan
from laneway.jobs.rollback.present import place_of
from laneway.jobs.snapshots.beneath import CHUNK_BYTES, open_file, open_root, read_all
from laneway.jobs.snapshots.objects import object_id
from laneway.jobs.snapshots.paths import bytes_of
from laneway.jobs.snapshots.reading import HASHED, MAX_KEPT_BYTES
from laneway.jobs.snapshots.work_tree import WorkTree, under_way, work_tree
from laneway.store.files import make_folder
from laneway.store.gates import gate

PATIENCE_S = 120.0
"""To wait for another rollback of the same tree. One of thousands of files takes seconds."""


def _ignore(step: str) -> None:
    """Nobody watches."""


class RollbackRecord(msgspec.Struct, frozen=True):
    """One rollback, for lists."""

    journal: RollbackJournal
    outcome: Outcome | None
    """None while it is not finished."""


class TreeChanges:
    """All changes of one kind in one work tree; each has a folder of its own."""

    def __init__(self, folder: Path, tree: Path, *, watch: Watch = _ignore) -> None:
        self.folder = folder
        self.tree = tree
        self._watch = watch

    @contextmanager
    def alone(self) -> Iterator[tuple[WorkTree, int]]:
        """Open the tree while no other such change is made; what a crash has cut off is finished first."""
        make_folder(self.folder)
        with gate(self.folder / "gate", patience_s=PATIENCE_S):
            self._finish_all()
            facts = work_tree(self.tree)
            root = open_root(facts.top)
            try:
                yield facts, root
            finally:
                os.close(root)

    def apply(
        self,
        facts: WorkTree,
        root: int,
        returns: Sequence[Return],
        source: ContentSource,
        folders: Folders,
        *,
        may_merge: bool,
        jobs: tuple[str, ...],
        undoes: str = "",
        attempt_borders: int = 0,
    ) -> Outcome:
        """Go these steps back on all paths or on none, inside `alone`."""
        _check_repositories(facts, [wanted.path for wanted in returns])
        rollback_id = new_id("rollback")
        decided = plan(
            root,
            returns,
            source,
            folders,
            algorithm=facts.algorithm,
            rollback_id=rollback_id,
            may_merge=may_merge,
        )
        if decided.refused:
            return Outcome(ending="refused", refused=decided.refused)
        if not decided.operations:
            return Outcome(ending="done")
        record = StoredRollback(self.folder / rollback_id)
        journal = RollbackJournal(
            rollback_id=rollback_id,
            tree=str(facts.top),
            algorithm=facts.algorithm,
            made_at=time.time(),
            number=1 + max((known.journal.number for known in self.records()), default=0),
            operations=decided.operations,
            jobs=jobs,
            undoes=undoes,
            merged=decided.merged,
            attempt_borders=attempt_borders,
        )
        try:
            kept = self._keep(record, root, journal, decided, source)
        except BaseException:
            record.discard()
            raise
        if not isinstance(kept, RollbackJournal):
            record.discard()
            return Outcome(ending="refused", refused=kept)
        return self._carry_out(record, root, kept)

    def undo(self, rollback_id: str, *, may_merge: bool = False) -> Outcome:
        """Take a change back: the same thing backwards. It can be taken back itself."""
        with self.alone() as (facts, root):
            record = StoredRollback(self.folder / rollback_id)
            journal = record.journal() if _is_id(rollback_id) else None
            if journal is None:
                raise UsageError(f"There is no rollback {code_label(rollback_id)}.")
            files = [item for item in journal.operations if item.kind in ("remove", "put")]
            returns = [Return(item.path, (Step(item.old, item.new),)) for item in files]
            made = {f"{item.path}/" for item in journal.operations if item.kind == "mkdir"}
            modes = {f"{item.path}/": item.mode for item in journal.operations if item.kind == "rmdir"}
            known = Folders(modes, made.__contains__, frozenset(modes))
            source = Kept(record, journal)
            return self.apply(
                facts,
                root,
                returns,
                source,
                known,
                may_merge=may_merge,
                jobs=journal.jobs,
                undoes=rollback_id,
            )

    def recover(self) -> tuple[Outcome, ...]:
        """Finish, or give up, what a crash has cut off. Cheap where there is nothing to do."""
        if not any(self._pending()):
            return ()
        with gate(self.folder / "gate", patience_s=PATIENCE_S):
            return self._finish_all()

    def records(self) -> tuple[RollbackRecord, ...]:
        """The oldest first."""
        found = []
        for record in self._folders():
            journal = record.journal()
            if journal is not None:
                found.append(RollbackRecord(journal, record.outcome()))
        return tuple(sorted(found, key=lambda item: (item.journal.number, item.journal.made_at)))

    # ── one change ─────────────────────────────────────────────────────────

    def _keep(
        self,
        record: StoredRollback,
        root: int,
        journal: RollbackJournal,
        decided: RollbackPlan,
        source: ContentSource,
    ) -> RollbackJournal | tuple[Refusal, ...]:
        """Everything on disk, then the journal: from here on the rollback is finished, whatever happens."""
        with ContentWriter(record.folder) as writer:
            refused = [
                Refusal(operation.path, "edited")
                for operation in journal.operations
                if not _keep_old(root, operation, writer, journal.algorithm)
            ]
            if refused:
                return tuple(refused)
            for key, data in decided.made.items():
                writer.add(key, (data,))
            new = {key_of(operation.new): operation.new for operation in journal.operations}
            source.fill([state for key, state in new.items() if key and key not in writer.places], writer)
            self._watch("kept")
            writer.sync()
            journal = msgspec.structs.replace(journal, contents=writer.places)
            record.begin(journal)
        self._watch("journal")
        return journal

    def _carry_out(self, record: StoredRollback, root: int, journal: RollbackJournal) -> Outcome:
        """From the start, or from wherever it was cut off."""
        work = Application(root, journal, Kept(record, journal), self._watch)
        obstacle = None if record.is_committed else work.forward()
        if obstacle is None:
            record.commit()
            self._watch("committed")
            leftovers = work.tidy()
            done = tuple(item.path for item in journal.operations if item.kind in ("put", "remove"))
            outcome = Outcome(
                ending="done",
                rollback_id=journal.rollback_id,
                paths=tuple(sorted(done)),
                merged=journal.merged,
                refused=leftovers,
            )
        else:
            stuck = work.back()
            outcome = Outcome(
                ending="partial" if stuck else "given up",
                rollback_id=journal.rollback_id,
                refused=tuple(dict.fromkeys((obstacle, *stuck))),
            )
        record.end(outcome)
        return outcome

    # ── after a crash ──────────────────────────────────────────────────────

    def _finish_all(self) -> tuple[Outcome, ...]:
        outcomes = []
        for record in self._pending():
            journal = record.journal()
            if journal is None:
                record.discard()  # nothing was written yet
                continue
            try:
                root = open_root(journal.tree)
            except OSError as problem:
                why = problem.strerror or type(problem).__name__
                raise TreeRefused(
                    f"A rollback of {code_label(journal.tree)} was cut off, and the work tree cannot be "
                    f"opened ({why}).",
                    journal.tree,
                ) from problem
            try:
                outcomes.append(self._carry_out(record, root, journal))
            finally:
                os.close(root)
        return tuple(outcomes)

    def _pending(self) -> Iterator[StoredRollback]:
        return (record for record in self._folders() if record.outcome() is None)

    def _folders(self) -> list[StoredRollback]:
        try:
            names = sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return []
        return [StoredRollback(self.folder / name) for name in names if _is_id(name)]


def _is_id(name: str) -> bool:
    return name.startswith("rollback-") and name.removeprefix("rollback-").isalnum()


def _check_repositories(facts: WorkTree, paths: Iterable[str]) -> None:
    """Refuse while a person is in the middle of something, also in a repository inside the tree."""
    inside = {part for path in paths for part in _folders_above(path)}
    repositories = {os.path.join(facts.top, part): git_dir(os.path.join(facts.top, part)) for part in inside}
    for top, own in ((str(facts.top), facts.git_dir), *repositories.items()):
        operation = under_way(own) if own else ""
        if operation:
            raise TreeRefused(f"In {code_label(top)} there is {operation} in progress: end it first.", top)


def _folders_above(path: str) -> list[str]:
    try:
        parts = os.fsdecode(bytes_of(path)).split("/")
    except ValueError:
        return []  # it is refused by name
    return ["/".join(parts[:place]) for place in range(1, len(parts))]


def _keep_old(root: int, operation: Operation, writer: ContentWriter, algorithm: str) -> bool:
    """Save what is about to be overwritten; false if it is not that any more."""
    state = operation.old
    if operation.kind not in ("put", "remove") or state.kind == "absent":
        return True
    key = key_of(state)
    try:
        with place_of(root, operation.path) as (folder, name):
            if state.kind == "link":
                data = os.readlink(name, dir_fd=folder)
                writer.add(key, (data,))
                return object_id("blob", data, algorithm) == key
            fd = open_file(folder, name)
            try:
                return _keep_file(fd, key, writer, algorithm)
            finally:
                os.close(fd)
    except (FileNotFoundError, NotADirectoryError, NotRegular):
        return False


def _keep_file(fd: int, key: str, writer: ContentWriter, algorithm: str) -> bool:
    if not key.startswith(HASHED):
        try:
            data = read_all(fd, MAX_KEPT_BYTES)
        except TooLarge:
            return False  # it has grown
        writer.add(key, (data,))
        return object_id("blob", data, algorithm) == key
    digest = hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        while piece := os.read(fd, CHUNK_BYTES):
            digest.update(piece)
            yield piece

    if key in writer.places:
        return True
    writer.add(key, pieces())
    return f"{HASHED}{digest.hexdigest()}" == key
