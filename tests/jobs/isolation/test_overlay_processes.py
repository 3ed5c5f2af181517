"""A worker in an overlay is a process like others: guardian, signals, end; and no mount is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.jobs.isolation.overlay import failure, was_not_started
from laneway.wire import guardian
from laneway.wire.child import Child, Exit
from tests.jobs.isolation.support import Layered, layered, linux_only
from tests.jobs.trees import Tree
from tests.wire.support import Heard, Watch, ended, python, start

pytestmark = linux_only

WORKER = """
import json, os, signal, sys
def told(number, frame):
    open("told", "w").write("x")
    os._exit(7)
signal.signal(signal.SIGINT, told)
child = os.fork()
if child == 0:
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pause()
import ctypes
number = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(number), 0, 0, 0)
facts = {"pid": os.getpid(), "parent": os.getppid(), "child": child, "cwd": os.getcwd(), "uid": os.geteuid(),
    "gid": os.getegid(), "death": number.value, "fds": sorted(os.listdir("/proc/self/fd")),
    "locale": "LC_CTYPE=POSIX" in open("/proc/self/environ").read().split("\\0")}
print(json.dumps(facts), flush=True)
signal.pause()
"""


@asynccontextmanager
async def worker(
    job: Layered, *, cwd: str = "", env: dict[str, str] | None = None
) -> AsyncIterator[tuple[Child, dict[str, Any]]]:
    """One under a guardian, and what it tells of itself."""
    heard = Heard()
    argv = job.overlay.wrap([sys.executable, "-S", "-c", WORKER], str(job.tree.root / cwd))
    child = await start(argv, heard, kind=guardian.WORKER, env=env)
    try:
        yield child, json.loads(await heard.wait_line())
    finally:
        child.kill()
        await ended(child)


def proc(pid: int, name: str) -> bytes:
    return Path("/proc", str(pid), name).read_bytes()


def overlays() -> list[str]:
    """All mounts of ours, in whatever namespace."""
    found = set()
    for name in os.listdir("/proc"):
        try:
            mounts = Path("/proc", name, "mountinfo").read_text() if name.isdigit() else ""
        except OSError:
            continue  # it has ended
        found |= {line for line in mounts.splitlines() if " - overlay laneway " in line}
    return sorted(found)


def of(job: Layered) -> list[str]:
    return [line for line in overlays() if line.split(" ")[4] == str(job.tree.root)]


async def test_the_worker_takes_the_place_of_the_wrapper(tree: Tree, tmp_path: Path) -> None:
    """Process id, ids, the signal of the guardian's death, streams, environment; and nothing else of ours."""
    environment = {**os.environ, "LC_CTYPE": "POSIX", "LC_ALL": "", "LANG": "", "LANEWAY_JOB": "job-1"}
    with layered(tree, tmp_path / "state" / "work") as job:
        async with worker(job, cwd="src", env=environment) as (child, facts):
            assert facts["pid"] == child.pid
            assert (facts["uid"], facts["gid"]) == (os.geteuid(), os.getegid())
            assert facts["cwd"] == str(tree.root / "src")
            assert facts["death"] == signal.SIGKILL
            assert len(facts["fds"]) == 4  # one is the list's own
            assert facts["locale"]
            assert b"LANEWAY_JOB=job-1" in proc(child.pid, "environ")
            assert len(of(job)) == 1
        assert of(job) == []


def test_no_signal_is_ignored_that_was_not_before(tree: Tree, tmp_path: Path) -> None:
    """Python ignores some for itself, and a worker would inherit that."""
    ours = ignored_signals(Path("/proc/self/status").read_text())
    by_python = (1 << (signal.SIGPIPE - 1)) | (1 << (signal.SIGXFSZ - 1))
    with layered(tree, tmp_path / "state" / "work") as job:
        assert ignored_signals(job.sh("cat /proc/self/status")) == ours & ~by_python


def ignored_signals(status: str) -> int:
    return int(status.partition("SigIgn:")[2].split()[0], 16)


async def test_an_interrupt_reaches_the_worker(tree: Tree, tmp_path: Path) -> None:
    """And what it does then is in its layer."""
    with layered(tree, tmp_path / "state" / "work") as job:
        async with worker(job) as (child, facts):
            with Watch([facts["child"]]) as family:
                child.interrupt(may_kill=True)
                assert await ended(child) == Exit(code=7)
                await family.wait_gone()
        assert job.changed() == {"told": ("absent", b"x")}
        assert of(job) == []


@pytest.mark.covers("J-supervision.3")
async def test_the_worker_dies_with_its_guardian(tree: Tree, tmp_path: Path) -> None:
    """Although its rights were changed in between. What it has started is left to the supervisor."""
    with layered(tree, tmp_path / "state" / "work") as job:
        async with worker(job) as (_, facts):
            with Watch([facts["child"]]), Watch([facts["pid"]]) as worker_only:
                os.kill(facts["parent"], signal.SIGKILL)
                await worker_only.wait_gone()
        assert of(job) == []


async def test_a_worker_that_is_killed_leaves_no_mount(tree: Tree, tmp_path: Path) -> None:
    """Nobody else has ever seen one."""
    with layered(tree, tmp_path / "state" / "work") as job:
        async with worker(job) as (child, facts):
            assert os.fsencode(tree.root) not in proc(os.getpid(), "mountinfo")
            with Watch([facts["child"]]) as family:
                os.kill(facts["pid"], signal.SIGKILL)
                assert await ended(child) == Exit(signal="SIGKILL")
                await family.wait_gone()
        assert of(job) == []


@pytest.mark.parametrize(
    ("argv", "cwd", "words"),
    [
        (["/nowhere/codex"], "", "Codex cannot be started (ENOENT)."),
        (["true"], "gone", "The folder to work in cannot be entered (ENOENT)."),
    ],
)
async def test_what_cannot_be_started_is_a_sentence(
    tree: Tree, tmp_path: Path, argv: list[str], cwd: str, words: str
) -> None:
    with layered(tree, tmp_path / "state" / "work") as job:
        child = await start(job.overlay.wrap(argv, str(tree.root / cwd)), Heard())
        how = await ended(child)
        assert was_not_started(how.code, child.stderr_tail)
        assert failure(child.stderr_tail, job.overlay.folder) == words


@pytest.mark.covers("J-a2.22")
async def test_a_worker_never_starts_without_its_layer(tree: Tree, tmp_path: Path) -> None:
    with layered(tree, tmp_path / "state" / "work") as job:
        shutil.rmtree(job.overlay.upper(job.overlay.tree))
        child = await start(job.overlay.wrap(["touch", "made"], str(tree.root)), Heard())
        how = await ended(child)
        assert was_not_started(how.code, child.stderr_tail)
        assert failure(child.stderr_tail, job.overlay.folder) == "No overlay: layer failed (ENOENT)."
        assert not (tree.root / "made").exists()
        job.begin()


async def test_what_a_worker_says_itself_is_no_failure_of_ours(tree: Tree, tmp_path: Path) -> None:
    """Only with the exit code and the line."""
    with layered(tree, tmp_path / "state" / "work") as job:
        child = await start(
            job.overlay.wrap(python("import os; print(1); os._exit(125)"), str(tree.root)), Heard()
        )
        how = await ended(child)
        assert how == Exit(code=125)
        assert not was_not_started(how.code, child.stderr_tail)
        assert not was_not_started(0, "laneway-overlay overlay 1\n")


LANDLOCK = """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
writes = sum(1 << bit for bit in (1, *range(4, 13)))
rules = libc.syscall(444, struct.pack("=Q", writes), 8, 0)
if rules < 0:
    print("none")
    raise SystemExit
here = os.open(os.getcwd(), os.O_PATH)
assert libc.syscall(445, rules, 1, struct.pack("=Qi", writes, here), 0) == 0
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.syscall(446, rules, 0) == 0
for path in ("in", "src/in", "../outside", "/tmp/laneway-outside"):
    try:
        open(path, "w").write("x")
        print("ok")
    except PermissionError:
        print("refused")
os.unlink("a.txt")
"""


def test_landlock_confines_a_worker_in_an_overlay(tree: Tree, tmp_path: Path) -> None:
    """The other sandbox of Codex, for systems where it cannot mount anything."""
    with layered(tree, tmp_path / "state" / "work") as job:
        answers = job.python(LANDLOCK).split()
        if answers == ["none"]:
            pytest.skip("this kernel has no Landlock")
        assert answers == ["ok", "ok", "refused", "refused"]
        assert set(job.changed()) == {"in", "src/in", "a.txt"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs an administrator, who becomes nobody")
def test_nobody_in_particular_can_have_an_overlay() -> None:
    """Their ids stay theirs, they have no rights inside, and cannot lift the layer off."""
    folder = Path(tempfile.mkdtemp(prefix="laneway-", dir="/var/tmp"))
    folder.chmod(0o755)
    try:
        tree = Tree(folder)
        tree.write("a.txt", "one\n")
        tree.commit()
        with layered(tree, folder / "state" / "work") as job:
            program = shutil.copy(
                Path(sys.modules["laneway.jobs.isolation.overlay"].__file__ or "").with_name(
                    "overlay_mount.py"
                ),
                folder,
            )
            subprocess.run(["chown", "-R", "65534:65534", str(folder)], check=True)
            script = (
                "id -u; id -g; grep CapEff /proc/self/status; rm a.txt; echo x > b.txt; "
                "unshare -Um umount $PWD 2>&1; umount $PWD 2>&1; cat a.txt b.txt 2>&1"
            )
            words = job.overlay.wrap(["bash", "-c", script], str(tree.root))
            words[:4] = ["/usr/bin/python3", "-I", "-S", str(program)]
            ran = subprocess.run(
                words, user=65534, group=65534, extra_groups=[], capture_output=True, text=True, check=False
            )
            lines = ran.stdout.splitlines()
            assert lines[:3] == ["65534", "65534", "CapEff:\t0000000000000000"], ran
            assert lines[-2:] == ["cat: a.txt: No such file or directory", "x"]
            subprocess.run(["chown", "-R", "0:0", str(folder)], check=True)
            assert {change.path for change in job.edits().changes} == {"a.txt", "b.txt"}
            assert (tree.root / "a.txt").read_text() == "one\n"
    finally:
        shutil.rmtree(folder)
