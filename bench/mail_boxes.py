"""Measures inbox files: one, many, and one with several writers: `python -m bench.mail_boxes`."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.processes import resident_kb
from bench.rig import CHILD_S, tell
from laneway.mail.draft import draft
from laneway.mail.inbox import Inbox
from laneway.mail.places import Places
from laneway.mail.post import Post
from laneway.mail.roster import Roster

TEAM = "bench"
UNREAD = 10
"""New messages at the end of an inbox: as many as one mail turn brings."""
CROWD = 100
WRITERS = 4
TEXT = "y" * 120


def entry(number: int, *, is_read: bool) -> dict[str, Any]:
    """A message as Claude Code writes it."""
    return {
        "from": "team-lead",
        "text": f"{number} {TEXT}",
        "summary": TEXT[:20],
        "timestamp": "2026-11-16T08:00:00.000Z",
        "msgV": 1,
        "msg_id": f"0cfd852e-1286-4b04-8538-{number:012d}",
        "type": "message",
        "read": is_read,
    }


class BenchTeam:
    """A team with its inboxes, in a temporary folder."""

    def __init__(self, root: Path) -> None:
        self.places = Places.of({}, root)
        self.roster = Roster(self.places, TEAM)
        self.roster.register("sender", create=True, cwd="/work")

    def box(self, agent: str) -> Inbox:
        return Inbox(self.places, TEAM, agent)

    def filled(self, agent: str, size: int, unread: int) -> Inbox:
        box = self.box(agent)
        box.path.parent.mkdir(exist_ok=True)
        entries = [entry(number, is_read=number < size - unread) for number in range(size)]
        box.path.write_text(json.dumps(entries, indent=2))
        return box

    def send(self, box: Inbox) -> None:
        box.append(draft("sender", TEXT, team=TEAM))


Clock = Callable[[], float]


def timed(work: Callable[[], object], times: int, clock: Clock = time.perf_counter) -> list[float]:
    """The durations in milliseconds, sorted."""
    took_ms = []
    for _ in range(times):
        before = clock()
        work()
        took_ms.append((clock() - before) * 1e3)
    return sorted(took_ms)


def p99(sorted_values: list[float]) -> float:
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * 0.99))]


def changed_polls(box: Inbox, times: int, clock: Clock = time.perf_counter) -> list[float]:
    """Time polls after a change of the file's modification time, which leaves the content the same."""
    took_ms = []
    for number in range(times):
        os.utime(box.path, ns=(0, time.time_ns() + number))
        took_ms += timed(box.pending_count, 1, clock)
    return sorted(took_ms)


def safe_write(path: Path, data: bytes) -> None:
    """The minimum for a file that survives a power cut."""
    temporary = path.with_name(path.name + ".beside")
    for target, flags in ((temporary, os.O_WRONLY | os.O_CREAT), (path.parent, os.O_RDONLY)):
        fd = os.open(target, flags, 0o600)
        if target is temporary:
            os.write(fd, data)
        else:
            os.rename(temporary, path)
        os.fsync(fd)
        os.close(fd)


def box(team: BenchTeam, size: int, times: int) -> dict[str, float]:
    inbox = team.filled("reader", size, UNREAD)
    data = inbox.path.read_bytes()
    results = {
        "loads": statistics.median(timed(lambda: json.loads(inbox.path.read_bytes()), times)),
        "changed": statistics.median(changed_polls(inbox, times)),
        "changed_cpu": statistics.median(changed_polls(inbox, times, time.thread_time)),
        "unchanged": statistics.median(timed(inbox.pending_count, times)),
        "all_unread": statistics.median(changed_polls(team.filled("lazy", size, size), min(times, 20))),
        "safe_write": statistics.median(timed(lambda: safe_write(inbox.path, data), times)),
    }
    held: list[float] = []

    def send() -> None:
        team.send(inbox)
        held.append(inbox.held_s * 1e3)

    results["send"] = statistics.median(timed(send, times))
    for message in inbox.read().messages[-times:]:
        inbox.mark_read([message])
        held.append(inbox.held_s * 1e3)
    return {**results, "held_p99": p99(sorted(held))}


def crowd(team: BenchTeam, size: int, times: int) -> dict[str, float]:
    for number in range(size):
        team.roster.register(f"member-{number}", cwd="/work")
    post = Post(team.places)
    took_ms = timed(lambda: post.broadcast("sender", TEXT, team=TEAM), times)
    data = team.box("member-0").path.read_bytes()
    beside = team.places.inboxes(TEAM) / "beside"
    return {
        "broadcast": statistics.median(took_ms),
        "safe_writes": sum(timed(lambda: safe_write(beside, data), size)),
    }


def shared(team: BenchTeam, writers: int, times: int, root: Path) -> dict[str, float]:
    """Several processes send to one inbox as fast as they can; nothing may be lost."""
    argv = [sys.executable, "-m", "bench.mail_boxes", "writer", "0", str(times), str(root)]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE) for _ in range(writers)]
    outputs = [process.communicate(timeout=CHILD_S)[0] for process in running]
    held = sorted(ms for line in outputs for ms in json.loads(line)["held"])
    arrived = len(team.box("busy").read().messages)
    if arrived != writers * times:
        raise RuntimeError(f"{writers * times} messages were sent and {arrived} arrived")
    return {"held_p99": p99(held), "held_worst": held[-1]}


def writer(root: Path, times: int) -> dict[str, list[float]]:
    held = []
    busy = Inbox(Places.of({}, root), TEAM, "busy")
    for _ in range(times):
        busy.append(draft("sender", TEXT, team=TEAM))
        held.append(busy.held_s * 1e3)
    return {"held": held}


def memory(team: BenchTeam, size: int, polls: int) -> dict[str, float]:
    inbox = team.filled("reader", size, UNREAD)
    changed_polls(inbox, 20)
    before = resident_kb(os.getpid())
    changed_polls(inbox, polls)
    return {"before": before, "after": resident_kb(os.getpid())}


def main(what: str, size: int, times: int, work: Path) -> dict[str, Any]:
    if what == "writer":
        return writer(work, times)
    with TemporaryDirectory(dir=work) as folder:
        root = Path(folder)
        team = BenchTeam(root)
        if what == "shared":
            return shared(team, size, times, root)
        return {"box": box, "crowd": crowd, "memory": memory}[what](team, size, times)


if __name__ == "__main__":
    tell(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])))
