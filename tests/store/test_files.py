"""Files that are whole or not there."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import FileDamaged, StoreError
from laneway.store.files import keep_aside, make_folder, read_whole, sweep, write_whole
from laneway.store.stamps import parse, stamp

NOON = datetime(2026, 2, 18, 12, tzinfo=UTC)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_is_read_back_and_is_for_us_alone(tmp_path: Path) -> None:
    """Also over a file that everybody could read, and whatever the umask is."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o666)
    before = os.umask(0)
    try:
        write_whole(path, b"new")
        make_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert (read_whole(path, 3), mode(path)) == (b"new", 0o600)
    assert [mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [0o700, 0o700]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "file"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """What it points to keeps its content."""
    target, path = tmp_path / "target", tmp_path / "path"
    target.write_bytes(b"theirs")
    path.symlink_to(target)
    write_whole(path, b"ours")
    assert (target.read_bytes(), path.read_bytes(), path.is_symlink()) == (b"theirs", b"ours", False)


def test_a_file_that_is_not_there_is_none_and_one_too_large_is_damaged(tmp_path: Path) -> None:
    """The bound is a bound on memory, too."""
    assert read_whole(tmp_path / "none", 10) is None
    (tmp_path / "large").write_bytes(b"x" * 11)
    with pytest.raises(FileDamaged, match="larger than 10 bytes"):
        read_whole(tmp_path / "large", 10)


def test_a_pipe_in_the_place_of_a_file_makes_nobody_wait(tmp_path: Path) -> None:
    """It is told as what it is."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileDamaged, match="is not a file"):
        read_whole(tmp_path / "pipe", 10)


def test_what_is_kept_aside_never_covers_what_was_kept_before(tmp_path: Path) -> None:
    """Not even within one second."""
    path = tmp_path / "file"
    for number in range(3):
        path.write_text(str(number))
        keep_aside(path, "corrupt", NOON)
    kept = {p.name: p.read_text() for p in tmp_path.iterdir()}
    name = "file.corrupt-20260218T120000Z"
    assert kept == {name: "0", f"{name}-2": "1", f"{name}-3": "2"}


def test_only_our_own_leftovers_are_swept(tmp_path: Path) -> None:
    """In the folder and one below."""
    ours = [tmp_path / ".f.1.laneway-tmp", tmp_path / "thread" / ".f.2.laneway-tmp"]
    theirs = [tmp_path / "f.tmp", tmp_path / ".f.tmp", tmp_path / "thread" / "f.laneway-tmp"]
    (tmp_path / "thread").mkdir()
    for path in (*ours, *theirs):
        path.write_bytes(b"")
    sweep(tmp_path)
    assert [p.exists() for p in (*ours, *theirs)] == [False] * 2 + [True] * 3


def test_a_failure_is_a_sentence_with_the_place(tmp_path: Path) -> None:
    """Never the text of a foreign exception."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match=r"cannot write .*another kind lies there\. Move it away\.$") as told:
        make_folder(tmp_path / "file" / "below")
    assert told.value.path == str(tmp_path / "file" / "below")
    with pytest.raises(StoreError, match=r"could not write .* \(ENOENT\)"):
        write_whole(tmp_path / "none" / "file", b"")


@given(st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.timezones()))
def test_a_time_is_read_back_to_the_millisecond(when: datetime) -> None:
    """From any zone; the text is always UTC."""
    text = stamp(when)
    found = parse(text)
    assert text.endswith("Z")
    assert len(text) == 24
    assert found is not None
    assert 0 <= (when.astimezone(UTC) - found).total_seconds() < 0.001


def test_times_of_other_programs_are_understood() -> None:
    """Nanoseconds, offsets, none; and nonsense is no time."""
    assert parse("2026-02-18T12:00:00.123456789Z") == datetime(2026, 2, 18, 12, 0, 0, 123456, UTC)
    assert parse("2026-02-18T13:00:00+01:00") == parse("2026-02-18T12:00:00") == NOON
    assert [parse(text) for text in ("", "yesterday", None, 5, "0001-01-01T00:00:00+23:00")] == [None] * 5
