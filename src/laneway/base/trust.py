"""The trust file: which settings of which repositories the user trusts, as they were when trust was given.

Owns one small file in our state folder. An entry is for one settings file of one repository, both by
their real paths, and has a digest of every setting in it, with a text for people. A repository that
moves, or that is reached through a link to another place, is another repository; a file that has
changed is not trusted any more. With a trust file that is damaged, newer, or writable by others,
nothing is trusted. Only `laneway config trust|untrust` writes it.
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
from laneway.base.kinds import to_text
from laneway.base.paths import state_home

VERSION = 2
MAX_FILE_BYTES = 4 * 1024 * 1024
"""Thousands of repositories; a larger file is not ours."""
MAX_TEXT_CHARS = 500
"""Of a setting's text: enough to see what changed, whatever a repository puts there."""
LOCK_S = 5.0
"""To wait for another writer, who needs milliseconds; one that needs longer is stopped or stuck."""


def trust_file(environment: Mapping[str, str], home: Path) -> Path:
    """`$XDG_STATE_HOME/laneway/trust.json`."""
    return state_home(environment, home) / "trust.json"


class Fingerprint(msgspec.Struct, frozen=True):
    """One setting as it was when trust was given."""

    digest: str
    """Of the value, and of the content of the file that it names."""
    text: str
    """For people; never compared."""


class TrustedFile(msgspec.Struct, frozen=True):
    """A settings file that the user trusts, with its settings at that time."""

    root: str
    file: str
    settings: dict[str, Fingerprint]


class Trust(msgspec.Struct, frozen=True):
    """The content of the trust file."""

    entries: tuple[TrustedFile, ...] = ()
    folders: frozenset[str] = frozenset()
    """Folders that version 1 trusted, whatever their settings. Nothing is trusted because of this."""
    problem: str | None = None
    """Why the trust file cannot be used, if so; then nothing is trusted."""

    def entry(self, root: Path, file: Path) -> TrustedFile | None:
        """The entry of these real paths. The caller resolves links, once."""
        return next((each for each in self.entries if (each.root, each.file) == (str(root), str(file))), None)


def read(file: Path) -> Trust:
    """Read the trust file. Never raises: in doubt, nothing is trusted."""
    try:
        return _read(file)
    except StoreError as problem:
        return Trust(problem=str(problem))


def give(file: Path, root: Path, settings: Mapping[Path, Mapping[str, Fingerprint]]) -> bool:
    """Trust settings files of a repository as they are. Returns whether that changed anything."""
    name = os.path.realpath(root)
    entries = tuple(
        TrustedFile(
            name,
            str(path),
            {
                key: Fingerprint(fingerprint.digest, _short(fingerprint.text))
                for key, fingerprint in each.items()
            },
        )
        for path, each in settings.items()
    )

    def changed(old: Trust) -> Trust:
        replaced = {(entry.root, entry.file) for entry in entries}
        others = tuple(each for each in old.entries if (each.root, each.file) not in replaced)
        return Trust((*others, *entries), old.folders - {name})

    return _change(file, changed)


def take_back(file: Path, root: Path) -> bool:
    """Trust nothing of a repository any more. Returns whether that changed anything."""
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
            f"The trust file {to_text(file)} cannot be written ({problem.strerror}): make its folder yours.",
            str(file),
        ) from problem


def _key(entry: TrustedFile) -> tuple[Any, ...]:
    digests = tuple(sorted((name, fingerprint.digest) for name, fingerprint in entry.settings.items()))
    return entry.root, entry.file, digests


def _read(file: Path) -> Trust:
    import json  # paths may contain bytes that are no UTF-8; msgspec refuses their escapes

    remedy = "remove it, then trust your repositories again"
    try:
        fd = open_regular(file)
        try:
            status = os.fstat(fd)
            raw = read_open(fd, MAX_FILE_BYTES, file)
        finally:
            os.close(fd)
    except FileNotFoundError:
        return Trust()
    except OSError as problem:
        raise StoreError(
            f"The trust file {to_text(file)} cannot be read ({problem.strerror}): {remedy}.", str(file)
        ) from problem
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022:
        raise StoreError(
            f"The trust file {to_text(file)} can be written by others: make it yours with mode 600.",
            str(file),
        )
    try:
        data: Any = json.loads(raw)
    except (ValueError, RecursionError):
        data = None
    version = data.get("version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise FileNewer(to_text(file), version, VERSION)
    try:
        if version == 1:
            return Trust(folders=frozenset(_texts(data["trusted"])))
        if version == VERSION:
            entries = tuple(_entry(each) for each in _list(data["trusted"]))
            return Trust(entries, frozenset(_texts(data["folders_of_version_1"])))
    except (KeyError, TypeError):
        pass
    raise FileDamaged(f"The trust file {to_text(file)} is damaged: {remedy}.", str(file))


def _entry(data: Any) -> TrustedFile:
    root, file = _texts([data["root"], data["file"]])
    settings = {}
    for key, fingerprint in data["settings"].items() if isinstance(data["settings"], dict) else _wrong():
        settings[key] = Fingerprint(*_texts([fingerprint["digest"], fingerprint["text"]]))
    return TrustedFile(root, file, settings)


def _texts(data: Any) -> list[str]:
    return [each if isinstance(each, str) else _wrong() for each in _list(data)]


def _list(data: Any) -> list[Any]:
    return data if isinstance(data, list) else _wrong()


def _wrong() -> Any:
    raise TypeError


def _write(file: Path, trust: Trust) -> None:
    """Replace the file; a crash leaves the old one or the new one."""
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
            f"The trust file {to_text(file)} is full: `laneway config untrust DIR` makes room.", str(file)
        )
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")  # the lock makes it ours alone
    temporary.unlink(missing_ok=True)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(fd)
        os.replace(temporary, file)
    except OSError:
        temporary.unlink(missing_ok=True)
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
        deadline = time.monotonic() + LOCK_S
        while not _take(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if time.monotonic() > deadline:
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
