"""Three versions of a file, merged and shown."""

from __future__ import annotations

import pytest

from laneway.jobs.rollback.three_way import MAX_SHOWN_BYTES, ThreeWay, merge, three_way

BASE = b"".join(b"line %d\n" % number for number in range(20))


def changed(*numbers: int, to: bytes = b"changed") -> bytes:
    text = BASE
    for number in numbers:
        text = text.replace(b"line %d\n" % number, to + b"\n")
    return text


def test_what_is_not_in_dispute_is_merged() -> None:
    """Line ends and a missing last one stay as they are."""
    assert merge(BASE, changed(3), changed(15)) == changed(3, 15)
    assert merge(BASE, BASE, changed(3)) == changed(3)
    assert merge(BASE, changed(3), BASE) == changed(3)
    windows = BASE.replace(b"\n", b"\r\n")
    assert merge(windows, windows + b"no end", windows) == windows + b"no end"
    assert merge(b"", b"", b"") == b""


@pytest.mark.parametrize(
    "versions",
    [(BASE, changed(3), changed(3, to=b"other")), (b"\0", b"\0a", b"\0b"), (b"x" * (17 << 20), b"x", b"x")],
)
def test_whatever_is_in_dispute_or_no_text_is_not_merged(versions: tuple[bytes, bytes, bytes]) -> None:
    """A person decides."""
    assert merge(*versions) is None


def test_both_differences_and_the_dispute_are_shown() -> None:
    """Each with the name of its job."""
    shown = three_way(
        "a b.txt",
        BASE,
        changed(3, to=b"mine"),
        changed(3, to=b"theirs"),
        labels=("baseline", "job-1", "job-2"),
    )
    assert shown.one.startswith("--- baseline: a b.txt\n+++ job-1: a b.txt\n@@ ")
    assert "\n-line 3\n+mine\n" in shown.one
    assert "\n-line 3\n+theirs\n" in shown.other
    assert "<<<<<<< job-1\nmine\n||||||| baseline\nline 3\n=======\ntheirs\n>>>>>>> job-2\n" in shown.merged
    assert shown.conflicts == 1


def test_files_that_are_not_there_are_shown_as_such() -> None:
    """Two jobs made the same file; or one of them deleted it."""
    made = three_way("x", None, b"a\n", b"b\n")
    assert made.one.startswith("--- baseline: no file\n+++ one: x\n")
    assert made.conflicts == 1
    gone = three_way("x", b"a\n", None, b"a\n")
    assert gone.one.startswith("--- baseline: x\n+++ one: no file\n")
    assert gone.other == ""
    assert gone.conflicts == 0


def test_what_is_no_text_is_not_shown_and_what_is_long_is_cut() -> None:
    """It is said in both cases."""
    assert three_way("x", b"\0", b"a", b"b") == ThreeWay(path="x", is_binary=True)
    long = three_way("x", b"", b"line\n" * MAX_SHOWN_BYTES, b"")
    assert long.is_cut
    assert len(long.one) == MAX_SHOWN_BYTES
