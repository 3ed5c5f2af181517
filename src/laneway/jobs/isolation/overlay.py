"""A layer above a work tree for one job (Linux): the worker has the tree at its own path, and changes none.

The mounts belong to the worker's processes (`laneway.jobs.isolation.overlay_mount`) and end with them;
what is left is the folder with all that they wrote, which `laneway.jobs.isolation.layer` reads. Where
git's folder lies outside of the tree, as for a linked work tree or a submodule, it has a layer, too.

What the user, or another job's merge, changes in the tree meanwhile may show in the layer's view or may
not: the kernel promises neither. What the job did is told from its own writes all the same.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from laneway.base.errors import TreeRefused
from laneway.base.foreign_files import read_regular
from laneway.base.plain import code_label
from laneway.jobs.isolation.edits import Edits
from laneway.jobs.isolation.layer import Layers, read_layers
from laneway.jobs.isolation.overlay_mount import FAILED, MARK
from laneway.jobs.isolation.removal import remove
from laneway.jobs.shadow import Shadow
from laneway.jobs.snapshots.model import Snapshot, Unguarded
from laneway.jobs.snapshots.work_tree import refused, work_tree
from laneway.store.files import make_folder, trouble
from laneway.wire.git import git

PROGRAM = os.path.join(os.path.dirname(__file__), "overlay_mount.py")
PROBE_S = 10.0
"""For a trial, which takes 0.03 s."""
MAX_INDEX_BYTES = 512 * 1024 * 1024
MAX_LISTED_BYTES = 16 * 1024 * 1024
INDEX = "index"
"""A copy of git's index as it was when the layer was begun."""
NO_LINUX = "An overlay needs Linux: use isolation worktree."
_APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"


class Overlay(msgspec.Struct, frozen=True):
    """The layers of one job. The folder lies outside of the tree and has nothing else in it."""

    folder: Path
    covered: tuple[str, ...]
    """The folders that have layers, those around others first."""
    tree: str
    """One of them; links resolved."""
    git_dir: str
    """Of the tree; a linked one has its own within the repository's."""

    @classmethod
    def of(cls, tree: Path, folder: Path) -> Overlay:
        """`TreeRefused` if the tree is no top of a work tree."""
        facts = work_tree(tree)
        common = git(facts.top, "rev-parse", "--git-common-dir")
        if common.exit_code != 0 or not common.line:
            raise refused(tree, common)
        top = os.fspath(facts.top)
        outside = os.path.realpath(os.path.join(top, common.line))
        covered = {top} if is_below(outside, top) else {top, outside}
        return cls(folder, tuple(sorted(covered)), top, os.path.realpath(facts.git_dir))

    def layer(self, covered: str) -> Path:
        return self.folder / str(self.covered.index(covered))

    def upper(self, covered: str) -> Path:
        """The folder with what was written: deleted files are devices, replaced folders have an attribute."""
        return self.layer(covered) / "upper"

    @property
    def source(self) -> Path:
        return self.upper(self.tree)

    def begin(self, shadow: Shadow, baseline: Snapshot) -> tuple[Unguarded, ...]:
        """Make empty layers; what an earlier attempt left is removed. Nothing of the tree is missing."""
        self._make()
        try:
            self._copy_index()
        except OSError as problem:
            raise trouble(self.folder, problem) from problem
        return ()

    def place_of(self, path: str) -> str:
        """Where the worker has what lies at a path: there."""
        return path

    def wrap(self, argv: Sequence[str], cwd: str) -> list[str]:
        """The words of a program that becomes `argv` in place, with the layers mounted."""
        return [*self._words("run"), cwd, *self._pairs(), "--", *argv]

    def read(self, shadow: Shadow, baseline: Snapshot) -> Edits:
        """What the job changed. `shadow` is that of the tree: what the job has left is stored in it."""
        uppers = {covered: self.upper(covered) for covered in self.covered}
        layers = Layers(self.tree, uppers, self.git_dir, self.folder / INDEX)
        return read_layers(layers, shadow, baseline)

    def try_out(self) -> str:
        """Why this does not work here; empty if it does."""
        self._make()
        try:
            ran = subprocess.run(
                [*self._words("probe"), *self._pairs()],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return "An overlay could not be tried out: the trial did not end."
        said = ran.stderr.decode("utf-8", "replace")
        return "" if ran.returncode == 0 else failure(said, self.folder) or _unknown(said)

    def _make(self) -> None:
        remove(self.folder)
        try:
            for covered in self.covered:
                make_folder(self.layer(covered))
                (self.layer(covered) / "work").mkdir(0o700)
                self.upper(covered).mkdir(0o700)
                _be_like(self.upper(covered), covered)
        except OSError as problem:
            raise trouble(self.folder, problem) from problem

    def _words(self, mode: str) -> list[str]:
        return [sys.executable, "-I", "-S", PROGRAM, mode]

    def _pairs(self) -> Iterator[str]:
        for covered in self.covered:
            yield from (os.fspath(self.layer(covered)), covered)

    def _copy_index(self) -> None:
        try:
            data = read_regular(os.path.join(self.git_dir, "index"), MAX_INDEX_BYTES)
        except OSError:
            return  # no file was ever added, or git will complain itself
        (self.folder / INDEX).write_bytes(data)


def available(tree: Path, near: Path, codex_home: str = "") -> str:
    """Why a tree cannot have layers below the folder `near`, as a sentence; empty if it can.

    It is tried out, which takes 0.05 s. What Codex writes into its home must not end up in a layer.
    """
    if sys.platform != "linux":
        return NO_LINUX
    top = os.path.realpath(tree)
    if is_below(os.path.realpath(near), top):
        return f"No overlay: Laneway's state folder {code_label(str(near))} lies in the work tree."
    if codex_home and is_below(os.path.realpath(codex_home), top):
        return f"No overlay: Codex's home {code_label(codex_home)} lies in the work tree."
    inside = next((point for point in mount_points() if is_below(point, top) and point != top), None)
    if inside is not None:
        return f"No overlay: something else is mounted in the work tree, at {code_label(inside)}."
    make_folder(near)
    folder = Path(tempfile.mkdtemp(prefix="probe-", dir=near))
    try:
        return Overlay.of(tree, folder / "layers").try_out()
    except TreeRefused as problem:
        return str(problem)
    finally:
        remove(folder)


def failure(stderr: str, folder: Path) -> str:
    """Why a worker was not started, from what its wrapper said; empty if that was not the reason.

    Its exit code is then `overlay_mount.FAILED`. `folder` is that of the layers.
    """
    for line in stderr.splitlines():
        words = line.split(" ")
        if len(words) == 3 and words[0] == MARK and words[2].isdigit():
            return _sentence(words[1], int(words[2]), folder)
    return ""


def was_not_started(code: int | None, stderr: str) -> bool:
    return code == FAILED and bool(failure(stderr, Path("/")))


def _sentence(step: str, number: int, folder: Path) -> str:
    code = errno.errorcode.get(number, str(number))
    kind = file_system_of(os.fspath(folder))
    match step:
        case "namespaces" if number in (errno.ENOSPC, errno.EUSERS):
            return "No overlay: user namespaces are switched off, or used up (user.max_user_namespaces)."
        case "namespaces" | "ids":
            return f"No overlay: users may make no user namespaces here ({code}), as in many containers."
        case "private" | "overlay" if number in (errno.EPERM, errno.EACCES) and _is_set(_APPARMOR):
            return "No overlay: AppArmor lets programs mount nothing in user namespaces of their own."
        case "overlay" if number == errno.ENODEV:
            return "No overlay: the kernel has no overlay file system."
        case "overlay" if number == errno.EPERM:
            return "No overlay: users may mount none here; Linux 5.11 or newer is needed."
        case "attributes":
            return f"No overlay: {kind}, where Laneway's state is kept, has no attributes ({code})."
        case "overlay" | "delete" | "replace":
            return (
                f"No overlay: it does not work on the file systems of this work tree and of {kind} ({code})."
            )
        case "cwd":
            return f"The folder to work in cannot be entered ({code})."
        case "exec":
            return f"Codex cannot be started ({code})."
    return f"No overlay: {step} failed ({code})."


def _unknown(said: str) -> str:
    return f"An overlay could not be tried out: {code_label(said.strip().rpartition(chr(10))[2])}"


# ── what is mounted ────────────────────────────────────────────────────────


def is_below(path: str, folder: str) -> bool:
    """Whether it is the folder, or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def mount_points() -> list[str]:
    return [point for point, _ in _mounts()]


def file_system_of(path: str) -> str:
    """The kind of the file system that a path is on, as far as it is known."""
    found = [(point, kind) for point, kind in _mounts() if is_below(os.path.realpath(path), point)]
    return max(found, key=lambda mount: len(mount[0]), default=("", "an unknown kind"))[1]


def _mounts() -> Iterator[tuple[str, str]]:
    try:
        lines = Path("/proc/self/mountinfo").read_bytes()[:MAX_LISTED_BYTES].splitlines()
    except OSError:
        return
    for line in lines:
        words, _, more = line.partition(b" - ")
        fields, kinds = words.split(b" "), more.split(b" ")
        if len(fields) > 4 and kinds[0]:
            yield os.fsdecode(_plain(fields[4])), os.fsdecode(kinds[0])


def _plain(word: bytes) -> bytes:
    """The kernel spells blanks and backslashes in octal."""
    first, *rest = word.split(b"\\")
    return first + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in rest)


def _is_set(path: str) -> bool:
    try:
        return read_regular(path, 16).strip() not in (b"", b"0")
    except OSError:
        return False


def _be_like(folder: Path, original: str) -> None:
    """The top of an overlay has the owner and the mode of its layer."""
    status = os.stat(original)
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()) and os.geteuid() == 0:
        os.chown(folder, status.st_uid, status.st_gid)
    os.chmod(folder, stat.S_IMODE(status.st_mode))
