"""The decisions about jobs: order, capacity, scopes, retries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.jobs.model import Job, JobLimits, Mode
from laneway.jobs.rules import blocks, decide, has_room, intersect, may_retry, status_of_end

LIMITS = JobLimits(read=2, write=1, total=3)


def job(number: int, mode: str = "read", **more: Any) -> Job:
    facts: dict[str, Any] = {
        "job_id": f"job-{number}",
        "number": number,
        "owner": "me",
        "mode": mode,
        "status": "queued",
        "tree": "/repo" if mode == "write" else "",
    }
    return Job(**(facts | more))


def started(queue: list[Job], active: list[Job] | None = None, limits: JobLimits = LIMITS) -> list[int]:
    return [each.number for each in decide(queue, active or [], limits).start]


@pytest.mark.covers("J-supervision.6")
def test_jobs_start_by_priority_and_then_by_age() -> None:
    """The order in which they were read does not matter."""
    assert started([job(3), job(2), job(1, priority=-1)]) == [2, 3]
    assert started([job(1), job(2), job(3, priority=5)]) == [3, 1]


@pytest.mark.covers("004-bounds.1")
def test_each_mode_has_its_own_capacity_and_both_have_a_total() -> None:
    """A full mode holds up no job of the other one."""
    queue = [job(1), job(2), job(3), job(4, "write"), job(5, "write")]
    decision = decide(queue, [], LIMITS)
    assert [each.number for each in decision.start] == [1, 2, 4]
    assert decision.waits == {"job-3": "capacity", "job-5": "total"}
    assert started(queue, [job(0, status="running")], JobLimits(read=8, write=2, total=2)) == [1]


def test_a_job_waits_for_the_one_that_it_follows() -> None:
    """Queued or running; one that is not there any more has ended."""
    follower = job(2, after="job-1")
    assert decide([job(1), follower], [], LIMITS).waits == {"job-2": "after"}
    assert decide([follower], [job(1, status="running")], LIMITS).waits == {"job-2": "after"}
    assert started([follower]) == [2]


def test_two_jobs_never_go_on_with_one_thread_at_once() -> None:
    """Two follow-ups that were asked for at the same moment are both behind the same job, or behind none."""
    both = [job(2, after="job-1"), job(3, after="job-1")]
    assert decide(both, [], LIMITS).waits == {"job-3": "after"}
    running = job(1, thread_id="t", status="running")
    assert decide([job(2, thread_id="t"), job(3, thread_id="u")], [running], LIMITS).waits == {
        "job-2": "after"
    }


def test_jobs_in_a_tree_and_in_one_inside_it_never_run_at_once() -> None:
    """Neither could tell its own edits from the other's, whatever its scope says; nor could a rollback."""
    wide = JobLimits(read=8, write=8, total=16)
    outer, inner = job(1, "write", tree="/repo"), job(2, "write", tree="/repo/lib", overlaps=True)
    assert decide([outer, inner], [], wide).waits == {"job-2": "scope"}
    assert decide([outer], [inner], wide).waits == {"job-1": "scope"}
    assert started([outer, job(2, "write", tree="/repo-lib")], limits=wide) == [1, 2]
    assert decide([inner], [], wide, busy_trees={"/repo"}).waits == {"job-2": "rollback"}
    assert decide([outer], [], wide, busy_trees={"/repo/lib"}).waits == {"job-1": "rollback"}


modes = st.sampled_from(["read", "write"])
numbers = st.integers(0, 4)


@given(st.lists(modes), st.lists(modes), st.builds(JobLimits, read=numbers, write=numbers, total=numbers))
def test_there_is_room_if_and_only_if_a_job_without_obstacles_would_start(
    waiting: list[Mode], running: list[Mode], limits: JobLimits
) -> None:
    """So a queue that is not read because there is no room has nothing to start."""
    active = [job(number, mode, status="running") for number, mode in enumerate(running)]
    queue = [job(100 + number, mode) for number, mode in enumerate(waiting)]
    assert has_room(frozenset(waiting), active, limits) == bool(decide(queue, active, limits).start)


@pytest.mark.covers("J-a2.21")
def test_scopes_that_intersect_queue_behind_each_other_unless_they_may_overlap() -> None:
    """Only in one tree, and only where both declare something."""
    wide = JobLimits(read=8, write=8, total=16)
    src = job(1, "write", scope=("src/**",))
    inside = job(2, "write", scope=("src/a.py",))
    assert decide([src, inside], [], wide).waits == {"job-2": "scope"}
    assert decide([inside], [src], wide).waits == {"job-2": "scope"}
    for other in (
        job(2, "write", scope=("docs/**",)),
        job(2, "write"),
        job(2, "write", scope=("src/a.py",), tree="/other"),
        job(2, "write", scope=("src/a.py",), overlaps=True),
    ):
        assert started([src, other], limits=wide) == [1, 2]


def test_a_job_with_a_wide_scope_is_not_overtaken_for_ever() -> None:
    """Whoever comes later in the same scope waits behind it, although the running job would allow it."""
    wide = JobLimits(read=8, write=8, total=16)
    running = job(1, "write", scope=("src/a.py",), status="running")
    all_of_it = job(2, "write", scope=("**",))
    later = job(3, "write", scope=("src/b.py",))
    assert decide([all_of_it, later], [running], wide).waits == {"job-2": "scope", "job-3": "scope"}


def test_nothing_starts_in_a_tree_that_is_being_rolled_back() -> None:
    decision = decide([job(1, "write"), job(2)], [], LIMITS, busy_trees={"/repo"})
    assert ([each.number for each in decision.start], decision.waits) == ([2], {"job-1": "rollback"})


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (["src"], ["src/a.py"], True),
        (["src/a.py"], ["src"], True),
        (["src/a.py"], ["src/a.pyc"], False),
        (["src/*.py"], ["src/a.py"], True),
        (["src/*.py"], ["src/*.md"], False),
        (["src/**/x"], ["src/deep/y"], True),
        (["docs", "src/a"], ["lib", "src/a/b"], True),
        (["a*"], ["*b"], True),
        (["[ab].py"], ["a.py"], True),
        ([], ["src"], False),
        (["./src/"], ["src"], True),
    ],
)
def test_scopes_intersect_if_some_path_may_be_in_both(
    one: list[str], other: list[str], expected: bool
) -> None:
    """Where patterns cannot be told apart, they are taken to meet."""
    assert intersect(one, other) is expected
    assert intersect(other, one) is expected


names = st.text(alphabet="ab.", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
patterns = st.lists(
    st.one_of(names, st.sampled_from(["*", "**", "a*", "*b", "?", "[ab]"])), min_size=1, max_size=3
)


@pytest.mark.covers("J-a2.21")
@given(st.lists(names, min_size=1, max_size=3), patterns, patterns)
def test_two_scopes_that_match_one_path_always_intersect(
    path: list[str], one: list[str], other: list[str]
) -> None:
    """The function may say yes too often, never no."""
    import re

    def matches(pattern: list[str]) -> bool:
        expression = "/".join(pattern)
        regex = re.escape(expression).replace(r"\*\*", ".*").replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
        regex = regex.replace(r"\[ab\]", "[ab]")
        return re.fullmatch(rf"{regex}(/.*)?", "/".join(path)) is not None

    if matches(one) and matches(other):
        assert intersect(["/".join(one)], ["/".join(other)])


def test_read_jobs_and_isolated_pairs_never_block_each_other() -> None:
    read = job(1)
    assert not blocks(read, read)
    alone = job(2, "write", scope=("a",), isolation="worktree")
    other = job(3, "write", scope=("a",), isolation="overlay")
    assert not blocks(alone, other)
    assert blocks(alone, job(4, "write", scope=("a",)))


def test_only_some_failures_are_tried_again_and_only_so_often() -> None:
    assert may_retry("turn", 1, 1)
    assert not may_retry("turn", 2, 1)
    for kind in ("budget", "cancelled", "wall", "launch", "lost"):
        assert not may_retry(kind, 1, 5)


@pytest.mark.covers("J-tools.5")
def test_the_kind_of_failure_decides_the_status() -> None:
    assert [status_of_end(kind) for kind in (None, "turn", "cancelled", "wall", "stall", "lost", "new")] == [
        "succeeded",
        "failed",
        "cancelled",
        "timed_out",
        "timed_out",
        "lost",
        "failed",
    ]
