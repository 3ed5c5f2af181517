"""Benchmark of start-up: imports and `--help` of every command, and the time to Codex's first answers.

Whole processes, run in rounds of one each, so that a slow minute affects all alike.
"""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import msgspec

from bench.rig import CHILD_S, Rig
from bench.table import Goal, Row, Section
from laneway.cli.main import COMMANDS

FIRST_ANSWER = Goal(2.1)
"""Half of what the official adapter takes: its first answer came after 4.3 times the raw time."""
HELLO = {
    "clientInfo": {"name": "raw", "title": "raw", "version": "0"},
    "capabilities": {"experimentalApi": True},
}

Sample = Callable[[Rig], dict[str, float]]


def run(rig: Rig, *, quick: bool = False) -> Section:
    rounds = 2 if quick else 7
    samples: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for subject in _subjects():
            for name, seconds in subject(rig).items():
                if number:  # the first round warms the disk's cache
                    samples.setdefault(name, []).append(seconds)
    ms = {name: statistics.median(values) * 1e3 for name, values in samples.items()}

    def row(what: str, ours: str, base: str, base_is: str, goal: Goal | None = None) -> Row:
        return Row(what=what, unit="ms", base=ms[base], base_is=base_is, ours=ms[ours], goal=goal, digits=0)

    bare = ("python", "python -c pass")
    rows = [row("laneway --help", "help", *bare)]
    for command in _commands():
        rows.append(row(f"import of laneway {command}", f"import {command}", *bare))
        rows.append(row(f"laneway {command} --help", f"help {command}", *bare))
    rows += [
        row("laneway --version", "version", "codex version", "codex --version"),
        row("laneway ask hi", "ask", "codex exec", "codex exec hi"),
        row("laneway ask --rehearse hi", "ask rehearsed", "codex exec", "codex exec hi"),
        row(
            "process start → initialize answered", "hello whole", "hello raw", "raw app-server", FIRST_ANSWER
        ),
        row("process start → thread started", "thread whole", "thread raw", "raw app-server"),
        row("the first without the head start", "hello late", "hello raw", "raw app-server"),
        row("spawn → initialize answered, imports done", "hello warm", "hello raw", "raw app-server"),
        row("spawn → thread started, imports done", "thread warm", "thread raw", "raw app-server"),
    ]
    note = (
        "Where the time to the first answer goes:"
        f" Python {ms['python']:.0f} ms,"
        f" our imports {ms['hello late'] - ms['hello warm'] - ms['python']:.0f} ms,"
        f" our guardian and handshake {ms['hello warm'] - ms['hello raw']:.0f} ms,"
        f" app-server itself {ms['hello raw']:.0f} ms;"
        f" Codex starts during the imports, which saves {ms['hello late'] - ms['hello whole']:.0f} ms."
    )
    return Section("Start-up (whole processes)", rows, [note], {"seconds": samples})


def _commands() -> list[str]:
    """All commands whose module exists."""
    return [name for name, (module, _) in COMMANDS.items() if importlib.util.find_spec(module)]


def _subjects() -> list[Sample]:
    laneway = (sys.executable, "-m", "laneway")
    subjects = [
        _process("python", sys.executable, "-c", "pass"),
        _process("help", *laneway, "--help"),
        _process("version", *laneway, "--version"),
        lambda rig: {"codex version": _seconds(rig, rig.codex, "--version")},
        lambda rig: {"ask": _seconds(rig, *laneway, "ask", "hi")},
        lambda rig: {"ask rehearsed": _seconds(rig, *laneway, "ask", "--rehearse", "hi")},
        lambda rig: {"codex exec": _seconds(rig, *_exec(rig))},
        raw_hello,
        our_hello,
    ]
    for command in _commands():
        module = COMMANDS[command][0]
        subjects.append(_process(f"import {command}", sys.executable, "-c", f"import {module}"))
        subjects.append(_process(f"help {command}", *laneway, command, "--help"))
    return subjects


def _process(name: str, *argv: str) -> Sample:
    return lambda rig: {name: _seconds(rig, *argv)}


def _exec(rig: Rig) -> tuple[str, ...]:
    """The command of Codex that does what `laneway ask` does."""
    return (rig.codex, "exec", "--skip-git-repo-check", "-C", str(rig.work), "-s", "read-only", "hi")


def _seconds(rig: Rig, *argv: str) -> float:
    before = time.perf_counter()
    subprocess.run(
        argv, env=rig.environment, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=CHILD_S
    )
    return time.perf_counter() - before


def raw_hello(rig: Rig) -> dict[str, float]:
    """A bare pipe to app-server: seconds until `initialize` is answered, and until a thread is started."""
    before = time.perf_counter()
    process = subprocess.Popen(
        [rig.codex, "app-server"],
        env=rig.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,  # as ours
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines = open(process.stdout.fileno(), "rb", closefd=False)  # noqa: SIM115  closed with the process
    process.stdin.write(msgspec.json.encode({"id": 1, "method": "initialize", "params": HELLO}) + b"\n")
    while not lines.readline().startswith(b'{"id":1,'):
        pass
    hello = time.perf_counter() - before
    start = {"id": 2, "method": "thread/start", "params": {"cwd": str(rig.work)}}
    process.stdin.write(b'{"method":"initialized"}\n' + msgspec.json.encode(start) + b"\n")
    while not lines.readline().startswith(b'{"id":2,'):
        pass
    thread = time.perf_counter() - before
    process.communicate(timeout=CHILD_S)
    return {"hello raw": hello, "thread raw": thread}


def our_hello(rig: Rig) -> dict[str, float]:
    """The same through a fresh process of ours, with and without starting Codex before the imports."""
    whole, late = _run_hello(rig), _run_hello(rig, "--late")
    return {
        "hello whole": whole["hello"][0],
        "thread whole": whole["thread"][0],
        "hello late": late["hello"][0],
        "hello warm": late["hello"][1],
        "thread warm": late["thread"][1],
    }


def _run_hello(rig: Rig, *flags: str) -> dict[str, tuple[float, float]]:
    """For each answer: seconds since the process was started, and since its imports were done."""
    before = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.hello", str(rig.work), *flags],
        env=rig.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    answers: dict[str, tuple[float, float]] = {}
    for line in process.stdout:
        name, seconds = line.decode().split()
        answers[name] = (time.perf_counter() - before, float(seconds))
    process.wait(timeout=CHILD_S)
    return answers
