"""The contents of snapshots: a git repository of our own, with the user's contents to read from.

Contents are named as git names them, so that those which the user's repository has need not be stored
again. New ones go into a pack in one piece. Nothing is ever removed here, and no reference is needed:
git collects no garbage in it. The user's repository is only read, through an environment variable, so
that it is always known what is ours alone.
"""

from __future__ import annotations

import errno
import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from laneway.base.errors import ContentGone, StoreError
from laneway.store.files import make_folder, trouble, write_whole
from laneway.wire.git import APART, GitRun, git_apart

ObjectType: TypeAlias = Literal["blob", "tree"]

BATCH_BYTES = 32 * 1024 * 1024
"""New contents that are collected before they are written, and contents that are read at once."""
FEW = 100
"""Objects that are written each as a file; more become a pack. As git does it."""
STORING_S = 600.0
"""For a command that writes or reads a whole batch, on a slow disk."""
_PACKED = {"tree": 2, "blob": 3}
_SETTINGS = """\
[core]
\trepositoryformatversion = {version}
\tbare = true
\tlogallrefupdates = false
\tsharedrepository = 0600
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
_SAFE = ("-c", "core.fsync=objects", "-c", "core.fsyncMethod=batch")
"""A snapshot survives a power cut."""


def object_id(kind: ObjectType, data: bytes, algorithm: str) -> str:
    """The name that git gives to a content."""
    digest = hashlib.new(algorithm, b"%s %d\0" % (kind.encode(), len(data)), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


class Objects:
    """Contents by their id. One writer at a time: the caller holds the shadow's gate."""

    def __init__(self, folder: Path, algorithm: str, lenders: tuple[str, ...] = ()) -> None:
        """`lenders` are folders of other repositories' contents."""
        self.folder = folder
        self.algorithm = algorithm
        self._own = {**APART, "GIT_DIR": str(folder)}
        self._all = {**self._own, "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(_quoted, lenders))}
        self._new: dict[str, bytes] = {}
        self._size = 0

    def prepare(self) -> None:
        """Make the repository, if it is not there."""
        if (self.folder / "HEAD").exists():
            return
        for name in ("objects/info", "objects/pack", "refs"):
            make_folder(self.folder / name)
        version = 0 if self.algorithm == "sha1" else 1
        more = "" if version == 0 else f"[extensions]\n\tobjectformat = {self.algorithm}\n"
        write_whole(self.folder / "config", (_SETTINGS.format(version=version) + more).encode())
        write_whole(self.folder / "HEAD", b"ref: refs/heads/none\n")  # last: by it git knows a repository

    def id_of(self, kind: ObjectType, data: bytes) -> str:
        return object_id(kind, data, self.algorithm)

    # ── writing ────────────────────────────────────────────────────────────

    def add(self, kind: ObjectType, data: bytes, *, name: str = "") -> str:
        """Collect a content. It is stored at the next `flush`, or before, when there are many."""
        name = name or self.id_of(kind, data)
        if name not in self._new:
            packed = zlib.compress(data, 1)
            self._new[name] = _head(_PACKED[kind], len(data)) + packed
            self._size += len(packed)
            if self._size > BATCH_BYTES:
                self.flush()
        return name

    def flush(self) -> None:
        """Store what was collected; when this returns, it is on disk."""
        if len(self._new) >= FEW:  # one by one, git leaves out itself what is there
            new = self.missing(self._new, own=True)
            self._new = {name: self._new[name] for name in new}
        if not self._new:
            self._size = 0
            return
        pack = b"".join([b"PACK\0\0\0\2", len(self._new).to_bytes(4, "big"), *self._new.values()])
        pack += hashlib.new(self.algorithm, pack, usedforsecurity=False).digest()
        command = ("unpack-objects", "-q") if len(self._new) < FEW else ("index-pack", "--stdin")
        ran = git_apart(self.folder, *_SAFE, *command, stdin=pack, timeout_s=STORING_S, place=self._own)
        if ran.exit_code != 0:
            raise _failed(self.folder, ran)
        self._new, self._size = {}, 0

    def keep(self, names: Iterable[str]) -> list[str]:
        """Copy contents that only a lender has: it may throw them away. Those that it has thrown away."""
        lent = self.missing(names, own=True)
        gone = self.missing(lent)
        for name, data in self.contents(name for name in lent if name not in gone):
            self.add("blob", data, name=name)
        self.flush()
        return gone

    # ── reading ────────────────────────────────────────────────────────────

    def missing(self, names: Iterable[str], *, own: bool = False) -> list[str]:
        """Which of these are not stored: nowhere, or not by us (`own`)."""
        return [name for name, size in self._sizes(names, own=own).items() if size is None]

    def contents(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The contents, each read and checked once. `ContentGone` for one that is missing or damaged."""
        batch: list[str] = []
        size = 0
        for name, more in self._sizes(names, own=False).items():
            if more is None:
                raise ContentGone(name)
            if batch and size + more > BATCH_BYTES:
                yield from self._read(batch, size)
                batch, size = [], 0
            batch.append(name)
            size += more
        yield from self._read(batch, size)

    def read(self, name: str) -> bytes:
        """One content; also by a path in a tree, such as `<id>:beside`, which is not checked."""
        if ":" in name:
            ran = self.git("cat-file", "blob", name, max_bytes=8 * BATCH_BYTES)
            if ran.exit_code != 0 or ran.is_cut:
                raise ContentGone(name)
            return ran.stdout
        return next(iter(self.contents([name])))[1]

    def git(self, *words: str, stdin: bytes = b"", max_bytes: int = BATCH_BYTES) -> GitRun:
        """A command that reads, with all contents at hand."""
        return git_apart(
            self.folder, *words, stdin=stdin, max_bytes=max_bytes, timeout_s=STORING_S, place=self._all
        )

    def _sizes(self, names: Iterable[str], *, own: bool) -> Mapping[str, int | None]:
        asked = list(dict.fromkeys(names))
        if not asked:
            return {}
        ran = git_apart(
            self.folder,
            "cat-file",
            "--batch-check=%(objectname) %(objectsize)",
            stdin="\n".join([*asked, ""]).encode(),
            max_bytes=len(asked) * 128,
            timeout_s=STORING_S,
            place=self._own if own else self._all,
        )
        lines = ran.stdout.decode().splitlines()
        if ran.exit_code != 0 or len(lines) != len(asked):
            raise _failed(self.folder, ran)
        words = [line.partition(" ")[2] for line in lines]
        return {name: int(word) if word.isdigit() else None for name, word in zip(asked, words, strict=True)}

    def _read(self, names: list[str], size: int) -> Iterator[tuple[str, bytes]]:
        if not names:
            return
        stdin = "\n".join([*names, ""]).encode()
        ran = self.git("cat-file", "--batch", stdin=stdin, max_bytes=size + len(names) * 128)
        place = 0
        for name in names:
            end = ran.stdout.find(b"\n", place)
            words = ran.stdout[place:end].split(b" ")
            if end < 0 or len(words) != 3 or not words[2].isdigit():
                raise ContentGone(name)
            start = end + 1
            place = start + int(words[2]) + 1
            data = ran.stdout[start : place - 1]
            if object_id("blob", data, self.algorithm) != name:
                raise ContentGone(name)
            yield name, data


def _head(kind: int, size: int) -> bytes:
    """The type and the size of an object in a pack: four bits, then seven at a time, the lowest first."""
    head = bytearray()
    byte, size = (kind << 4) | (size & 15), size >> 4
    while size:
        head.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    head.append(byte)
    return bytes(head)


def _quoted(folder: str) -> str:
    """A folder in git's list of folders, whatever characters it has."""
    escaped = folder.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _failed(folder: Path, ran: GitRun) -> StoreError:
    from laneway.base.disk import is_disk_full

    if is_disk_full(folder):
        return trouble(folder, OSError(errno.ENOSPC, ""))
    line = ran.error.partition("\n")[0] or "it was ended"
    return StoreError(f"Git could not work in {folder}: {line}", str(folder))
