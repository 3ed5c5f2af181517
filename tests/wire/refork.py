"""Two families that keep forking while they are being ended; both hear no SIGTERM.

`refork.py hop LOCK` forks a successor and leaves, again and again.
`refork.py respawn LOCK` replaces each of its three workers as soon as it dies.

Everybody shares one `flock` on LOCK, so it is free only when nobody is left. A family
that nobody ends gives up at last and says so in LOCK.
"""

import fcntl
import os
import select
import signal
import sys

GENERATIONS = 5000
LIFE_S = 0.005
"""Of one generation: 5,000 of them outlive every deadline of the guardian by far."""


def hop() -> None:
    for _ in range(GENERATIONS):
        if os.fork():
            os._exit(0)
        select.select([], [], [], LIFE_S)


def respawn() -> None:
    workers: set[int] = set()
    for _ in range(GENERATIONS):
        while len(workers) < 3:
            pid = os.fork()
            if pid == 0:
                select.select([], [], [], LIFE_S * GENERATIONS)
                os._exit(0)
            workers.add(pid)
        workers.discard(os.wait()[0])


def main(kind: str, lock: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    fd = os.open(lock, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_SH)
    print("locked", flush=True)
    (hop if kind == "hop" else respawn)()
    os.write(fd, b"nobody ended us")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
