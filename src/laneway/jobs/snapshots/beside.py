"""The part of a snapshot that a git tree cannot hold: modes, large files, times, what is not covered."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeVar

from laneway.jobs.snapshots.index import IndexedFolder
from laneway.jobs.snapshots.model import Beside
from laneway.jobs.snapshots.paths import bytes_of, text_of
from laneway.jobs.snapshots.reading import LARGE

T = TypeVar("T")
USUAL = (0o644, 0o755, 0o755)
"""Modes of files, programs and folders where there are none to count."""
ROOT = "/"
"""The work tree itself among the folders."""


def usual_modes(folders: Mapping[bytes, IndexedFolder]) -> tuple[int, int, int]:
    """The most common modes of files, programs and folders: only others need to be written down."""
    modes = Counter(look[0] for folder in folders.values() for look in folder.looks.values())
    files = [(count, stat.S_IMODE(mode)) for mode, count in modes.items() if stat.S_ISREG(mode)]
    plain = max(((count, mode) for count, mode in files if not mode & 0o100), default=(0, USUAL[0]))
    program = max(((count, mode) for count, mode in files if mode & 0o100), default=(0, USUAL[1]))
    folder = max(Counter(folder.mode for folder in folders.values()).items(), key=lambda item: item[::-1])
    return plain[1], program[1], folder[0]


def beside_of(folders: Mapping[bytes, IndexedFolder], usual: tuple[int, int, int], since_ns: int) -> Beside:
    modes: dict[str, int] = {}
    times: dict[str, int] = {}
    large: dict[str, tuple[str, int]] = {}
    other: dict[str, str] = {}
    unguarded: dict[str, str] = {}
    gone: list[str] = []
    plain, program = stat.S_IFREG | usual[0], stat.S_IFREG | usual[1]
    for path, folder in folders.items():
        prefix = path + b"/" if path else b""
        if folder.mode != usual[2]:
            modes[folder_key(path)] = folder.mode
        if folder.changed_ns >= since_ns:
            times[folder_key(path)] = folder.changed_ns
        for name, (mode, _, _, changed_ns, _) in folder.looks.items():
            if mode != plain and mode != program and not stat.S_ISLNK(mode):
                modes[text_of(prefix + name)] = stat.S_IMODE(mode)
            if changed_ns >= since_ns:
                times[text_of(prefix + name)] = changed_ns
        for name, what in folder.odd.items():
            text, mode = text_of(prefix + name), folder.looks[name][0]
            modes[text] = stat.S_IMODE(mode)
            if what.startswith(LARGE):
                large[text] = (what.removeprefix(LARGE), folder.looks[name][1])
            else:
                other[text] = what
        for name, why in folder.unguarded.items():
            key = folder_key(prefix + name[:-1]) if name.endswith(b"/") else text_of(prefix + name)
            unguarded[key] = why
        gone.extend(text_of(prefix + name) for name in folder.gone)
    return Beside(
        file_mode=usual[0],
        program_mode=usual[1],
        folder_mode=usual[2],
        modes=_ordered(modes),
        large=_ordered(large),
        other=_ordered(other),
        unguarded=_ordered(unguarded),
        gone=tuple(sorted(gone)),
        times=_ordered(times),
    )


def parents_of(text: str) -> Iterator[str]:
    """The keys of the folders that a path is in, the nearest first, down to the work tree itself."""
    path = bytes_of(text)
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield folder_key(path)
    yield ROOT


def folder_key(path: bytes) -> str:
    """A folder among paths as text. No file has it: it ends with a slash."""
    return f"{text_of(path)}/" if path else ROOT


def _ordered(facts: dict[str, T]) -> dict[str, T]:
    return dict(sorted(facts.items()))
