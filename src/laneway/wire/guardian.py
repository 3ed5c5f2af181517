"""The guardian process: parent and subreaper of one process tree, which it ends when Laneway ends.

A program of its own, started as `python -I -S guardian.py CONTROL STATUS HELD LOCALE KIND -- ARGV…`
with the child's standard streams and environment already in place. It only owns the
tree; no byte of the child's streams passes through it.

CONTROL (Laneway writes): `I` interrupts the child alone (SIGINT), `T` asks the tree to end, `K` kills it.
`S` asks as `T` does, and from then on nothing is killed without a `K`: we wait as long as it takes. End of
file means that Laneway is gone, for whatever reason, and the tree must end too.
STATUS (Laneway reads): `pid N`, or `failed ERRNO`, then `exit N` or `signal N`; its end of
file means that nothing of the tree is left.
HELD: numbers of further descriptors, with commas: locks that are held for as long as we live, and that the
child does not inherit.
LOCALE: the child's `LC_CTYPE` after an equals sign, or nothing if it has none: Python
changes that variable for itself where the locale is C.
KIND: `agent` if a model chooses what is started below us, `worker` if it works for a background job; other
processes can see both (`laneway.wire.process_tree`). `pipe` if it is the way to another home of Laneway: then
what has left the child's session is not ours to end, such as supervisors of jobs there. Else `program`.
Supervisors of background jobs that were started below us are spared, with their trees: a job outlives whoever
spawned it. Only a worker's guardian spares nobody.

Imports only modules of a bare interpreter, because every start-up waits for its start.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # a bare interpreter starts without `typing`
    from collections.abc import Callable

OWN_END_S = 0.3
"""For the child to end by itself, after its standard input has closed with ours."""
TERM_S = 0.5
"""Between SIGTERM and SIGKILL once Laneway is gone."""
SWEEP_TICK_S = 0.02
FREEZE_ROUNDS = 20
"""Reads of the process table per kill: each finds only what was forked since the last one."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NAME = 15
ZOMBIES_S = 0.5
"""For dead processes of a session to be reaped by whoever adopted them; some containers never do."""
AGENT, WORKER, PROGRAM, PIPE = "agent", "worker", "program", "pipe"
SUPERVISOR_NAME = "laneway-job"
"""The process name of a job's supervisor. A process that a model starts could take it, and would be left
running: it could as well spawn a job, or use cron."""
QUIET_LOOKS = 3
"""Looks at the process table, a tick apart, that must find nothing but supervisors: one may miss a fork."""
NAMES = {AGENT: "laneway-guard", WORKER: "laneway-worker"}
"""Process names of guardians; at most 15 characters (Linux)."""
HEEDED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""A child would inherit that; it gets the defaults instead."""


def main(argv: list[str]) -> int:
    control, status, held, locale, kind = int(argv[1]), int(argv[2]), argv[3], argv[4], argv[5]
    for fd in (control, status, *map(int, held.split(",") if held else ())):
        os.set_inheritable(fd, False)
    os.environ.pop("LC_CTYPE", None)
    if locale:
        os.environ["LC_CTYPE"] = locale[1:]
    if kind != PIPE:
        # Before the child exists: one that ends at once would leave its orphans to init.
        become_subreaper(NAMES.get(kind))
    # Not for others: whoever looks for what a dead guardian leaves finds it below the living child.
    prepare = death_with_parent() if kind == WORKER else lambda: None
    guardian = Guardian(control, status, prepare, only_session=kind == PIPE, spares_jobs=kind != WORKER)
    return guardian.run(argv[7:])


class Guardian:
    """Starts the child, reports its end, and ends its tree."""

    def __init__(
        self,
        control: int,
        status: int,
        prepare_child: Callable[[], None],
        *,
        only_session: bool,
        spares_jobs: bool,
    ) -> None:
        self.control = control
        self.status = status
        self.prepare_child = prepare_child
        self.only_session = only_session
        self.spares_jobs = spares_jobs
        self.quiet_looks = 0
        self.session = 0
        self.child = 0
        self.wake, wake_in = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_in, False)
        signal.set_wakeup_fd(wake_in, warn_on_full_buffer=False)
        for number in HEEDED:
            signal.signal(number, self.note)
        self.is_end_requested = False
        self.term_s = TERM_S
        self.may_kill = True

    def note(self, number: int, frame: object) -> None:
        if number != signal.SIGCHLD:
            self.is_end_requested = True

    def run(self, command: list[str]) -> int:
        if not self.spawn(command):
            return 127
        # Close our copies of the child's streams: while we hold them, nobody would see them end.
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        self.watch()
        self.sweep()
        return 0

    def spawn(self, command: list[str]) -> bool:
        refused, refusal = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                self.prepare_child()
                for number in (*HEEDED, *IGNORED_BY_PYTHON):
                    signal.signal(number, signal.SIG_DFL)
                os.execvp(command[0], command)
            except OSError as problem:
                os.write(refusal, b"%d" % (problem.errno or 0))
            finally:
                os._exit(127)
        os.close(refusal)
        errno = os.read(refused, 16)
        os.close(refused)
        self.child = self.session = pid
        if errno:
            os.waitpid(pid, 0)
            self.tell(b"failed " + errno)
            return False
        self.tell(b"pid %d" % pid)
        return True

    def watch(self) -> None:
        """Wait until the child has ended, or we must end it."""
        poll = select.poll()
        poll.register(self.wake, select.POLLIN)
        poll.register(self.control, select.POLLIN)
        while self.child:
            for fd, _ in poll.poll():
                if fd == self.wake:
                    os.read(self.wake, 512)
                    self.reap()
                    if self.is_end_requested:
                        return
                elif not self.obey():
                    self.wait_for_child(OWN_END_S)
                    return

    def obey(self) -> bool:
        """Carry out an order; false if Laneway is gone."""
        order = os.read(self.control, 1)
        if order == b"I":
            signal_all([self.child] if self.child else [], signal.SIGINT)
        elif order == b"T":
            self.terminate()
        elif order == b"S":
            self.may_kill = False
            self.terminate()
        elif order == b"K":
            self.may_kill = True
            self.term_s = 0.0
            self.kill()
        else:
            self.may_kill = True
            return False
        return True

    def wait_for_child(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.child and time.monotonic() < deadline:
            time.sleep(SWEEP_TICK_S)
            self.reap()

    def sweep(self) -> None:
        """End all remaining processes, however often they fork."""
        self.terminate()
        deadline = time.monotonic() + self.term_s
        while (self.reap() and self.is_tree_left()) or self.is_session_left(deadline + ZOMBIES_S):
            if not self.may_kill:
                if select.select([self.control], [], [], SWEEP_TICK_S)[0]:
                    self.obey()
                continue
            if time.monotonic() >= deadline:
                self.kill()
            time.sleep(SWEEP_TICK_S)

    def terminate(self) -> None:
        if self.only_session:
            signal_all(members(self.session), signal.SIGTERM)
        else:
            signal_all(self.descendants(), signal.SIGTERM)

    def kill(self) -> None:
        if self.only_session:
            signal_all(members(self.session), signal.SIGKILL)
        else:
            kill_tree(os.getpid(), spares_jobs=self.spares_jobs)

    def descendants(self) -> list[int]:
        return descendants(os.getpid(), spares_jobs=self.spares_jobs)

    def is_tree_left(self) -> bool:
        """Whether our children are others than the supervisors that we spare."""
        if not self.spares_jobs or self.descendants():
            self.quiet_looks = 0
        else:
            self.quiet_looks += 1
        return self.quiet_looks < QUIET_LOOKS

    def is_session_left(self, until: float) -> bool:
        """Others than our child's may be left of a session; of a tree all are ours, and are reaped."""
        return self.only_session and time.monotonic() < until and bool(members(self.session))

    def reap(self) -> bool:
        """Reap ended processes; return whether any is left."""
        while True:
            try:
                pid, outcome = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.child = 0
                code = os.waitstatus_to_exitcode(outcome)
                self.tell(b"exit %d" % code if code >= 0 else b"signal %d" % -code)

    def tell(self, line: bytes) -> None:
        try:
            os.write(self.status, line + b"\n")
        except OSError:
            pass  # nobody reads it any more; the tree is ended anyway


def become_subreaper(name: str | None) -> None:
    """From now on, grandchildren that lose their parent become our children (Linux); sets our name."""
    if sys.platform == "linux":
        import ctypes

        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if name is not None:
            prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def death_with_parent() -> Callable[[], None]:
    """What a child of ours calls to be killed when we are (Linux)."""
    if sys.platform != "linux":
        return lambda: None
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    us = os.getpid()

    def die_with_parent() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != us:
            os._exit(127)  # killed before this call

    return die_with_parent


def kill_tree(root: int, *, root_too: bool = False, spares_jobs: bool = False) -> None:
    """SIGKILL everything below `root`. All are stopped first: a stopped process cannot fork meanwhile."""
    frozen = [root] if root_too else []
    signal_all(frozen, signal.SIGSTOP)
    for _ in range(FREEZE_ROUNDS):
        new_pids = [pid for pid in descendants(root, spares_jobs=spares_jobs) if pid not in frozen]
        if not new_pids:
            break
        signal_all(new_pids, signal.SIGSTOP)
        frozen += new_pids
    signal_all(frozen, signal.SIGKILL)


def members(session: int) -> list[int]:
    return [pid for pid, _, each, _ in process_table() if each == session]


def signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass  # it ended by itself in between


def descendants(root: int, *, spares_jobs: bool = False) -> list[int]:
    """All processes below `root`, and those of its session, whose parents may be gone.

    With `spares_jobs` without supervisors of jobs, and what is below them.
    """
    children: dict[int, list[int]] = {}
    pids: list[int] = []
    for pid, parent, session, name in process_table():
        if spares_jobs and name == SUPERVISOR_NAME and pid == session:
            continue
        children.setdefault(parent, []).append(pid)
        if session == root and pid != root:
            pids.append(pid)
    queue = [root, *pids]
    while queue:
        new_pids = [pid for pid in children.get(queue.pop(), []) if pid not in pids]
        pids += new_pids
        queue += new_pids
    return pids


def process_table() -> list[tuple[int, int, int, str]]:
    """Every process with its parent, its session and its name."""
    if not os.path.isdir("/proc/self"):
        return process_table_by_ps()
    table = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    # The name in parentheses may contain anything, so split after the last parenthesis.
                    begin, _, rest = stat.read().rpartition(b")")
            except OSError:
                continue  # it ended while we looked
            fields = rest.split()
            called = begin.partition(b"(")[2].decode("utf-8", "replace")
            table.append((int(name), int(fields[1]), int(fields[3]), called))
    return table


def process_table_by_ps() -> list[tuple[int, int, int, str]]:
    # Without /proc (macOS) there is no session id; the process group comes close. Nor can we name processes.
    with os.popen("/bin/ps -axo pid=,ppid=,pgid=") as lines:  # noqa: S605  a constant
        rows = [line.split() for line in lines]
    return [(int(pid), int(parent), int(group), "") for pid, parent, group in rows]


if __name__ == "__main__":
    sys.exit(main(sys.argv))
