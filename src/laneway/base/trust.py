"""Which settings of which repositories the user trusts: what was seen when trust was given.

Owns one small file in our state folder. An entry is for one settings file of one repository, both by
their real paths, and holds a digest of every setting that was seen in it, with a text to tell it by.
A repository that moves, or that is reached through a link to another place, is another repository;
a file that says something else is not trusted any more. A trust file that is damaged, newer, or open
to others means that nothing is trusted. Only `laneway config trust|untrust` writes it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.disk import full_text, is_full
from laneway.base.errors import FileDamaged, FileNewer, StoreError
from laneway.base.foreign_files import open_regular, read_open
from laneway.base.kinds import shown
from laneway.base.paths import state_home

VERSION = 2
MAX_FILE_BYTES = 4 * 1024 * 1024
"""Thousands of repositories; more is not ours."""
MAX_TEXT_CHARS = 500
"""Of a setting as it was shown: enough to tell what changed, whatever a repository puts there."""
LOCK_S = 5.0
"""To wait for another writer, who needs milliseconds; a longer one is stopped or stuck."""


def trust_file(environment: Mapping[str, str], home: Path) -> Path:
    """`$XDG_STATE_HOME/laneway/trust.json`."""
    return state_home(environment, home) / "trust.json"


class Fingerprint(msgspec.Struct, frozen=True):
    """One setting as it was seen."""

    digest: str
    """Of the value, and of the content of the file that it names."""
    text: str
    """To tell people by; never compared."""


class TrustedFile(msgspec.Struct, frozen=True):
    root: str
    file: str
    settings: dict[str, Fingerprint]


class Trust(msgspec.Struct, frozen=True):
    entries: tuple[TrustedFile, ...] = ()
    folders: frozenset[str] = frozenset()
    """What version 1 trusted, whatever it said. Nothing is trusted for being named here."""
    problem: str | None = None
    """Why nothing is trusted, where that is not for want of asking."""

    def entry(self, root: Path, file: Path) -> TrustedFile | None:
        """By real paths, letter by letter: links are for the caller to resolve, once."""
        return next((each for each in self.entries if (each.root, each.file) == (str(root), str(file))), None)


def read(file: Path) -> Trust:
    """What is trusted. Never raises: in doubt, nothing is."""
    try:
        return _read(file)
    except StoreError as problem:
        return Trust(problem=str(problem))


def give(file: Path, root: Path, settings: Mapping[Path, Mapping[str, Fingerprint]]) -> bool:
    """Trust what was seen in settings files of a repository. Tells whether that changed anything."""
    name = os.path.realpath(root)
    given = tuple(
        TrustedFile(
            name, str(path), {key: Fingerprint(seen.digest, _short(seen.text)) for key, seen in each.items()}
        )
        for path, each in settings.items()
    )

    def changed(old: Trust) -> Trust:
        replaced = {(entry.root, entry.file) for entry in given}
        others = tuple(each for each in old.entries if (each.root, each.file) not in replaced)
        return Trust((*others, *given), old.folders - {name})

    return _change(file, changed)


def take_back(file: Path, root: Path) -> bool:
    """Trust nothing of a repository any more. Tells whether that changed anything."""
    name = os.path.realpath(root)

    def changed(old: Trust) -> Trust:
        return Trust(tuple(each for each in old.entries if each.root != name), old.folders - {name})

    return _change(file, changed)


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARS else text[:MAX_TEXT_CHARS] + " …"


def _change(file: Path, change: Callable[[Trust], Trust]) -> bool:
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(file.parent):
            old = _read(file)
            new = change(old)
            if (set(map(_key, new.entries)), new.folders) == (set(map(_key, old.entries)), old.folders):
                return False
            _write(file, new)
            return True
    except OSError as problem:
        if is_full(problem):
            raise StoreError(f"Nothing was changed. {full_text(file.parent)}", str(file)) from problem
        raise StoreError(
            f"The trust file {shown(file)} cannot be written ({problem.strerror}): make its folder yours.",
            str(file),
        ) from problem


def _key(entry: TrustedFile) -> tuple[Any, ...]:
    digests = tuple(sorted((name, seen.digest) for name, seen in entry.settings.items()))
    return entry.root, entry.file, digests


def _read(file: Path) -> Trust:
    import json  # paths may hold bytes that are no UTF-8; msgspec refuses their escapes

    remedy = "remove it, then trust your repositories again"
    try:
        fd = open_regular(file)
        try:
            facts = os.fstat(fd)
            raw = read_open(fd, MAX_FILE_BYTES, file)
        finally:
            os.close(fd)
    except FileNotFoundError:
        return Trust()
    except OSError as problem:
        raise StoreError(
            f"The trust file {shown(file)} cannot be read ({problem.strerror}): {remedy}.", str(file)
        ) from problem
    if facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) & 0o022:
        raise StoreError(
            f"The trust file {shown(file)} can be written by others: make it yours with mode 600.", str(file)
        )
    try:
        data: Any = json.loads(raw)
    except (ValueError, RecursionError):
        data = None
    version = data.get("version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise FileNewer(shown(file), version, VERSION)
    try:
        if version == 1:
            return Trust(folders=frozenset(_texts(data["trusted"])))
        if version == VERSION:
            entries = tuple(_entry(each) for each in _list(data["trusted"]))
            return Trust(entries, frozenset(_texts(data["folders_of_version_1"])))
    except (KeyError, TypeError):
        pass
    raise FileDamaged(f"The trust file {shown(file)} is damaged: {remedy}.", str(file))


def _entry(data: Any) -> TrustedFile:
    root, file = _texts([data["root"], data["file"]])
    settings = {}
    for key, seen in data["settings"].items() if isinstance(data["settings"], dict) else _wrong():
        settings[key] = Fingerprint(*_texts([seen["digest"], seen["text"]]))
    return TrustedFile(root, file, settings)


def _texts(data: Any) -> list[str]:
    return [each if isinstance(each, str) else _wrong() for each in _list(data)]


def _list(data: Any) -> list[Any]:
    return data if isinstance(data, list) else _wrong()


def _wrong() -> Any:
    raise TypeError


def _write(file: Path, trust: Trust) -> None:
    """A crash leaves the old file or the new one."""
    import json

    data = {
        "version": VERSION,
        "trusted": [
            msgspec.to_builtins(each) for each in sorted(trust.entries, key=lambda e: (e.root, e.file))
        ],
        "folders_of_version_1": sorted(trust.folders),
    }
    text = json.dumps(data, indent=2) + "\n"
    if len(text) > MAX_FILE_BYTES:
        raise StoreError(
            f"The trust file {shown(file)} is full: `laneway config untrust DIR` makes room.", str(file)
        )
    fresh = file.with_name(f"{file.name}.{os.getpid()}.tmp")  # the lock makes it ours alone
    fresh.unlink(missing_ok=True)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as opened:
            opened.write(text.encode())
            opened.flush()
            os.fsync(fd)
        os.replace(fresh, file)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    folder = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time."""
    import fcntl

    fd = open_regular(folder / "trust.lock", os.O_RDWR | os.O_CREAT, follow_links=False)
    try:
        until = time.monotonic() + LOCK_S
        while not _take(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if time.monotonic() > until:
                raise StoreError("Another laneway is changing what is trusted: try again.", str(folder))
            time.sleep(0.02)
        yield
    finally:
        os.close(fd)


def _take(flock: Callable[[int, int], None], fd: int, how: int) -> bool:
    try:
        flock(fd, how)
    except BlockingIOError:
        return False
    return True
