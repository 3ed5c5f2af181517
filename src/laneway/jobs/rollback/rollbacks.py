"""The rollbacks of one work tree: gives paths back as they were before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from laneway.jobs.rollback.changes import TreeChanges
from laneway.jobs.rollback.journal import ContentWriter
from laneway.jobs.rollback.model import Outcome, Return
from laneway.jobs.rollback.plan import Folders
from laneway.jobs.shadow import Shadow
from laneway.jobs.snapshots.model import PathState


class ShadowSource:
    """Contents from the shadow repository."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow

    def has(self, state: PathState) -> bool:
        return bool(state.blob)

    def read(self, state: PathState) -> bytes:
        return self._shadow.read(state)

    def fill(self, states: Collection[PathState], writer: ContentWriter) -> None:
        for key, data in self._shadow.contents(states):
            writer.add(key, (data,))


class Rollbacks(TreeChanges):
    """All rollbacks of one work tree."""

    def roll_back(
        self,
        returns: Sequence[Return],
        shadow: Shadow,
        folders: Mapping[str, int],
        *,
        may_merge: bool = False,
        jobs: Iterable[str] = (),
        attempt_borders: int = 0,
    ) -> Outcome:
        """Give these paths back. `folders` are those that were there before the jobs, with their modes.

        `attempt_borders`: how many borders the run has, where a job goes on after a failed attempt.
        """
        with self.alone() as (facts, root):
            known = Folders(folders, lambda key: key not in folders)
            return self.apply(
                facts,
                root,
                returns,
                ShadowSource(shadow),
                known,
                may_merge=may_merge,
                jobs=tuple(jobs),
                attempt_borders=attempt_borders,
            )
