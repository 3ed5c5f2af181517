"""One inbox, many inboxes, and one inbox that several processes write: `python -m bench.mail_boxes`."""

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

from bench.memory import resident_kb
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
    """As Claude Code writes one."""
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


class Desk:
    """A team of its own in a folder that goes away."""

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
    """Milliseconds, sorted."""
    took = []
    for _ in range(times):
        before = clock()
        work()
        took.append((clock() - before) * 1e3)
    return sorted(took)


def p99(sorted_values: list[float]) -> float:
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * 0.99))]


def changed_polls(box: Inbox, times: int, clock: Clock = time.perf_counter) -> list[float]:
    """Each after a change that is not timed: the time in its file, so that the content stays the same."""
    took = []
    for number in range(times):
        os.utime(box.path, ns=(0, time.time_ns() + number))
        took += timed(box.pending_count, 1, clock)
    return sorted(took)


def safe_write(path: Path, data: bytes) -> None:
    """The least that a program must do whose file survives a power cut."""
    beside = path.with_name(path.name + ".beside")
    for target, flags in ((beside, os.O_WRONLY | os.O_CREAT), (path.parent, os.O_RDONLY)):
        fd = os.open(target, flags, 0o600)
        if target is beside:
            os.write(fd, data)
        else:
            os.rename(beside, path)
        os.fsync(fd)
        os.close(fd)


def box(desk: Desk, size: int, times: int) -> dict[str, float]:
    inbox = desk.filled("reader", size, UNREAD)
    data = inbox.path.read_bytes()
    found = {
        "loads": statistics.median(timed(lambda: json.loads(inbox.path.read_bytes()), times)),
        "changed": statistics.median(changed_polls(inbox, times)),
        "changed_cpu": statistics.median(changed_polls(inbox, times, time.thread_time)),
        "unchanged": statistics.median(timed(inbox.pending_count, times)),
        "all_unread": statistics.median(changed_polls(desk.filled("lazy", size, size), min(times, 20))),
        "safe_write": statistics.median(timed(lambda: safe_write(inbox.path, data), times)),
    }
    held: list[float] = []

    def send() -> None:
        desk.send(inbox)
        held.append(inbox.held_s * 1e3)

    found["send"] = statistics.median(timed(send, times))
    for message in inbox.read().messages[-times:]:
        inbox.mark_read([message])
        held.append(inbox.held_s * 1e3)
    return {**found, "held_p99": p99(sorted(held))}


def crowd(desk: Desk, size: int, times: int) -> dict[str, float]:
    for number in range(size):
        desk.roster.register(f"member-{number}", cwd="/work")
    post = Post(desk.places)
    took = timed(lambda: post.broadcast("sender", TEXT, team=TEAM), times)
    data = desk.box("member-0").path.read_bytes()
    beside = desk.places.inboxes(TEAM) / "beside"
    return {
        "broadcast": statistics.median(took),
        "safe_writes": sum(timed(lambda: safe_write(beside, data), size)),
    }


def shared(desk: Desk, writers: int, times: int, root: Path) -> dict[str, float]:
    """Several processes send to one inbox as fast as they can; nothing may be lost."""
    argv = [sys.executable, "-m", "bench.mail_boxes", "writer", "0", str(times), str(root)]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE) for _ in range(writers)]
    told = [process.communicate(timeout=CHILD_S)[0] for process in running]
    held = sorted(ms for line in told for ms in json.loads(line)["held"])
    arrived = len(desk.box("busy").read().messages)
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


def memory(desk: Desk, size: int, polls: int) -> dict[str, float]:
    inbox = desk.filled("reader", size, UNREAD)
    changed_polls(inbox, 20)
    before = resident_kb(os.getpid())
    changed_polls(inbox, polls)
    return {"before": before, "after": resident_kb(os.getpid())}


def main(what: str, size: int, times: int, work: Path) -> dict[str, Any]:
    if what == "writer":
        return writer(work, times)
    with TemporaryDirectory(dir=work) as folder:
        root = Path(folder)
        desk = Desk(root)
        if what == "shared":
            return shared(desk, size, times, root)
        return {"box": box, "crowd": crowd, "memory": memory}[what](desk, size, times)


if __name__ == "__main__":
    tell(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])))
