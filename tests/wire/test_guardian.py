"""The whole tree ends, whoever goes first: we, the child, the guardian, or nobody willingly."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from laneway.wire import guardian
from laneway.wire.child import Child, Exit
from tests.wire.support import DEADLINE_S, HERE, Heard, Watch, ended, linux_only, program, python, start

pytestmark = linux_only


async def family_of(behaviour: str) -> tuple[Child, Heard, dict[str, int]]:
    """A child, a forked one, one in its own session, a daemon, and one that hears no SIGTERM."""
    heard = Heard()
    child = await start(program("tree", behaviour), heard)
    pids: dict[str, int] = json.loads(await heard.wait_line())
    assert pids["child"] == child.pid
    return child, heard, pids


async def keep(argv: list[str]) -> tuple[asyncio.subprocess.Process, bytes]:
    """Another process that holds the child as we would, and the first line the child said."""
    keeper = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "keeper.py"),
        *argv,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert keeper.stdout
    return keeper, await keeper.stdout.readline()


# ── the tree ───────────────────────────────────────────────────────────────


async def test_the_whole_tree_ends_when_we_stop_the_child() -> None:
    """Sessions of their own and double forks are no way out."""
    child, _, pids = await family_of("stay")
    with Watch(pids.values()) as family:
        async with asyncio.timeout(DEADLINE_S):
            assert await child.stop(DEADLINE_S) == Exit(code=0)
        await family.wait_gone()


async def test_the_whole_tree_ends_when_we_kill_the_child() -> None:
    """At once, and nobody is asked."""
    child, heard, pids = await family_of("never")
    with Watch(pids.values()) as family:
        child.kill()
        assert await ended(child) == Exit(signal="SIGKILL")
        await family.wait_gone()
    assert heard.ends == [Exit(signal="SIGKILL")]


async def test_the_whole_tree_ends_when_the_child_leaves_by_itself() -> None:
    """It left its family behind; the end is told when those are gone as well."""
    heard = Heard()
    child = await start(program("tree", "leave"), heard)
    assert await ended(child) == Exit(code=7)

    for pid in json.loads(await heard.wait_line()).values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_the_whole_tree_ends_when_the_child_is_shot() -> None:
    """By somebody else; its signal is told."""
    child, _, pids = await family_of("never")
    with Watch(pids.values()) as family:
        os.kill(child.pid, signal.SIGSEGV)
        assert await ended(child) == Exit(signal="SIGSEGV")
        await family.wait_gone()


@pytest.mark.parametrize("behaviour", ["stay", "until-term", "never"])
async def test_the_whole_tree_ends_when_our_own_process_is_shot(behaviour: str) -> None:
    """SIGKILL leaves us no last words, so the guardian acts on the closed pipe alone."""
    async with asyncio.timeout(DEADLINE_S):
        keeper, said = await keep(program("tree", behaviour))
        with Watch(json.loads(said).values()) as family:
            keeper.kill()
            await keeper.wait()
            await family.wait_gone()


async def test_the_child_ends_when_the_guardian_is_shot() -> None:
    """Then it is ours to end, with all that still hangs together. How it ended nobody saw."""
    child, heard, pids = await family_of("never")
    # The daemon had only the guardian left: with both gone there is no thread that leads to it.
    with Watch(pid for name, pid in pids.items() if name != "daemon") as family, Watch([pids["daemon"]]):
        os.kill(pids["guardian"], signal.SIGKILL)
        assert await ended(child) == Exit()
        await family.wait_gone()
    assert heard.ends == [Exit()]
    assert str(Exit()) == "it vanished"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_guardian_told_to_end_takes_the_tree_along(number: signal.Signals) -> None:
    """It never leaves the tree to itself."""
    child, _, pids = await family_of("until-term")
    with Watch(pids.values()) as family:
        os.kill(pids["guardian"], number)
        assert await ended(child) == Exit(code=5)
        await family.wait_gone()


@pytest.mark.parametrize("kind", ["hop", "respawn"])
@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_a_tree_that_keeps_forking_ends_all_the_same(kind: str, how: str, tmp_path: Path) -> None:
    """Everybody of it holds one lock; it is free when the end is told."""
    lock = tmp_path / "lock"
    lock.touch()
    heard = Heard()
    child = await start(program("refork", kind, str(lock)), heard)
    await heard.wait_line()
    async with asyncio.timeout(DEADLINE_S):
        if how == "stop":
            await child.stop(0.01)
        else:
            child.kill()
        await child.wait()

    with lock.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert file.read() == "", "it was not ended, it gave up"


@pytest.mark.parametrize("kind", ["hop", "respawn"])
async def test_a_tree_that_keeps_forking_ends_when_our_own_process_is_shot(kind: str, tmp_path: Path) -> None:
    """The guardian does not need us for that."""
    lock = tmp_path / "lock"
    lock.touch()
    async with asyncio.timeout(DEADLINE_S):
        keeper, said = await keep(program("refork", kind, str(lock)))
        assert said == b"locked\n"
        keeper.kill()
        await keeper.wait()
        with lock.open("r+") as file:
            await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)
            assert file.read() == "", "it was not ended, it gave up"


# ── the program itself ─────────────────────────────────────────────────────


@dataclass
class Bare:
    """A guardian without `Child` around it: its two pipes in our hands."""

    process: subprocess.Popen[bytes]
    control: int
    status: int

    def order(self, order: bytes) -> None:
        os.write(self.control, order)

    def hear(self) -> bytes:
        """The next words; nothing at the end of file."""
        return os.read(self.status, 100)


@contextmanager
def bare_guardian(*argv: str) -> Iterator[Bare]:
    control_out, control = os.pipe()
    status, status_in = os.pipe()
    fds = (control_out, status_in)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", guardian.__file__, *map(str, fds), "", "", guardian.AGENT, "--", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        pass_fds=fds,
    )
    for fd in fds:
        os.close(fd)
    try:
        yield Bare(process, control, status)
    finally:
        os.close(control)
        os.close(status)
        with process:
            process.wait(DEADLINE_S)


def test_the_guardian_tells_pid_and_exit_and_then_the_end() -> None:
    """Three words and end of file are the whole protocol."""
    with bare_guardian("/bin/sh", "-c", "read line; exit 4") as bare:
        assert bare.hear().startswith(b"pid ")
        assert bare.process.stdin
        bare.process.stdin.close()
        assert (bare.hear(), bare.hear()) == (b"exit 4\n", b"")
        assert bare.process.wait(DEADLINE_S) == 0


def test_the_guardian_tells_why_a_program_cannot_be_started() -> None:
    """By number, as `exec` said it."""
    with bare_guardian("/nowhere") as bare:
        assert (bare.hear(), bare.hear()) == (b"failed 2\n", b"")
        assert bare.process.wait(DEADLINE_S) == 127


@pytest.mark.parametrize(("order", "words"), [(b"T", b"signal 15\n"), (b"K", b"signal 9\n")])
def test_the_guardian_obeys_its_two_orders(order: bytes, words: bytes) -> None:
    """`T` asks, `K` does not."""
    with bare_guardian("cat") as bare:
        bare.hear()
        bare.order(order)
        assert (bare.hear(), bare.hear()) == (words, b"")


def test_the_guardian_goes_on_when_nobody_listens() -> None:
    """A closed status pipe does not keep it from its work."""
    with bare_guardian("cat") as bare:
        pid = int(bare.hear().split()[1])
        with Watch([pid]):
            with open(os.devnull, "rb") as nothing:
                os.dup2(nothing.fileno(), bare.status)
            bare.order(b"K")
            assert bare.process.wait(DEADLINE_S) == 0
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


async def test_orphans_are_reaped_while_the_child_lives() -> None:
    """A long-lived child that leaves many orphans does not fill the process table."""
    code = """if True:
        import os, time
        for _ in range(50):
            if os.fork() == 0:
                if os.fork() == 0:
                    os._exit(0)
                os._exit(0)
            os.wait()
        guardian, deadline = os.getppid(), time.monotonic() + 60
        while time.monotonic() < deadline:
            with open(f"/proc/{guardian}/task/{guardian}/children") as children:
                if children.read().split() == [str(os.getpid())]:
                    os._exit(0)
            os.sched_yield()
        os._exit(1)
    """
    assert await ended(await start(python(code), Heard())) == Exit(code=0)


async def test_a_process_with_a_deceitful_name_is_found(tmp_path: Path) -> None:
    """The table of processes prints names raw, parentheses, spaces and newlines included."""
    cat = shutil.which("cat")
    assert cat
    disguised = tmp_path / "a) R 1 (\nb"
    shutil.copy(cat, disguised)
    child = await start([str(disguised)], Heard())
    table = {pid: parent for pid, parent, *_ in guardian.process_table()}

    assert child.pid in guardian.descendants(os.getpid())
    assert table[table[child.pid]] == os.getpid()
    child.kill()
    assert await ended(child) == Exit(signal="SIGKILL")


def test_without_proc_the_table_is_read_from_ps() -> None:
    """As on macOS; ours stands in it with its parent."""
    if not os.path.exists("/bin/ps"):
        pytest.skip("there is no ps here")
    assert (os.getpid(), os.getppid(), os.getpgrp(), "") in guardian.process_table_by_ps()


# ── supervisors of jobs ────────────────────────────────────────────────────


SPAWNER = """
import ctypes, json, os, signal, sys
def fork(report, name, in_session):
    if os.fork():
        return
    if in_session:
        os.setsid()
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
    below = os.fork()
    if below:
        os.write(report, b"%d %d " % (os.getpid(), below))
    while True:
        signal.pause()
reports, report = os.pipe()
for name, in_session in ((b"laneway-job", True), (b"laneway-job", False), (b"other", True)):
    fork(report, name, in_session)
pids = []
while len(pids) < 6:
    pids += map(int, os.read(reports, 512).split())
print(json.dumps([os.getppid(), *pids]), flush=True)
sys.stdin.read()
"""
"""A child with a supervisor, one that only has its name, and another daemon; each with a process below it."""


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        *((kind, way) for kind in (guardian.AGENT, guardian.PROGRAM) for way in ("stop", "kill", "guardian")),
        (guardian.WORKER, "stop"),
        (guardian.WORKER, "kill"),  # a dead guardian takes its worker along: the supervisor finds the rest
    ],
)
async def test_only_supervisors_of_jobs_outlive_the_tree_that_they_were_started_in(
    kind: str, way: str
) -> None:
    """With what is below them; but none of those that a job's own worker may have started."""
    heard = Heard()
    child = await start(python(SPAWNER), heard, kind=kind)
    guard, *pids = json.loads(await heard.wait_line())
    names = {pid: name for pid, _, _, name in guardian.process_table()}
    spared = [
        pid
        for pid in pids
        if kind != guardian.WORKER and names[pid] == guardian.SUPERVISOR_NAME and os.getsid(pid) != child.pid
    ]
    assert len(spared) == (0 if kind == guardian.WORKER else 2)
    with Watch(set(pids).difference(spared)) as gone, Watch(spared):
        if way == "stop":
            assert await child.stop(DEADLINE_S) == Exit(code=0)
        elif way == "kill":
            child.kill()
            assert await ended(child) == Exit(signal="SIGKILL")
        else:
            os.kill(guard, signal.SIGKILL)
            await ended(child)
        await gone.wait_gone()
        for pid in spared:
            os.kill(pid, 0)


# ── a pipe to another home ─────────────────────────────────────────────────


SURVIVORS = ("setsid", "daemon", "deaf")


@pytest.mark.parametrize("way", ["stop", "kill", "guardian"])
async def test_of_a_pipe_only_its_own_session_ends(way: str) -> None:
    """What has a session of its own goes on, as the supervisors of jobs there do."""
    heard = Heard()
    child = await start(program("tree", "stay"), heard, kind=guardian.PIPE)
    pids = json.loads(await heard.wait_line())
    with Watch([pids["child"], pids["plain"]]) as session, Watch(pids[name] for name in SURVIVORS):
        if way == "stop":
            assert await child.stop(DEADLINE_S) == Exit(code=0)
        elif way == "kill":
            child.kill()
            assert await ended(child) == Exit(signal="SIGKILL")
        else:
            os.kill(pids["guardian"], signal.SIGKILL)
            await ended(child)
        await session.wait_gone()
        for name in SURVIVORS:
            os.kill(pids[name], 0)


async def test_of_a_pipe_only_its_own_session_ends_when_our_own_process_is_shot() -> None:
    keeper, said = await keep([f"--kind={guardian.PIPE}", *program("tree", "stay")])
    pids = json.loads(said)
    with Watch([pids["child"], pids["plain"]]) as session, Watch(pids[name] for name in SURVIVORS):
        keeper.kill()
        await keeper.wait()
        await session.wait_gone()
        for name in SURVIVORS:
            os.kill(pids[name], 0)
