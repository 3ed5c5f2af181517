"""Merges what a job did apart into the user's tree: three-way against the job's baseline, all paths or none.

A path that still is as it was in the baseline becomes as the job left it. One that is so already stays. Texts
that both changed are merged where nothing is in dispute. All else is a conflict, and then nothing is written:
the job's files stay where they are until they are removed, so that they can be looked at.

It is written as a rollback is (`laneway.jobs.rollback`), only forward: everything on disk before the first
path is touched, no link followed, files replaced whole, a crash finished at the next look.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from laneway.base.errors import ContentGone
from laneway.base.plain import code_label
from laneway.base.prepare import prepare
from laneway.jobs.attribution import EditWindow
from laneway.jobs.isolation.edits import Edits
from laneway.jobs.rollback.changes import TreeChanges
from laneway.jobs.rollback.journal import ContentWriter, key_of
from laneway.jobs.rollback.model import WORDS, Outcome, Refusal, Return, Step
from laneway.jobs.rollback.plan import Folders
from laneway.jobs.rollback.present import at_path, place_of
from laneway.jobs.shadow import Shadow
from laneway.jobs.snapshots.beneath import CHUNK_BYTES, open_file, open_root
from laneway.jobs.snapshots.model import Change, PathState, Unguarded
from laneway.jobs.snapshots.reading import HASHED

Kind: TypeAlias = Literal["text", "binary", "added", "deleted", "mode", "link", "other"]
MAX_NAMED = 5
"""Conflicts in a sentence."""

TEXTS: dict[Kind, str] = {
    "text": "the same lines were changed meanwhile",
    "binary": "it was changed meanwhile, and is no text",
    "added": "it was added meanwhile with another content",
    "deleted": "one deleted it, and the other changed it",
    "mode": "its mode was changed meanwhile",
    "link": "it was changed meanwhile, and is or was a link",
    "other": "",
}
TOO_LARGE = "it is too large to be merged"


@prepare
class MergeConflict(msgspec.Struct, frozen=True, omit_defaults=True):
    """A path that stands in the way of a merge."""

    path: str
    kind: Kind
    text: str


@prepare
class Merged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a merge ended."""

    is_done: bool
    paths: tuple[str, ...] = ()
    """Written."""
    combined: tuple[str, ...] = ()
    """Of these, with what others changed meanwhile in the same file."""
    already: tuple[str, ...] = ()
    """As the job left them, before anything was written."""
    left_out: tuple[Unguarded, ...] = ()
    """New things that are neither file nor link, or cannot be read. In the job's folder only."""
    conflicts: tuple[MergeConflict, ...] = ()
    is_partial: bool = False
    """Somebody wrote at the same moment: what is written could not be taken back on all paths."""
    merge_id: str = ""

    def window(self, start: float, end: float) -> EditWindow:
        """For the attribution: what was written between these times was this job's, for certain."""
        return EditWindow(start=start, end=end, paths=self.paths, is_merge=True)

    @property
    def sentence(self) -> str:
        """Why nothing was merged; empty if it was."""
        if self.is_done:
            return ""
        named = [f"{code_label(each.path)} ({each.text})" for each in self.conflicts[:MAX_NAMED]]
        more = len(self.conflicts) - len(named)
        listed = ", ".join(named) + (f", and {more} more" if more > 0 else "")
        if self.is_partial:
            return f"The job's changes were merged in part, and could not be taken back: {listed}."
        return f"Nothing of the job's changes was merged, because they conflict: {listed}."


class Merges(TreeChanges):
    """The merges into one work tree, in a folder of their own: who lists rollbacks does not see them."""

    def merge(self, edits: Edits, shadow: Shadow, *, job_id: str = "", leave: Collection[str] = ()) -> Merged:
        """`shadow` is that of the tree. `leave` are paths that stay as they are, such as ones merged by hand.

        `TreeRefused` while a merge, a rebase or the like is in progress.
        """
        changes = {change.path: change for change in edits.changes if change.path not in leave}
        left_out = tuple(_special(changes))
        for item in left_out:
            del changes[item.path]
        with self.alone() as (facts, root):
            already = {
                path for path, change in changes.items() if _now(root, path, facts.algorithm) == change.after
            }
            returns = [
                Return(path, (Step(before=change.after, after=change.before),))
                for path, change in changes.items()
                if path not in already
            ]
            folders = Folders(edits.new_folders, frozenset(edits.removed_folders).__contains__)
            jobs = (job_id,) if job_id else ()
            source = JobSource(edits, shadow)
            outcome = self.apply(facts, root, returns, source, folders, may_merge=True, jobs=jobs)
            conflicts = tuple(
                _conflict(refusal, changes.get(refusal.path), root, facts.algorithm, source)
                for refusal in outcome.refused
            )
        return _merged(outcome, conflicts, tuple(sorted(already)), left_out)

    def of_job(self, job_id: str) -> Merged | None:
        """The merge of a job that was finished, perhaps by `recover` after a crash."""
        for record in self.records():
            if (
                job_id in record.journal.jobs
                and record.outcome is not None
                and record.outcome.ending == "done"
            ):
                return _merged(record.outcome, (), (), ())
        return None


def _merged(
    outcome: Outcome,
    conflicts: tuple[MergeConflict, ...],
    already: tuple[str, ...],
    left_out: tuple[Unguarded, ...],
) -> Merged:
    is_done = outcome.ending == "done"
    return Merged(
        is_done=is_done,
        paths=outcome.paths,
        combined=outcome.merged if is_done else (),
        already=already,
        left_out=left_out,
        conflicts=conflicts,
        is_partial=outcome.ending == "partial",
        merge_id=outcome.rollback_id,
    )


def _special(changes: Mapping[str, Change]) -> Iterator[Unguarded]:
    for path, change in changes.items():
        if change.after.kind == "other" and change.before.kind == "absent":
            yield Unguarded(path, change.after.fingerprint)


class JobSource:
    """Contents from the shadow; those of large files from the folder where the job's files lie."""

    def __init__(self, edits: Edits, shadow: Shadow) -> None:
        self._source = edits.source
        self._shadow = shadow
        self._large = {
            change.after.fingerprint: change.path
            for change in edits.changes
            if change.after.fingerprint.startswith(HASHED)
        }

    def has(self, state: PathState) -> bool:
        return bool(state.blob) or state.fingerprint in self._large

    def read(self, state: PathState) -> bytes:
        return self._shadow.read(state)

    def fill(self, states: Collection[PathState], writer: ContentWriter) -> None:
        for key, data in self._shadow.contents(state for state in states if state.blob):
            writer.add(key, (data,))
        for state in states:
            if not state.blob:
                writer.add(key_of(state), self._pieces(state))

    def _pieces(self, state: PathState) -> Iterator[bytes]:
        """`ContentGone` if it is not the same any more."""
        digest = hashlib.sha256()
        try:
            root = open_root(self._source)
            try:
                with place_of(root, self._large[state.fingerprint]) as place:
                    fd = open_file(*place)
            finally:
                os.close(root)
        except OSError as problem:
            raise ContentGone(state.fingerprint) from problem
        try:
            while piece := os.read(fd, CHUNK_BYTES):
                digest.update(piece)
                yield piece
        finally:
            os.close(fd)
        if f"{HASHED}{digest.hexdigest()}" != state.fingerprint:
            raise ContentGone(state.fingerprint)


# ── conflicts ──────────────────────────────────────────────────────────────


def _conflict(
    refusal: Refusal, change: Change | None, root: int, algorithm: str, source: JobSource
) -> MergeConflict:
    ours = _now(root, change.path, algorithm) if change is not None else None
    if refusal.why != "edited" or change is None or ours is None:
        text = TOO_LARGE if refusal.why in ("not kept", "too large") else WORDS[refusal.why]
        return MergeConflict(refusal.path, "other", f"{text}: {refusal.detail}" if refusal.detail else text)
    kind = kind_of(change.before, ours, change.after)
    if kind == "text" and any(_is_binary(state, source) for state in (change.before, change.after)):
        kind = "binary"
    return MergeConflict(change.path, kind, TEXTS[kind])


def kind_of(base: PathState, ours: PathState, theirs: PathState) -> Kind:
    """What two sides that cannot be merged have done to a path. Pure."""
    states = (base, ours, theirs)
    if any(state.kind == "link" for state in states):
        return "link"
    if base.kind == "absent":
        return "added"
    if "absent" in (ours.kind, theirs.kind):
        return "deleted"
    if any(state.kind != "file" or not state.blob for state in states):
        return "binary"
    modes = {state.mode for state in states}
    return "mode" if len(modes) == 3 or len({state.blob for state in states}) < 3 else "text"


def _is_binary(state: PathState, source: JobSource) -> bool:
    try:
        return b"\0" in source.read(state)
    except ContentGone:
        return True


def _now(root: int, path: str, algorithm: str) -> PathState | None:
    try:
        return at_path(root, path, algorithm)
    except (OSError, ValueError):
        return None  # a name that is git's, or no way there: the plan says so
