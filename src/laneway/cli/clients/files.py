"""Reads a client's config whole, and replaces it atomically.

Keeps the mode, the group, symbolic links, a byte order mark and the line endings. Refuses what it
cannot read, what is meant to be read-only, and to overwrite a change that was made since the file
was read. Every failure is a `ClientFileError`: one sentence, and nothing half-written.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import msgspec

from laneway.base.errors import ClientFileError
from laneway.base.plain import plain
from laneway.cli.registrations import problem_text, read_bytes

PRIVATE = 0o600
"""A user's own config may come to hold keys."""
SHARED = 0o644
"""A project's config is for everyone who has the project."""
BOM = "\ufeff"


class FileSnapshot(msgspec.Struct, frozen=True):
    """A file as it was read. `data` is None if it does not exist yet."""

    file: Path
    """As it was named."""
    real: Path
    """Where its links lead."""
    data: bytes | None
    mode: int

    @property
    def text(self) -> str:
        return (self.data or b"").decode("utf-8-sig")

    def encoded(self, text: str) -> bytes:
        """As bytes for this file: with a byte order mark if it has one."""
        is_marked = (self.data or b"").startswith(BOM.encode())
        return ((BOM if is_marked else "") + text).encode()


def read(file: Path, new_mode: int = PRIVATE) -> FileSnapshot:
    """The file, which need not exist yet. Raises `ClientFileError`."""
    try:
        real = Path(os.path.realpath(file))
        data = read_bytes(real)
        mode = new_mode if data is None else stat.S_IMODE(os.stat(real).st_mode)
        (data or b"").decode("utf-8-sig")
    except OSError as problem:
        raise trouble(file, "read", problem) from problem
    except ValueError as problem:
        raise refused(file, problem_text(problem)) from problem
    return FileSnapshot(file, real, data, mode)


def refused(file: Path, why: str) -> ClientFileError:
    """The error for a file that is left as it is, with the reason."""
    remedy = "Correct it, then try again; nothing was written."
    return ClientFileError(f"{plain(str(file))} is left as it is: {plain(why)}. {remedy}", str(file))


def write(before: FileSnapshot, text: str) -> FileSnapshot:
    """Replace the file by this text, if it still is what was read. Raises `ClientFileError`."""
    try:
        data = before.encoded(text)
    except UnicodeEncodeError as problem:
        raise refused(before.file, "the command has bytes that are no text") from problem
    check_writable(before)
    fresh = before.real.with_name(f".{before.real.name}.{os.urandom(8).hex()}.laneway-tmp")
    created = _make_folders(before)
    try:
        _write_new(fresh, data, before)
        try:
            _check_unchanged(before)
            os.replace(fresh, before.real)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        _sync(before.real.parent)
    except BaseException as problem:
        remove_folders(created)
        if isinstance(problem, OSError):
            raise trouble(before.file, "write", problem) from problem
        raise
    return FileSnapshot(before.file, before.real, data, before.mode)


def check_writable(before: FileSnapshot) -> None:
    """Refuse a read-only file by its mode: as root, the system would let us write it."""
    if before.data is not None and not before.mode & 0o222:
        raise ClientFileError(
            f"{plain(str(before.file))} is read-only, so another program may be making it: nothing was "
            "written. Make it writable, or put the entry where it is made (see --print).",
            str(before.file),
        )


def restore(before: FileSnapshot, after: FileSnapshot) -> None:
    """Undo our write of `after`; a file that we created is removed."""
    if before.data is not None:
        write(after, before.text)
        return
    try:
        _check_unchanged(after)
        after.real.unlink()
    except OSError as problem:
        raise trouble(after.file, "write", problem) from problem


def _check_unchanged(before: FileSnapshot) -> None:
    """Refuse if the file was changed meanwhile; a change between this check and the rename is not seen."""
    try:
        current = read_bytes(before.real)
    except ValueError:
        current = b""
    if current != before.data:
        raise ClientFileError(
            f"{plain(str(before.file))} was changed by another program just now, so nothing was written. "
            "Try again.",
            str(before.file),
        )


def _write_new(path: Path, data: bytes, like: FileSnapshot) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE)
    try:
        with open(fd, "wb", closefd=False) as stream:
            stream.write(data)
        _own_as(fd, like)
        os.fchmod(fd, like.mode)
        os.fsync(fd)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)


def _own_as(fd: int, like: FileSnapshot) -> None:
    """Give the new file the old one's owner and group, for a user who runs us as root."""
    try:
        old, new = os.stat(like.real), os.fstat(fd)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.fchown(fd, old.st_uid, old.st_gid)
    except FileNotFoundError:
        pass  # it is new, or was just removed, which `_check_unchanged` sees
    except PermissionError:
        pass  # a group that we are not in: the file is ours all the same


def _make_folders(before: FileSnapshot) -> list[Path]:
    created: list[Path] = []
    try:
        for folder in missing_folders(before):
            os.mkdir(folder, 0o755 if before.mode & 0o044 else 0o700)
            created.append(folder)
    except OSError as problem:
        remove_folders(created)
        raise trouble(before.file, "write", problem) from problem
    return created


def missing_folders(before: FileSnapshot) -> list[Path]:
    """The folders that must be created for it, the outermost first."""
    return [folder for folder in reversed(before.real.parents) if not os.path.exists(folder)]


def remove_folders(created: list[Path]) -> None:
    """Remove the empty ones of these folders, which are given the outermost first."""
    for folder in reversed(created):
        try:
            folder.rmdir()
        except OSError:
            return  # somebody else uses it by now


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def trouble(file: Path, doing: str, problem: OSError) -> ClientFileError:
    """The error for a refusal of the operating system. `doing` is `read` or `write`."""
    why = {
        errno.ELOOP: "its symbolic links form a loop",
        errno.EACCES: "permission denied",
        errno.EPERM: "permission denied",
        errno.EROFS: "the file system is read-only",
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "your disk quota is used up",
        errno.ENOTDIR: "a part of its path is not a folder",
        errno.ENAMETOOLONG: "its name is too long",
    }.get(problem.errno or 0, problem.strerror or "the system refused")
    return ClientFileError(
        f"Laneway could not {doing} {plain(str(file))}: {why}. Nothing was changed.", str(file)
    )
