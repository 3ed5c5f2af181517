"""Coverage-guided fuzzing of everything that parses foreign bytes: `make fuzz`.

Runs each target of `tests/fuzz/targets.py` in a process of its own for `--seconds`,
guided by atheris (fetched by the system's pip into `.peers/atheris` by `--fetch`). Without
atheris, hypothesis takes over, unguided, and a line says so. A find is stored under
`tests/fuzz/finds/<target>/`, where the test suite replays it, and makes the exit code 1.
The corpus stays in `.stamps/fuzz` for the next run.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ATHERIS = ROOT / ".peers" / "atheris"
FINDS = ROOT / "tests" / "fuzz" / "finds"
CORPUS = ROOT / ".stamps" / "fuzz"
MAX_INPUT_BYTES = 4096
"""Long enough for a handful of messages; longer input only makes each run slower."""
SLOW_S = 10
"""One input that takes longer than this is a find."""
RSS_MB = 2048
"""Memory of the whole process past which an input is a find."""

MAX_OUTPUT_CHARS = 4000
"""Of a target's output, when it has found something."""


def main() -> int:
    options = _options()
    if options.fetch:
        return fetch()
    sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ATHERIS)]
    logging.getLogger("laneway").setLevel(
        logging.ERROR
    )  # a warning for each input would take most of the time
    if options.inside:
        return fuzz_target(options.inside, options.seconds)
    if not importlib.util.find_spec("atheris"):
        print("atheris is not here: hypothesis fuzzes instead, without guidance by coverage", flush=True)
    from tests.fuzz.targets import TARGETS

    names = options.targets or list(TARGETS)
    print(f"{'target':<12}{'executions':>12}{'per second':>12}{'finds':>7}", flush=True)
    return 1 if sum(run_target(name, options.seconds) for name in names) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fuzz what reads foreign bytes.")
    parser.add_argument("targets", nargs="*", help="names of targets; all of them if none is given")
    parser.add_argument("--seconds", type=int, default=20, help="for each target (default 20)")
    parser.add_argument("--fetch", action="store_true", help="only bring atheris")
    parser.add_argument("--inside", metavar="TARGET", help=argparse.SUPPRESS)
    return parser.parse_args()


def fetch() -> int:
    """Fetch atheris, once. Failing to is no error: fuzzing works without it."""
    if not (ATHERIS / "atheris").is_dir():
        words = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(ATHERIS), "atheris"]
        subprocess.run(words, check=False)
    return 0


def run_target(name: str, seconds: int) -> int:
    """Run one target in a process of its own; return how many finds it left."""
    from tests.fuzz.targets import durable

    before = set(FINDS.glob(f"{name}/*"))
    (FINDS / name).mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    words = [sys.executable, str(Path(__file__)), "--inside", name, "--seconds", str(seconds)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, errors="replace")
    took_s = time.monotonic() - started
    stats = re.search(r"stat::number_of_executed_units: (\d+)", done.stderr)
    count = int(stats[1]) if stats else 0
    finds = sorted(set(FINDS.glob(f"{name}/*")) - before)
    print(f"{name:<12}{count:>12}{count / took_s:>12.0f}{len(finds):>7}", flush=True)
    if done.returncode or finds:
        print(done.stdout[-MAX_OUTPUT_CHARS:] or done.stderr[-MAX_OUTPUT_CHARS:], flush=True)
    for find in finds:
        find.write_bytes(durable(name, find.read_bytes()))
        print(f"found: {find.relative_to(ROOT)}", flush=True)
    if not any((FINDS / name).iterdir()):
        (FINDS / name).rmdir()
    return len(finds) or int(done.returncode != 0)


def fuzz_target(name: str, seconds: int) -> int:
    if not importlib.util.find_spec("atheris"):
        return by_hypothesis(name, seconds)
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["laneway"]):
        from tests.fuzz.targets import TARGETS
    from tests.fuzz.seeds import seeds

    corpus = CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds(name):
            # Traces are longer than one input may be, so they are cut.
            for at in range(0, len(seed), MAX_INPUT_BYTES):
                part = seed[at : at + MAX_INPUT_BYTES]
                (Path(folder) / hashlib.sha1(part).hexdigest()).write_bytes(part)
        words = [
            sys.argv[0],
            f"-max_total_time={seconds}",
            f"-max_len={MAX_INPUT_BYTES}",
            f"-timeout={SLOW_S}",
            f"-rss_limit_mb={RSS_MB}",
            f"-artifact_prefix={FINDS / name}{os.sep}",
            "-print_final_stats=1",
            str(corpus),
            folder,
        ]
        atheris.Setup(words, TARGETS[name])
        atheris.Fuzz()  # ends the process itself
    return 0


def by_hypothesis(name: str, seconds: int) -> int:
    """Fuzz without guidance: random bytes and random changes of the seeds, until the time is over."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
    from tests.fuzz.seeds import seeds
    from tests.fuzz.targets import TARGETS

    ends = time.monotonic() + seconds
    runs = 0
    changes = st.lists(st.tuples(st.integers(0, MAX_INPUT_BYTES), st.binary(max_size=8)), max_size=8)

    @settings(
        max_examples=1000,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(st.just(b""), st.sampled_from(seeds(name))), changes, st.binary(max_size=200))
    def one_round(seed: bytes, changed: list[tuple[int, bytes]], suffix: bytes) -> None:
        nonlocal runs
        data = seed[:MAX_INPUT_BYTES]
        for at, piece in changed:
            data = data[:at] + piece + data[at + len(piece) :]
        runs += 1
        try:
            TARGETS[name](data + suffix)
        except Exception:
            traceback.print_exc()
            (FINDS / name / f"crash-{hashlib.sha1(data + suffix).hexdigest()}").write_bytes(data + suffix)
            raise

    try:
        while time.monotonic() < ends:
            one_round()
    finally:
        print(f"stat::number_of_executed_units: {runs}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
