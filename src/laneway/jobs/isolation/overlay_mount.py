"""Starts a program for which a folder is covered by an overlay: its writes go into a layer of ours (Linux).

A program of its own, started as `python -I -S overlay_mount.py run CWD LAYER FOLDER … -- ARGV…`. It makes a
user and a mount namespace, in which everybody keeps their ids, covers each FOLDER by an overlay on its own
path, and becomes ARGV in place: same process id, parent, session, streams, signal at the parent's death.
The mounts are gone with the last process that is in the namespace; nobody else ever sees them.

`probe LAYER FOLDER …` does the same without a program, and tries in LAYER what an overlay needs of a file
system. LAYER has the folders `upper` and `work`. What fails is told on standard error, as
`laneway-overlay STEP ERRNO`, with the exit code `FAILED`; ARGV is never started without its overlays.

Imports only modules of a bare interpreter, because every start of a worker waits for it.
"""

from __future__ import annotations

import errno
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # a bare interpreter starts without `typing`
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

FAILED = 125
MARK = "laneway-overlay"
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_REC = 0x4000
MS_SLAVE = 0x80000
PR_SET_PDEATHSIG = 1
PR_GET_PDEATHSIG = 2
O_PATH = 0o10000000
PLACE = O_PATH | os.O_DIRECTORY
IGNORED_BY_PYTHON = ("SIGPIPE", "SIGXFSZ")
"""A program would inherit that; it gets the defaults instead."""
NO_USER_NAMESPACES = (errno.EPERM, errno.ENOSPC, errno.EUSERS, errno.EINVAL)
MAX_BYTES = 1024 * 1024


class MountFailed(Exception):
    """A step that did not work."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(step, number)
        self.step = step
        self.number = number


def main(argv: list[str]) -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        if argv[1] == "probe":
            probe(argv[2], argv[2:])
            return 0
        end = argv.index("--")
        run(argv[2], argv[3:end], argv[end + 1 :])
    except MountFailed as problem:
        sys.stderr.write(f"{MARK} {problem.step} {problem.number}\n")
    return FAILED


def run(cwd: str, pairs: list[str], command: list[str]) -> None:
    """Become the command. Returns never: raises `MountFailed`."""
    libc = Libc()
    libc.enter_namespaces()
    for layer, folder in zip(pairs[::2], pairs[1::2]):  # noqa: B905  both have the same length
        libc.cover(layer, folder)
    attempt("cwd", lambda: os.chdir(cwd))
    libc.keep_death_signal()
    restore_locale()
    for name in IGNORED_BY_PYTHON:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    attempt("exec", lambda: os.execvp(command[0], command))


def probe(layer: str, pairs: list[str]) -> None:
    """Try it: also whether files can be deleted in a layer, and folders replaced."""
    place = os.path.join(layer, "probe")
    lower, inner = os.path.join(place, "lower"), os.path.join(place, "layer")
    for folder in (place, lower, inner, os.path.join(inner, "upper"), os.path.join(inner, "work")):
        attempt("layer", lambda: os.mkdir(folder))  # noqa: B023  called at once
    attempt("layer", lambda: os.close(os.open(os.path.join(lower, "file"), os.O_WRONLY | os.O_CREAT)))
    attempt("layer", lambda: os.mkdir(os.path.join(lower, "folder")))
    attempt("attributes", lambda: os.setxattr(place, b"user.laneway", b"y"))
    libc = Libc()
    libc.enter_namespaces()
    libc.cover(inner, lower)
    attempt("delete", lambda: os.unlink(os.path.join(lower, "file")))
    attempt("replace", lambda: os.rmdir(os.path.join(lower, "folder")))
    attempt("replace", lambda: os.mkdir(os.path.join(lower, "folder")))
    mark = attempt(
        "replace", lambda: os.getxattr(os.path.join(inner, "upper", "folder"), b"user.overlay.opaque")
    )
    if mark != b"y":
        raise MountFailed("replace", 0)
    for part, folder in zip(pairs[::2], pairs[1::2]):  # noqa: B905
        libc.cover(part, folder)


class Libc:
    """The system calls that Python does not have."""

    def __init__(self) -> None:
        import ctypes

        self._ctypes = ctypes
        self._c = ctypes.CDLL(None, use_errno=True)
        self._parent = os.getppid()
        self._death_signal = self._get_death_signal()

    def enter_namespaces(self) -> None:
        """A user namespace of our own, where everybody is who they were, and a mount namespace."""
        maps = Maps()
        try:
            self._call("namespaces", self._c.unshare(CLONE_NEWUSER | CLONE_NEWNS))
        except MountFailed as problem:
            maps.abandon()
            if os.geteuid() != 0 or problem.number not in NO_USER_NAMESPACES:
                raise
            # A system without user namespaces: its administrator needs none.
            self._call("namespaces", self._c.unshare(CLONE_NEWNS))
        else:
            maps.write()
        # What is mounted elsewhere later appears here, too; nothing of ours appears there.
        self._call("private", self._c.mount(None, b"/", None, MS_REC | MS_SLAVE, None))

    def cover(self, layer: str, folder: str) -> None:
        """Mount the overlay of a folder on its own path."""
        # By descriptors: names may have commas, colons and backslashes, and be longer than a page together.
        # Opened in the new namespace: mounts of another one cannot be used.
        below = attempt("folder", lambda: os.open(folder, PLACE))
        upper = attempt("layer", lambda: os.open(os.path.join(layer, "upper"), PLACE))
        work = attempt("layer", lambda: os.open(os.path.join(layer, "work"), PLACE))
        options = "lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d,userxattr"
        data = (options % (below, upper, work)).encode()
        target = b"/proc/self/fd/%d" % below
        self._call("overlay", self._c.mount(b"laneway", target, b"overlay", 0, data))
        if os.stat(folder).st_dev == os.fstat(below).st_dev:
            raise MountFailed("covered", 0)  # the path leads elsewhere
        for fd in (below, upper, work):
            os.close(fd)

    def keep_death_signal(self) -> None:
        """A change of rights may have taken away the signal that our parent's death sends us."""
        if self._death_signal and self._get_death_signal() != self._death_signal:
            self._c.prctl(PR_SET_PDEATHSIG, self._death_signal, 0, 0, 0)
            if os.getppid() != self._parent:
                os._exit(FAILED)  # it died before this call

    def _get_death_signal(self) -> int:
        number = self._ctypes.c_int()
        self._c.prctl(PR_GET_PDEATHSIG, self._ctypes.byref(number), 0, 0, 0)
        return number.value

    def _call(self, step: str, result: int) -> None:
        if result != 0:
            raise MountFailed(step, self._ctypes.get_errno())


class Maps:
    """The ids of a new user namespace: the same as outside.

    Anybody may map their own. All others, so that a file of somebody else's is still theirs, can be mapped
    by an administrator only, and only from outside: by a process that is made before.
    """

    def __init__(self) -> None:
        self._uid, self._gid = os.geteuid(), os.getegid()
        self._helper = 0
        if self._uid == 0:
            self._go_out, self._go_in = os.pipe()
            self._done_out, self._done_in = os.pipe()
            us = os.getpid()
            self._helper = os.fork()
            if self._helper == 0:
                os.close(self._go_in)
                self._help(us)
            os.close(self._go_out)
            os.close(self._done_in)

    def write(self) -> None:
        if self._helper and self._end_helper(b"y"):
            return
        put("/proc/self/setgroups", b"deny")
        put("/proc/self/uid_map", b"%d %d 1" % (self._uid, self._uid))
        put("/proc/self/gid_map", b"%d %d 1" % (self._gid, self._gid))

    def abandon(self) -> None:
        if self._helper:
            self._end_helper(b"")

    def _end_helper(self, word: bytes) -> bool:
        os.write(self._go_in, word)
        os.close(self._go_in)
        is_done = os.read(self._done_out, 1) == b"y"
        os.close(self._done_out)
        try:
            os.waitpid(self._helper, 0)
        except ChildProcessError:
            pass  # whoever started us ignores the ends of children
        return is_done

    def _help(self, pid: int) -> None:
        try:
            if os.read(self._go_out, 1) == b"y":
                for kind in ("uid_map", "gid_map"):
                    put(f"/proc/{pid}/{kind}", all_ids(f"/proc/self/{kind}"))
                os.write(self._done_in, b"y")
        except MountFailed:
            pass  # not an administrator in everything; own ids have to do
        finally:
            os._exit(0)


def all_ids(path: str) -> bytes:
    """A map of every id that exists here to itself."""
    with open(path, "rb") as file:
        ranges = [line.split() for line in file.read(MAX_BYTES).splitlines()]
    return b"".join(b"%s %s %s\n" % (first, first, count) for first, _, count in ranges)


def put(path: str, data: bytes) -> None:
    fd = attempt("ids", lambda: os.open(path, os.O_WRONLY))
    try:
        attempt("ids", lambda: os.write(fd, data))
    finally:
        os.close(fd)


def restore_locale() -> None:
    """Python changes `LC_CTYPE` for itself where the locale is C."""
    os.environ.pop("LC_CTYPE", None)
    with open("/proc/self/environ", "rb") as file:
        for entry in file.read().split(b"\0"):
            if entry.startswith(b"LC_CTYPE="):
                os.environ["LC_CTYPE"] = os.fsdecode(entry[len(b"LC_CTYPE=") :])


def attempt(step: str, action: Callable[[], T]) -> T:
    try:
        return action()
    except OSError as problem:
        raise MountFailed(step, problem.errno or 0) from problem


if __name__ == "__main__":
    sys.exit(main(sys.argv))
