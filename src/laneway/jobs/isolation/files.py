"""Writes the files of a snapshot into an empty folder of ours: contents, links, modes, empty folders.

Contents come from the shadow, so that they are those of the snapshot whatever the user does meanwhile. Of a
file that is too large for that, the user's own is copied if it is still the same. Every step is relative to
an open folder: a path may be longer than the system takes at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from laneway.base.errors import TreeRefused
from laneway.base.plain import code_label
from laneway.jobs.shadow import Shadow
from laneway.jobs.snapshots.beneath import CHUNK_BYTES, FOLDER, look_of, open_file, open_root, opened
from laneway.jobs.snapshots.beside import ROOT
from laneway.jobs.snapshots.index import IndexedFolder
from laneway.jobs.snapshots.model import PathState
from laneway.jobs.snapshots.paths import bytes_of
from laneway.jobs.snapshots.reading import fingerprint
from laneway.store.files import write_all

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Files:
    """The folder, open; nobody else writes there yet."""

    def __init__(self, top: Path, original: Path) -> None:
        self._top = top
        self._original = original
        self._root = -1
        self._folder = b""
        self._fd = -1
        self.written: dict[bytes, IndexedFolder] = {b"": IndexedFolder(looks={}, blobs={})}
        """By folder, what the files looked like when they were written."""

    def __enter__(self) -> Self:
        self._root = open_root(self._top)
        self._fd = os.dup(self._root)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)
        os.close(self._root)

    def make_folders(self, folders: Mapping[str, int]) -> None:
        """With all rights for us until all is in them."""
        for path in sorted(bytes_of(key[:-1]) for key in folders if key != ROOT):
            folder, name = self._enter(path)
            os.mkdir(name, 0o700, dir_fd=folder)
            self.written[path] = IndexedFolder(looks={}, blobs={})

    def make_files(self, states: Mapping[str, PathState], shadow: Shadow) -> None:
        by_blob: dict[str, list[str]] = {}
        for path, state in states.items():
            if state.blob:
                by_blob.setdefault(state.blob, []).append(path)
        for blob, data in shadow.contents(states.values()):
            for path in by_blob[blob]:
                self._make(path, states[path], data)
        for path, state in states.items():
            if state.kind == "file" and not state.blob:
                self._copy_large(path, state)

    def set_modes(self, folders: Mapping[str, int]) -> None:
        """The innermost first: afterwards nothing may be possible in them."""
        paths = {bytes_of(key[:-1]): mode for key, mode in folders.items() if key != ROOT}
        for path in sorted(paths, reverse=True):
            folder, name = self._enter(path)
            os.chmod(name, paths[path], dir_fd=folder)
        os.fchmod(self._root, folders.get(ROOT, 0o755))

    def _make(self, path: str, state: PathState, data: bytes) -> None:
        folder, name = self._enter(bytes_of(path))
        if state.kind == "link":
            os.symlink(data, name, dir_fd=folder)
            self._note(name, state, os.stat(name, dir_fd=folder, follow_symlinks=False))
            return
        fd = os.open(name, _NEW, 0o600, dir_fd=folder)
        try:
            write_all(fd, data)
            os.fchmod(fd, state.mode)
            self._note(name, state, os.fstat(fd))
        finally:
            os.close(fd)

    def _note(self, name: bytes, state: PathState, status: os.stat_result) -> None:
        files = self.written[self._folder]
        files.looks[name] = look_of(status)
        files.blobs[name] = bytes.fromhex(state.blob)

    def _copy_large(self, path: str, state: PathState) -> None:
        folder, name = self._enter(bytes_of(path))
        original = open_root(self._original)
        try:
            with opened(original, bytes_of(path).split(b"/")[:-1]) as theirs:
                source = open_file(theirs, name)
        except OSError:
            raise _changed(path) from None
        finally:
            os.close(original)
        try:
            target = os.open(name, _NEW, 0o600, dir_fd=folder)
            try:
                while piece := os.read(source, CHUNK_BYTES):
                    write_all(target, piece)
                os.fchmod(target, state.mode)
            finally:
                os.close(target)
            os.lseek(source, 0, os.SEEK_SET)
            if fingerprint(source, look_of(os.fstat(source))) != state.fingerprint:
                raise _changed(path)
        finally:
            os.close(source)

    def _enter(self, path: bytes) -> tuple[int, bytes]:
        """The folder of a path, open, and its name in it. It stays open for the next one."""
        folder, _, name = path.rpartition(b"/")
        if folder != self._folder:
            fd = os.dup(self._root)
            for part in folder.split(b"/") if folder else ():
                below = os.open(part, FOLDER, dir_fd=fd)
                os.close(fd)
                fd = below
            os.close(self._fd)
            self._folder, self._fd = folder, fd
        return self._fd, name


def _changed(path: str) -> TreeRefused:
    return TreeRefused(f"{code_label(path)} was changed while it was copied: start the job again.", path)
