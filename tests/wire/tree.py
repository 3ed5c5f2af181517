"""A child with a family: prints everybody's pid as one JSON line, then behaves as told.

`tree.py BEHAVIOUR` with one of
  stay      ends with code 0 when standard input ends
  leave     ends with code 7 at once
  until-term  does not look at standard input; ends with code 5 on SIGTERM
  never     does not look at standard input either, and ignores SIGTERM
"""

import json
import os
import signal
import sys


def wait_for_ever() -> None:
    while True:
        signal.pause()


def relative(name: str, report: int) -> None:
    """Fork one that reports its pid once it is what its name says, and then stays."""
    if os.fork():
        return
    if name in ("setsid", "deaf", "daemon"):
        os.setsid()
    if name == "daemon" and os.fork():
        os._exit(0)
    if name == "deaf":
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    os.write(report, f"{name} {os.getpid()}\n".encode())
    wait_for_ever()


def family() -> dict[str, int]:
    """The forked, the one in a session of its own, the double-forked, and one that hears no SIGTERM."""
    names = ("plain", "setsid", "daemon", "deaf")
    reports, report = os.pipe()
    for name in names:
        relative(name, report)
    pids = {"guardian": os.getppid(), "child": os.getpid()}
    with os.fdopen(reports) as lines:
        for _ in names:
            name, pid = lines.readline().split()
            pids[name] = int(pid)
    return pids


def main(behaviour: str) -> int:
    pids = family()
    if behaviour == "until-term":
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(5))
    if behaviour == "never":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(json.dumps(pids), flush=True)
    if behaviour == "leave":
        return 7
    if behaviour == "stay":
        sys.stdin.read()
        return 0
    wait_for_ever()
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
