"""Files of others are read within bounds and never waited for."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from laneway.base.foreign_files import NotRegular, TooLarge, open_regular, read_regular
from tests.adversary.odd_files import Maker, leased, not_regular, unreadable


@pytest.mark.parametrize("size", [0, 1, 4096, 100_000])
def test_a_regular_file_is_read_whole(tmp_path: Path, size: int) -> None:
    """Up to the bound, and through a link as well."""
    (tmp_path / "file").write_bytes(b"x" * size)
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "file", size) == b"x" * size
    assert read_regular(str(tmp_path / "link"), size + 1) == b"x" * size


def test_a_file_that_is_larger_than_the_bound_is_refused(tmp_path: Path) -> None:
    """Half of a file is none."""
    (tmp_path / "file").write_bytes(b"x" * 11)
    with pytest.raises(TooLarge) as refused:
        read_regular(tmp_path / "file", 10)
    assert (refused.value.max_bytes, refused.value.filename) == (10, str(tmp_path / "file"))


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="no such files here")
def test_a_file_that_does_not_tell_its_size_is_bounded_too() -> None:
    """Those of /proc are regular files of no bytes, by their own account."""
    assert os.stat("/proc/self/maps").st_size == 0
    assert read_regular("/proc/self/maps", 10**7).count(b"\n") > 10
    with pytest.raises(TooLarge):
        read_regular("/proc/self/maps", 100)


@unreadable
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path: Path, make: Maker) -> None:
    """Whoever put it there, nothing is waited for and no memory is filled."""
    make(tmp_path / "odd")
    with pytest.raises(OSError, match="odd") as refused:
        read_regular(tmp_path / "odd", 1000)
    assert refused.value.strerror


def test_a_pipe_keeps_its_writer_waiting(tmp_path: Path) -> None:
    """A look at it must not count as its reader: the writer would be killed when we go away."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotRegular):
        read_regular(tmp_path / "pipe", 10)
    with pytest.raises(OSError) as nobody_reads:
        os.open(tmp_path / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    assert nobody_reads.value.errno == errno.ENXIO


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_file_whose_holder_has_to_be_asked_first_is_refused(tmp_path: Path) -> None:
    """Any program of the same user can have 45 seconds of everybody who opens its file."""
    (tmp_path / "file").write_bytes(b"x")
    with leased(tmp_path / "file"), pytest.raises(BlockingIOError):
        read_regular(tmp_path / "file", 10)


def test_a_link_can_be_refused(tmp_path: Path) -> None:
    """Where nobody has a reason to put one."""
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "file", 10, follow_links=False) == b"x"
    with pytest.raises(NotRegular):
        read_regular(tmp_path / "link", 10, follow_links=False)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 5000, "gone"])
def test_a_name_that_no_file_can_have_is_an_error_of_the_system(tmp_path: Path, name: str) -> None:
    """So that whoever expects a missing file expects this as well."""
    with pytest.raises(OSError, match=r".") as refused:
        read_regular(f"{tmp_path}/{name}", 10)
    assert refused.value.strerror


def test_a_name_that_is_no_text_is_read(tmp_path: Path) -> None:
    """The system's names are bytes."""
    path = os.path.join(os.fsencode(tmp_path), b"\xff\n")
    with open(path, "wb") as file:
        file.write(b"x")
    assert read_regular(os.fsdecode(path), 10) == b"x"


def test_a_new_file_is_private_and_not_inherited(tmp_path: Path) -> None:
    """Whatever the user's mask allows."""
    before = os.umask(0)
    try:
        fd = open_regular(tmp_path / "new", os.O_RDWR | os.O_CREAT)
    finally:
        os.umask(before)
    try:
        assert stat.S_IMODE(os.fstat(fd).st_mode) == 0o600
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)


@not_regular
@pytest.mark.parametrize("flags", [os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_APPEND | os.O_CREAT])
def test_nothing_but_a_file_is_opened_for_writing(tmp_path: Path, make: Maker, flags: int) -> None:
    """And no descriptor stays open."""
    make(tmp_path / "odd")
    before = set(os.listdir("/dev/fd"))
    with pytest.raises(OSError, match=r"."):
        open_regular(tmp_path / "odd", flags, follow_links=False)
    assert set(os.listdir("/dev/fd")) == before


def test_a_link_is_never_followed_to_make_a_file(tmp_path: Path) -> None:
    """It would be made wherever the link says."""
    (tmp_path / "link").symlink_to("elsewhere")
    with pytest.raises(NotRegular):
        open_regular(tmp_path / "link", os.O_RDWR | os.O_CREAT, follow_links=False)
    assert not (tmp_path / "elsewhere").exists()
