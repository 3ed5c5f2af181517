"""Random edits by several jobs and a person: what is certain is true, and a rollback is exact.

The person edits other paths than the jobs, while no command is under way. (In a tree that is shared,
what a person saves during a job's command, or on a path that is credited to it, looks like the job's.)
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from laneway.jobs.attribution import Credits
from laneway.jobs.rollback.model import Outcome
from laneway.jobs.rollback.wanted import wanted
from tests.jobs.players import PERSON, Game
from tests.jobs.trees import Thing

GAMES = 150 if os.environ.get("LANEWAY_CHAOS") else 4
MOVES = 14
SURE = ("overlay", "patch", "alone")


def play(root: Path, seed: int) -> Game:
    """A run of three jobs, one of them in a layer of its own, and a person."""
    game = Game(root, seed)
    chance = game.chance
    waiting = ["C", "B", "A"]
    game.begin(waiting.pop())
    for _ in range(MOVES):
        active = sorted(game.borders[-1][1])
        if waiting and chance.random() < 0.25:
            name = waiting.pop()
            game.begin(name, is_merging=name == "C")
        elif len(active) > 1 and chance.random() < 0.15:
            game.end(chance.choice(active))
        elif chance.random() < 0.25:
            game.person_edits()
        else:
            game.job_edits(chance.choice(active))
    for name in sorted(game.borders[-1][1]):
        game.end(name)
    return game


def check_credits(game: Game, found: Credits, where: str) -> None:
    """What is certain is true; nothing of the person's is credited, nothing of the jobs' is missed."""
    for claim in found.claims:
        if claim.certainty in SURE:
            assert (claim.job_id, claim.path) in game.edits, (where, claim)
    now = game.files()
    changed = {path for path in {*now, *game.baseline} if game.baseline.get(path) != now.get(path)}
    jobs, person = game.edited_by("A", "B", "C"), game.edited_by(PERSON)
    claimed = {claim.path for claim in found.claims}
    assert changed & jobs <= claimed, where
    assert set(found.others) <= person, where
    assert changed & person <= {*found.others, *guessed(found)}, where


def guessed(found: Credits) -> set[str]:
    """Paths of which nothing is certain."""
    return {claim.path for claim in found.claims if claim.certainty not in SURE}


def roll_back(game: Game, found: Credits, jobs: set[str]) -> tuple[Outcome, set[str], set[str]]:
    """The outcome; which paths were to be given back, and which were left for lack of certainty."""
    shall = wanted(found.claims, jobs)
    paths = {item.path for item in shall.returns}
    if shall.refused:
        return Outcome(ending="refused", refused=shall.refused), paths, set()
    shadow = game.tree.shadow
    folders = shadow.folders(game.borders[0][0])
    outcome = game.tree.rollbacks.roll_back(shall.returns, shadow, folders, may_merge=True)
    return outcome, paths, {item.path for item in shall.left}


def expected(now: dict[str, Thing], baseline: dict[str, Thing], given_back: set[str]) -> dict[str, Thing]:
    """The baseline on these paths, and everything else as it was."""
    rest = {path: thing for path, thing in now.items() if path not in given_back}
    return {**rest, **{path: baseline[path] for path in given_back if path in baseline}}


@pytest.mark.covers("J-a2.1", "J-a2.11", "J-a2.20", "J-proof.1")
@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_run_that_is_rolled_back_is_the_baseline_and_the_persons_work(tmp_path: Path) -> None:
    """And an undo gives back every byte."""
    done = 0
    for number in range(GAMES):
        seed = random.randrange(2**32)
        where = f"seed {seed}"
        game = play(tmp_path / str(number), seed)
        found = game.credits()
        check_credits(game, found, where)
        now = game.files()
        outcome, paths, left = roll_back(game, found, {"A", "B", "C"})
        if outcome.ending == "refused":  # a guess that is wrong, and would have cost the person's files
            assert {refusal.path for refusal in outcome.refused} <= guessed(found), (where, outcome)
            assert game.files() == now, where
            continue
        done += 1
        assert outcome.ending == "done", (where, outcome)
        assert game.files() == expected(now, game.baseline, paths - left), where
        if outcome.rollback_id:
            assert game.tree.rollbacks.undo(outcome.rollback_id).ending == "done", where
        assert game.files() == now, where
    assert done > (GAMES * 0.8 if GAMES >= 50 else 0), "hardly any is refused"


@pytest.mark.covers("J-a2.19", "J-proof.1")
@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_one_job_that_is_rolled_back_takes_nothing_of_the_others_with_it(tmp_path: Path) -> None:
    """Either it is refused and nothing is written, or what others did is there, byte for byte."""
    done = 0
    for number in range(GAMES):
        seed = random.randrange(2**32)
        game = play(tmp_path / str(number), seed)
        found = game.credits()
        now = game.files()
        job = game.chance.choice(sorted(game.players))
        where = f"seed {seed}, job {job}"
        outcome, paths, left = roll_back(game, found, {job})
        then = game.files()
        if outcome.ending == "refused":
            assert then == now, where
            continue
        done += 1
        others = game.edited_by(*({"A", "B", "C", PERSON} - {job}))
        alone = (game.edited_by(job) & paths) - others - left - guessed(found)
        assert {path: then.get(path) for path in alone} == {
            path: game.baseline.get(path) for path in alone
        }, where
        untouched = {*now, *then} - game.edited_by(job) - guessed(found)
        assert {path: then.get(path) for path in untouched} == {path: now.get(path) for path in untouched}, (
            where
        )
        if outcome.rollback_id:
            assert game.tree.rollbacks.undo(outcome.rollback_id).ending == "done", where
        assert game.files() == now, where
    assert done > 0 or GAMES < 50
