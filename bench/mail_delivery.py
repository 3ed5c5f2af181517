"""Measures mail delivery, from the write of an inbox to `turn/start`: `python -m bench.mail_delivery`.

Four processes: this one, `laneway mcp` with one idle session, the stub Codex, which reports the time of
every turn, and a writer in Claude Code's dialect, which reports the time before each message. They share
the machine's monotonic clock.
"""

from __future__ import annotations

import os
import select
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench.codex_stub import STAMPS
from bench.mail_boxes import TEAM
from bench.mcp_calls import ROOT
from bench.mcp_servers import Server, Talk, servers
from bench.rig import CHILD_S, Rig, tell
from laneway.mail.places import Places
from laneway.mail.roster import Roster
from laneway.testing.mail_claude import Claude

PAUSE_S = 0.1
"""Between two messages: the last one is marked as read by then, and the session idle."""
WARM_UP = 5
"""Messages before those that count."""
WHO = "worker"


def measure(messages: int, rig: Rig) -> dict[str, float]:
    with TemporaryDirectory(dir=rig.work) as folder:
        home = Path(folder)
        stamps = home / "stamps"
        os.mkfifo(stamps)
        fd = os.open(stamps, os.O_RDWR)  # also for writing, so that opening does not block
        turns = Stamps(fd)
        talk = Talk(_server(rig, home, stamps))
        try:
            talk.greet()
            talk.call("codex", {"prompt": "hi", "identity": WHO})
            turns.next()  # the client's own turn
            places = Places.of({"ATM_HOME": str(home)})
            _wait_for_member(places)
            took_ms = _deliver(messages + WARM_UP, places.inbox(TEAM, WHO), turns)
        finally:
            talk.hang_up()
            os.close(fd)
    measured = sorted(took_ms[WARM_UP:])
    cuts = statistics.quantiles(measured, n=100, method="inclusive")
    return {"messages": messages, "p50": cuts[49], "p99": cuts[98], "worst": measured[-1]}


class Stamps:
    """Reads the stub's times, one line per turn."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""

    def next(self) -> float:
        while b"\n" not in self._rest:
            if not select.select([self._fd], [], [], CHILD_S)[0]:
                raise RuntimeError("no turn was started")
            self._rest += os.read(self._fd, 65536)
        line, _, self._rest = self._rest.partition(b"\n")
        return float(line)


def _server(rig: Rig, home: Path, stamps: Path) -> Server:
    codex = home / "codex"
    codex.write_text(f'#!/bin/sh\nexec {sys.executable} -m bench.codex_stub "$@"\n')
    codex.chmod(0o755)
    server = servers(rig)["mcp"]
    environment = {
        **server.environment,
        "ATM_HOME": str(home),
        "LANEWAY_CODEX_BIN": str(codex),
        "LANEWAY_MAIL_TURNS_PER_HOUR": "10000",
        "LANEWAY_TEAM": TEAM,
        "PYTHONPATH": os.pathsep.join((ROOT, os.environ.get("PYTHONPATH", ""))),
        STAMPS: str(stamps),
    }
    environment.pop("CLAUDE_CONFIG_DIR", None)
    return msgspec.structs.replace(server, environment=environment)


def _wait_for_member(places: Places) -> None:
    """Wait until the session, in the background, has joined its team."""
    until = time.monotonic() + CHILD_S
    while time.monotonic() < until:
        if places.config(TEAM).exists() and Roster(places, TEAM).read().member(WHO):
            return
        time.sleep(0.01)
    raise RuntimeError("the session did not join its team")


def _deliver(messages: int, inbox: Path, turns: Stamps) -> list[float]:
    argv = [sys.executable, "-m", "bench.mail_delivery", "write", str(inbox)]
    writer = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert writer.stdin is not None
    assert writer.stdout is not None
    took_ms = []
    for number in range(messages):
        time.sleep(PAUSE_S)
        writer.stdin.write(f"message {number}\n".encode())
        started = turns.next()
        took_ms.append((started - float(writer.stdout.readline())) * 1e3)
    writer.communicate(timeout=CHILD_S)
    return took_ms


def write(inbox: Path) -> None:
    """The writer process: sends a message for every line, and prints when it began."""
    for line in sys.stdin:
        began = time.perf_counter()
        Claude().append(inbox, "team-lead", line.strip())
        print(began, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]))
    else:
        messages, work, home = sys.argv[1:]
        child_rig = Rig(sys.executable, Path(home), Path(work), dict(os.environ))
        tell(measure(int(messages), child_rig))
