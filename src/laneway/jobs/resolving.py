"""Resolves a run: shows what its jobs did, accepts it, rolls back, reruns, undoes. `codex_resolve`. Blocking.

Nothing is written to a tree while a write job of it runs, and no job starts while something is written: the
tree's rollback lock, which the dispatcher looks at, is taken before anything is decided.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.errors import JobUnknown, UsageError
from laneway.base.plain import code_label
from laneway.base.prepare import prepare
from laneway.base.repo import find_repo
from laneway.jobs.attribution import PathClaim
from laneway.jobs.given_back import in_force
from laneway.jobs.model import Conflict, Run
from laneway.jobs.quiet_tree import finish_if_quiet, quiet_tree
from laneway.jobs.requests import real_path
from laneway.jobs.rollback.model import Outcome, Refusal
from laneway.jobs.rollback.three_way import merge, three_way
from laneway.jobs.rollback.wanted import wanted
from laneway.jobs.runs import Judged, TreeRuns
from laneway.jobs.service import LOCAL, Jobs, may_see
from laneway.jobs.snapshots.model import PathState

Action: TypeAlias = Literal["show", "accept", "rollback", "rerun", "undo"]
WRITING: tuple[Action, ...] = ("rollback", "rerun", "undo")
"""Actions that write to the work tree."""
MAX_DIFFS = 50
"""Of one answer; `paths` asks for others."""
MAX_DIFF_CHARS = 200_000
"""Of all of them together."""
SHARED_NOTE = (
    "In a shared tree, what a person saves to a file while a job's command changes it counts as the job's."
    " Whatever a rollback overwrites is stored first, and undo returns it."
)


@prepare
class Resolution(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The arguments of `codex_resolve`."""

    action: Action
    run: str | None = None
    cwd: str | None = None
    job_ids: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    merge: bool = False
    rollback_id: str | None = None


def resolve(jobs: Jobs, owner: str, request: Resolution) -> dict[str, Any]:
    """`UsageError` with one sentence for what cannot be done; nothing is written then."""
    if jobs.defaults.is_read_only and request.action in WRITING:
        raise UsageError(f"This server was started with --readonly: it does not {_verb(request.action)}.")
    run = _run_of(jobs, request)
    runs = TreeRuns(jobs.places, jobs.ledger, run.tree, jobs.defaults.codex_home)
    finish_if_quiet(runs)
    judged = runs.judge(run)
    _check_owner(judged, owner)
    unknown = set(request.job_ids) - {job.job_id for job in judged.jobs}
    if unknown:
        raise UsageError(f"Job {code_label(min(unknown))} is none of run {run.run_id}.")
    request = _with_known_paths(request, judged, real_path(request.cwd, jobs.defaults))
    if request.action == "show":
        return _show(runs, judged, request)
    if request.action == "accept":
        _check_all_ended(judged)
    with quiet_tree(jobs.places, jobs.ledger, runs):
        # Only now nobody else accepts it or rolls it back, and no job of it begins or ends.
        judged = runs.judge(jobs.runs.get(run.run_id) or run)
        match request.action:
            case "accept":
                return _accept(jobs, runs, judged, request)
            case "rollback":
                return _roll_back(jobs, runs, judged, request)
            case "rerun":
                return _rerun(jobs, runs, judged, request, owner)
            case "undo":
                return _undo(jobs, runs, judged, request)


# ── which run, and whose ───────────────────────────────────────────────────


def _run_of(jobs: Jobs, request: Resolution) -> Run:
    if request.run is not None:
        run = jobs.runs.get(request.run)
        if run is None:
            raise UsageError(f"There is no run {code_label(request.run)}.")
        return run
    folder = real_path(request.cwd, jobs.defaults)  # as the jobs of a run were given theirs
    repo = find_repo(Path(folder))
    if repo is None:
        raise UsageError(f"{code_label(folder)} is not in a git repository: name a run, or another cwd.")
    tree = str(repo.root)
    run = jobs.runs.open_run(tree)
    if run is None and request.action in ("undo", "show"):
        run = jobs.runs.last_run(tree)
    if run is None:
        what = _verb(request.action)
        last = jobs.runs.last_run(tree)
        ended = (
            f" Its last run, {last.run_id}, is {last.state.replace('_', ' ')}." if last is not None else ""
        )
        raise UsageError(f"{code_label(tree)} has no open run: there is nothing to {what}.{ended}")
    return run


def _verb(action: Action) -> str:
    return "roll back" if action == "rollback" else action


def _check_owner(judged: Judged, owner: str) -> None:
    """A run is a matter of all whose jobs are in it."""
    for job in judged.jobs:
        if not may_see(job, owner):
            raise JobUnknown(judged.run.run_id if owner != LOCAL else job.job_id)


def _with_known_paths(request: Resolution, judged: Judged, folder: str) -> Resolution:
    """With paths as the run knows them: named as they were told, or as they are from the caller's folder."""
    is_accept = request.action == "accept"
    known = {each.path for each in (judged.conflicts if is_accept else judged.credits.claims)}
    what = "is not in conflict in this run." if is_accept else "was changed by no job of this run."

    def found(name: str) -> str:
        if name == os.curdir:  # names no path: another machine asks so for a run without its differences
            return name
        path = _known_path(name, known, judged.run.tree, folder)
        if path is None:
            raise UsageError(f"{code_label(name)} {what}")
        return path

    return msgspec.structs.replace(
        request, paths=tuple(map(found, request.paths)), resolved=tuple(map(found, request.resolved))
    )


def _known_path(name: str, known: Collection[str], tree: str, folder: str) -> str | None:
    if name in known:
        return name
    if "\0" in name:
        return None
    above, own = os.path.split(os.path.join(folder, name))
    meant = os.path.relpath(os.path.join(os.path.realpath(above), own), tree)
    return meant if meant in known else None


# ── show and accept ────────────────────────────────────────────────────────


def _show(runs: TreeRuns, judged: Judged, request: Resolution) -> dict[str, Any]:
    run = judged.run
    chosen = request.job_ids or tuple(job.job_id for job in judged.jobs)
    conflicts = [each for each in judged.conflicts if set(each.jobs) & set(chosen)]
    return {
        "run": run.run_id,
        "state": run.state,
        "tree": run.tree,
        "head": run.head,
        "jobs": [
            {
                "jobId": job.job_id,
                "status": job.status,
                "title": job.title,
                "modifiedFiles": msgspec.to_builtins(judged.modified(job.job_id)),
                **({"isRolledBack": True} if job.job_id in judged.rolled_back else {}),
            }
            for job in judged.jobs
            if job.job_id in chosen
        ],
        "conflicts": [msgspec.to_builtins(each) for each in conflicts],
        "changedByOthers": list(judged.credits.others),
        "unguarded": runs.baseline(run).unguarded,
        "rollbacks": [
            {
                "rollbackId": each.journal.rollback_id,
                "jobs": list(each.journal.jobs),
                "undoes": each.journal.undoes,
            }
            for each in runs.rollbacks.records()
            if set(each.journal.jobs) & set(chosen)
        ],
        "diffs": _diffs(runs, judged, conflicts, request.paths, chosen),
        **({"note": SHARED_NOTE} if _is_shared(judged, chosen) else {}),
    }


def _is_shared(judged: Judged, chosen: Collection[str]) -> bool:
    """Whether one of these jobs is credited with what it may have shared with a person."""
    shared = {job.job_id for job in judged.jobs if job.isolation == "shared" and job.job_id in chosen}
    return any(claim.job_id in shared for claim in judged.credits.claims)


def _diffs(
    runs: TreeRuns, judged: Judged, conflicts: list[Conflict], paths: tuple[str, ...], chosen: Collection[str]
) -> list[dict[str, Any]]:
    """Of conflicts what each two jobs made of the path; of other paths what the job changed."""
    asked = paths or tuple(dict.fromkeys(conflict.path for conflict in conflicts))
    ages = {job.job_id: job.number for job in judged.jobs}
    shown: list[dict[str, Any]] = []
    chars = 0
    for path in asked[:MAX_DIFFS]:
        claims = [claim for claim in judged.credits.claims if claim.path == path and claim.job_id in chosen]
        if not claims:
            continue
        claims.sort(key=lambda claim: (claim.spans[0].interval, ages[claim.job_id]))
        one, other = claims[0], claims[1] if len(claims) > 1 else claims[0]
        versions = _three_versions(runs, one, other)
        compared = three_way(path, *versions, labels=("before", one.job_id, other.job_id))
        facts: dict[str, Any] = msgspec.to_builtins(compared)
        if _are_one_change(one, other):
            made_by = [one.job_id] if one is other else [one.job_id, other.job_id]
            facts = {"path": path, "jobs": made_by, "diff": compared.one, "isBinary": compared.is_binary}
        else:
            facts |= {"jobs": [one.job_id, other.job_id]}
        chars += sum(len(value) for value in facts.values() if isinstance(value, str))
        if chars > MAX_DIFF_CHARS and shown:
            break
        shown.append(facts)
    return shown


def _are_one_change(one: PathClaim, other: PathClaim) -> bool:
    """Whether what the two made of the path lies between the same snapshots: who made what is not known."""
    return [span.interval for span in one.spans] == [span.interval for span in other.spans]


def _three_versions(runs: TreeRuns, one: PathClaim, other: PathClaim) -> tuple[bytes | None, ...]:
    """What was there before, and what each of the two made of that."""
    states = one.spans[0].before, one.spans[-1].after, other.spans[-1].after
    before, first, second = (_content(runs, state) for state in states)
    if other.spans[0].before == one.spans[-1].after and None not in (before, first, second):
        # It found the edits of the first one there: they are not its own.
        alone = merge(first or b"", before or b"", second or b"")
        second = second if alone is None else alone
    return before, first, second


def _content(runs: TreeRuns, state: PathState) -> bytes | None:
    return runs.shadow.read(state) if state.blob else None


def _accept(jobs: Jobs, runs: TreeRuns, judged: Judged, request: Resolution) -> dict[str, Any]:
    run = judged.run
    if run.state != "open":
        raise UsageError(f"Run {run.run_id} is {run.state.replace('_', ' ')} already.")
    _check_all_ended(judged)
    jobs.runs.set_resolved(run.run_id, request.resolved)
    judged = runs.judge(run)
    blocking = [each for each in judged.conflicts if each.blocks]
    if blocking:
        return {
            "run": run.run_id,
            "accepted": False,
            "conflicts": [msgspec.to_builtins(each) for each in blocking],
            "text": "These paths were changed by two jobs that ran at the same time: merge them by hand and"
            " name them in `resolved`, or roll back.",
        }
    jobs.runs.close(run.run_id, "accepted")
    return {"run": run.run_id, "accepted": True}


def _check_all_ended(judged: Judged) -> None:
    for job in judged.jobs:
        if not job.has_ended:
            raise UsageError(f"Job {job.job_id} of this run has not ended: wait for it, or cancel it.")


# ── rollback, rerun, undo ──────────────────────────────────────────────────


def _roll_back(jobs: Jobs, runs: TreeRuns, judged: Judged, request: Resolution) -> dict[str, Any]:
    run = judged.run
    all_of_it = tuple(job.job_id for job in judged.jobs if job.job_id not in judged.rolled_back)
    if not all_of_it and not request.job_ids and run.state != "open":
        raise UsageError(f"Run {run.run_id} was rolled back already: undo gives its edits back.")
    chosen = request.job_ids or all_of_it
    asked = wanted(judged.credits.claims, chosen, despite=request.resolved)
    if asked.refused:
        return _outcome_json(run, Outcome(ending="refused", refused=asked.refused), asked.left)
    with runs.gate():
        folders = runs.shadow.folders(runs.baseline(run))
        outcome = runs.rollbacks.roll_back(
            asked.returns, runs.shadow, folders, may_merge=request.merge, jobs=chosen
        )
    if outcome.ending == "done" and run.state == "open":
        if set(all_of_it) <= set(chosen):
            jobs.runs.close(run.run_id, "rolled_back")
        else:
            runs.add_quiet_border(run)
    return _outcome_json(run, outcome, asked.left)


def _rerun(jobs: Jobs, runs: TreeRuns, judged: Judged, request: Resolution, owner: str) -> dict[str, Any]:
    """Roll the jobs back and queue them again, one behind the other."""
    conflicting = {job_id for conflict in judged.conflicts if conflict.blocks for job_id in conflict.jobs}
    chosen = request.job_ids or tuple(job.job_id for job in judged.jobs if job.job_id in conflicting)
    if not chosen:
        raise UsageError("This run has no conflict: name the jobs that are to run again in jobIds.")
    for job in judged.jobs:  # before anything is written: each can be started again
        if job.job_id in chosen:
            jobs.check_again(job)
    answer = _roll_back(jobs, runs, judged, msgspec.structs.replace(request, job_ids=chosen))
    if answer["ending"] != "done":
        return answer
    again: dict[str, str] = {}
    last = ""
    for job in judged.jobs:
        if job.job_id in chosen:
            last = again[job.job_id] = jobs.again(job, owner, after=last).job_id
    return {**answer, "jobs": [{"was": old, "jobId": new} for old, new in again.items()]}


def _undo(jobs: Jobs, runs: TreeRuns, judged: Judged, request: Resolution) -> dict[str, Any]:
    run = judged.run
    rollback_id = request.rollback_id or _last_rollback(runs, judged)
    outcome = runs.rollbacks.undo(rollback_id, may_merge=request.merge)
    if outcome.ending == "done":
        is_open = run.state == "open" or jobs.runs.reopen(run.run_id)
        if is_open:
            runs.add_quiet_border(run)
    return _outcome_json(run, outcome, ())


def _last_rollback(runs: TreeRuns, judged: Judged) -> str:
    ours = {job.job_id for job in judged.jobs}
    for journal in reversed(in_force(runs.rollbacks.records())):
        if ours.intersection(journal.jobs) and not journal.attempt_borders:
            return journal.rollback_id
    raise UsageError(f"Run {judged.run.run_id} was not rolled back: there is nothing to undo.")


def _outcome_json(run: Run, outcome: Outcome, left: tuple[Refusal, ...]) -> dict[str, Any]:
    return {
        "run": run.run_id,
        "ending": outcome.ending,
        "rollbackId": outcome.rollback_id,
        "paths": list(outcome.paths),
        "merged": list(outcome.merged),
        "refused": [_refusal_json(each) for each in outcome.refused],
        "left": [_refusal_json(each) for each in left],
    }


def _refusal_json(refusal: Refusal) -> dict[str, str]:
    return {"path": refusal.path, "why": refusal.text}
