"""Finds tests that fail only sometimes: `make flakes`.

Runs the suite again and again in random order, with twice the usual workers and two busy processes
beside it. The log of a round that failed is kept under `.stamps/flakes`; at the end a table says which
test failed in how many rounds, and with which seeds. Exit code 1 if any did.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / ".stamps" / "flakes"
BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"
"""Until we are gone, however that comes about."""
BUSY_PROCESSES = 2
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py(?:::\w+)*(?:\[.*?\])?)(?: - .*)?$", re.MULTILINE)
"""A line of pytest's summary. An id may contain blanks; what follows it begins with a dash."""
COUNTS = re.compile(r"^=*\s*((?:\d+ \w+,? ?)+) in [\d.]+s", re.MULTILINE)
WHOLE_RUN = "(the run itself)"
"""The name for a failed round without a failed test: pytest could not start, or left files behind."""


@dataclass(frozen=True, slots=True)
class Round:
    seed: int
    failed: tuple[str, ...]
    """The ids of failed tests."""


def main() -> int:
    options = _options()
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    with busy(BUSY_PROCESSES):
        rounds = [run_round(number, options) for number in range(1, options.rounds + 1)]
    print(table(rounds))
    return 1 if any(each.failed for each in rounds) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the tests again and again under load.")
    parser.add_argument(
        "tests", nargs="*", help="files, folders or ids of tests; all of them if none is given"
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=8)
    return parser.parse_args()


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that want a whole core each."""
    hogs = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", BUSY, str(os.getpid())]) for _ in range(count)
    ]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def run_round(number: int, options: argparse.Namespace) -> Round:
    """One run of the tests. Its log stays only if something failed."""
    seed = random.randrange(2**32)
    log = LOGS / f"round-{number}-seed-{seed}.txt"
    words = ["-m", "pytest", "-q", "-n", str(options.workers), f"--randomly-seed={seed}", *options.tests]
    began = time.monotonic()
    with log.open("wb") as file:
        code = subprocess.run(
            [sys.executable, *words], cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, check=False
        ).returncode
    text = log.read_text(errors="replace")
    result = Round(seed, failures(text, code))
    took_s = time.monotonic() - began
    print(f"round {number} of {options.rounds}, seed {seed}: {summary(text)}, {took_s:.0f} s", flush=True)
    if result.failed:
        print("".join(f"  {test}\n" for test in result.failed) + f"  {log.relative_to(ROOT)}", flush=True)
    else:
        log.unlink()
    return result


# ── pure ───────────────────────────────────────────────────────────────────


def failures(text: str, code: int) -> tuple[str, ...]:
    """The ids of the failed tests, from pytest's output and exit code."""
    named = tuple(dict.fromkeys(FAILED.findall(text)))
    return named or ((WHOLE_RUN,) if code else ())


def summary(text: str) -> str:
    """How many passed, failed and were skipped, in pytest's own words."""
    counts = COUNTS.findall(text)
    return counts[-1] if counts else "no tests"


def table(rounds: Sequence[Round]) -> str:
    """A line per test that failed, the most frequent first."""
    seeds: dict[str, list[int]] = {}
    for each in rounds:
        for test in each.failed:
            seeds.setdefault(test, []).append(each.seed)
    clean = sum(not each.failed for each in rounds)
    lines = [f"{clean} of {len(rounds)} rounds without a failure"]
    width = max(map(len, ("test", *seeds)))
    if seeds:
        lines.append(f"{'test':<{width}}  rounds  seeds")
    for test, test_seeds in sorted(seeds.items(), key=lambda item: (-len(item[1]), item[0])):
        lines.append(f"{test:<{width}}  {len(test_seeds):>6}  {' '.join(map(str, test_seeds))}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
