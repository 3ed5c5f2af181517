"""Other programs' files: whole or untouched, with their mode and their links."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from laneway.base.errors import ClientFileError
from laneway.cli.clients import files
from laneway.cli.registrations import MAX_CONFIG_BYTES


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_keeps_its_mode_its_mark_and_its_link(tmp_path: Path) -> None:
    """What the link leads to is replaced, not the link."""
    real = tmp_path / "real.json"
    real.write_bytes(b"\xef\xbb\xbf{}\r\n")
    real.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to("real.json")
    after = files.write(files.read(link), '{"a": 1}\r\n')
    assert real.read_bytes() == after.data == b'\xef\xbb\xbf{"a": 1}\r\n'
    assert (link.is_symlink(), mode(real)) == (True, 0o640)
    assert names(tmp_path) == {"real.json", "link.json"}


def test_a_new_file_is_private_unless_it_is_a_projects(tmp_path: Path) -> None:
    """And so are the folders that are made for it."""
    files.write(files.read(tmp_path / "a" / "b" / "x.json"), "{}")
    files.write(files.read(tmp_path / "c" / "x.json", files.SHARED), "{}")
    assert [mode(tmp_path / name) for name in ("a", "a/b", "a/b/x.json", "c/x.json")] == [
        0o700,
        0o700,
        0o600,
        0o644,
    ]


def test_a_change_by_somebody_else_is_never_written_over(tmp_path: Path) -> None:
    """Claude writes its own all the time."""
    file = tmp_path / "x.json"
    for before, now in [("{}", '{"a": 1}'), ("{}", None), (None, "{}")]:
        file.unlink(missing_ok=True)
        if before is not None:
            file.write_text(before)
        seen = files.read(file)
        file.unlink(missing_ok=True)
        if now is not None:
            file.write_text(now)
        with pytest.raises(ClientFileError, match="changed by another program just now"):
            files.write(seen, "mine")
        assert (file.read_text() if file.exists() else None) == now
    assert names(tmp_path) == {"x.json"}


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    """Also by root: some other program makes it."""
    file = tmp_path / "x.json"
    file.write_text("{}")
    file.chmod(0o444)
    with pytest.raises(ClientFileError, match="is read-only"):
        files.write(files.read(file), "mine")
    assert (file.read_text(), names(tmp_path)) == ("{}", {"x.json"})


def test_what_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    """A circle of links, a folder, a pipe, no UTF-8, too much, a path through a file."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "latin").write_bytes(b"\xe9")
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate(MAX_CONFIG_BYTES + 1)
    for name, why in [
        ("loop", "its symbolic links form a loop"),
        ("folder", "it is not a regular file"),
        ("pipe", "it is not a regular file"),
        ("latin", "it is not UTF-8"),
        ("large", "it is larger than 32 MiB"),
    ]:
        with pytest.raises(ClientFileError, match=why) as caught:
            files.read(tmp_path / name)
        assert caught.value.path == str(tmp_path / name)
    with pytest.raises(ClientFileError, match="a part of its path is not a folder"):
        files.write(files.read(tmp_path / "latin" / "x.json"), "{}")


def test_nothing_is_left_of_a_write_that_failed(tmp_path: Path) -> None:
    """No half file, no folder that was made for it."""
    seen = files.read(tmp_path / "a" / ("x" * 300))
    with pytest.raises(ClientFileError, match="its name is too long"):
        files.write(seen, "{}")
    with pytest.raises(ClientFileError, match="bytes that are no text"):
        files.write(files.read(tmp_path / "b" / "y"), "\udc80")
    assert names(tmp_path) == set()


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EACCES, "permission denied"),
        (errno.EPERM, "permission denied"),
        (errno.EROFS, "the file system is read-only"),
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "your disk quota is used up"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_what_the_system_refuses_is_said_as_everybody_says_it(number: int, why: str) -> None:
    """In words that can be searched for."""
    problem = files.trouble(Path("/x/y.json"), "write", OSError(number, os.strerror(number)))
    assert str(problem) == f"Laneway could not write /x/y.json: {why}. Nothing was changed."


def test_what_was_written_can_be_taken_back(tmp_path: Path) -> None:
    """A file that we made goes; one that somebody has changed since stays."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("{}")
    for file in (old, new):
        before = files.read(file)
        files.restore(before, files.write(before, "mine"))
    assert (old.read_text(), new.exists()) == ("{}", False)
    before = files.read(new)
    after = files.write(before, "mine")
    new.write_text("theirs")
    with pytest.raises(ClientFileError):
        files.restore(before, after)
    assert new.read_text() == "theirs"
