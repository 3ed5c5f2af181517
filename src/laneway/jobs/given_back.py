"""Which rollbacks are in force, and which edits are credited to the jobs of a run after them. Pure.

A job that was rolled back after its end keeps its credits: they say what an undo would return. Of a job
that went on, since only a failed attempt's edits were given back, the credits of that attempt are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from laneway.jobs.attribution import CERTAINTIES, Credits, PathClaim
from laneway.jobs.rollback.changes import RollbackRecord
from laneway.jobs.rollback.model import RollbackJournal


def in_force(records: Sequence[RollbackRecord]) -> tuple[RollbackJournal, ...]:
    """Rollbacks that were carried out and not taken back since: the oldest first, no undoing ones."""
    undone: set[str] = set()
    found: list[RollbackJournal] = []
    for record in reversed(records):
        journal = record.journal
        if record.outcome is None or record.outcome.ending != "done" or journal.rollback_id in undone:
            continue
        if journal.undoes:
            undone.add(journal.undoes)
        else:
            found.append(journal)
    return tuple(reversed(found))


def rolled_back(journals: Iterable[RollbackJournal]) -> frozenset[str]:
    """Jobs whose edits were given back after their ends."""
    return frozenset(job_id for journal in journals if not journal.attempt_borders for job_id in journal.jobs)


def without_failed_attempts(found: Credits, journals: Iterable[RollbackJournal]) -> Credits:
    """The credits without those of attempts whose edits were given back."""
    until: dict[str, int] = {}
    for journal in journals:
        if journal.attempt_borders:
            until |= dict.fromkeys(journal.jobs, journal.attempt_borders - 1)
    if not until:
        return found
    claims = (
        _after(claim, until[claim.job_id]) if claim.job_id in until else claim for claim in found.claims
    )
    return Credits(tuple(claim for claim in claims if claim.spans), found.others)


def _after(claim: PathClaim, interval: int) -> PathClaim:
    spans = tuple(span for span in claim.spans if span.interval >= interval)
    certainty = min((span.certainty for span in spans), key=CERTAINTIES.index, default=claim.certainty)
    return msgspec.structs.replace(claim, spans=spans, certainty=certainty)
