"""A file of several owners, replaced in one step: nobody's words are lost, also if he knows no lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from laneway.base.errors import FileDamaged, StoreError
from laneway.mail import rewrite, swap
from laneway.mail.raw_json import NotJson
from laneway.mail.rewrite import Rewrite

Exchange = Callable[[Path, Path], bool]


def lines(data: bytes) -> list[bytes]:
    """A format as simple as can be: lines, and `?` anywhere is damage."""
    if b"?" in data:
        raise NotJson("there is a question mark")
    return data.split()


def add(word: bytes) -> Callable[[bytes], bytes | None]:
    def edit(data: bytes) -> bytes | None:
        found = lines(data)
        return None if word in found else b"\n".join([*found, word])

    return edit


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    return b"\n".join([*lines(theirs), *(word for word in lines(ours) if word not in lines(theirs))])


def run(path: Path, edit: Callable[[bytes], bytes | None], *, exchange: Exchange = swap.exchange) -> Rewrite:
    with Rewrite(path, edit, merge, max_bytes=1000, anew=lambda: b"anew", exchange=exchange) as work:
        work.prepare()
        work.commit()
    return work


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    return file


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir())


def interrupted(*others: Callable[[Path], object]) -> Exchange:
    """An exchange before which somebody without a lock writes, each time the next of these."""
    waiting = list(others)

    def exchange(one: Path, other: Path) -> bool:
        if waiting:
            waiting.pop(0)(other)
        return swap.exchange(one, other)

    return exchange


def no_exchange(one: Path, other: Path) -> bool:
    return False


@pytest.mark.parametrize("exchange", [swap.exchange, no_exchange])
def test_a_change_leaves_the_new_content_and_nothing_beside_it(path: Path, exchange: Exchange) -> None:
    """Also where the system cannot exchange names. The permissions stay."""
    path.chmod(0o640)
    assert run(path, add(b"two"), exchange=exchange).is_needed
    assert path.read_bytes() == b"one\ntwo"
    assert path.stat().st_mode & 0o777 == 0o640
    assert names(path) == ["file"]


def test_nothing_to_do_writes_nothing(path: Path) -> None:
    """Not even the same again."""
    before = path.stat()
    assert not run(path, add(b"one")).is_needed
    assert path.stat() == before


def test_who_was_quicker_is_built_upon(path: Path) -> None:
    """Between the preparation and the lock; also if there is then nothing left to do."""
    for word, expected in ((b"theirs", b"one\ntheirs\nours"), (b"ours", b"one\nours")):
        path.write_bytes(b"one")
        with Rewrite(path, add(b"ours"), merge, max_bytes=1000) as work:
            work.prepare()
            path.write_bytes(b"one\n" + word)
            work.commit()
        assert path.read_bytes() == expected
        assert names(path) == ["file"]


def test_who_writes_without_a_lock_in_the_last_instant_is_merged_in(path: Path) -> None:
    """Once, twice, in a new file or in place."""

    def anew(file: Path) -> None:
        beside = file.with_name("other")
        beside.write_bytes(file.read_bytes() + b"\nfirst")
        beside.rename(file)

    exchange = interrupted(anew, lambda file: file.write_bytes(file.read_bytes() + b"\nsecond"))
    run(path, add(b"ours"), exchange=exchange)
    assert sorted(path.read_bytes().split()) == [b"first", b"one", b"ours", b"second"]
    assert names(path) == ["file"]


def test_who_writes_nonsense_without_a_lock_finds_it_kept_aside(path: Path) -> None:
    """Ours stands."""
    work = run(path, add(b"ours"), exchange=interrupted(lambda file: file.write_bytes(b"nonsense?")))
    assert path.read_bytes() == b"one\nours"
    assert work.aside is not None
    assert work.aside.read_bytes() == b"nonsense?"


def test_who_never_stops_writing_without_a_lock_is_an_error_and_no_loss(path: Path) -> None:
    """His last words are kept, and named."""
    count = iter(range(10_000))
    exchange = interrupted(*[lambda file: file.write_bytes(b"n%d" % next(count))] * 1000)
    with pytest.raises(StoreError, match=r"without a lock.*corrupt-.*Stop that program") as caught:
        run(path, add(b"ours"), exchange=exchange)
    [aside] = [name for name in names(path) if "corrupt" in name]
    assert aside in str(caught.value)
    kept = {*path.read_bytes().split(), *(path.parent / aside).read_bytes().split()}
    assert kept >= {b"ours", b"n%d" % (next(count) - 1)}


@pytest.mark.parametrize("exchange", [swap.exchange, no_exchange])
def test_damage_is_kept_aside_under_names_that_are_free(path: Path, exchange: Exchange) -> None:
    """Twice in one second, too."""
    for number in (1, 2):
        path.write_bytes(b"damage? %d" % number)
        work = run(path, add(b"ours"), exchange=exchange)
        assert path.read_bytes() == b"anew"
        assert work.aside is not None
        assert work.aside.read_bytes() == b"damage? %d" % number
    assert len(names(path)) == 3


def test_without_a_way_to_begin_anew_damage_is_left_as_it_is(path: Path) -> None:
    """And told."""
    path.write_bytes(b"damage?")
    with (
        Rewrite(path, add(b"ours"), merge, max_bytes=1000) as work,
        pytest.raises(FileDamaged, match=r"question mark.*left as it is"),
    ):
        work.prepare()
    assert path.read_bytes() == b"damage?"
    assert names(path) == ["file"]


def test_a_file_that_is_half_written_is_given_time(path: Path) -> None:
    """Its writer, who writes in place, is done soon."""
    path.write_bytes(b"half?")
    looks = 0

    def parse(data: bytes) -> list[bytes]:
        nonlocal looks
        looks += 1
        try:
            return lines(data)
        finally:
            if looks == 2:
                path.write_bytes(b"whole")

    assert rewrite.read(path, parse, 1000) == [b"whole"]
    path.write_bytes(b"damage?")
    with pytest.raises(NotJson):
        rewrite.read(path, lines, 1000)


def test_what_is_too_large_or_no_file_is_refused(path: Path) -> None:
    """Without reading it, and without waiting for a pipe's other end."""
    path.write_bytes(b"x" * 1001)
    with pytest.raises(FileDamaged, match="larger than 1000 bytes"):
        rewrite.read(path, lines, 1000)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError, match="another kind"):
        rewrite.read(path, lines, 1000)
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(StoreError, match="another kind"):
        rewrite.read(path, lines, 1000)
