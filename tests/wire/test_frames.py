"""Lines out of chunks: whole, in order, bounded, wherever the cuts fall."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from laneway.wire.frames import LineDecoder
from tests.wire.support import CUTS, chunks_of

MAX = 8
"""Bytes: small enough that hypothesis often meets the bound itself."""

LINE = st.binary(max_size=3 * MAX).map(lambda line: line.replace(b"\n", b""))


def decode(chunks: list[bytes], max_bytes: int = MAX) -> tuple[list[bytes], list[int], int]:
    """Frames, sizes told as too long, and bytes that still wait for their end."""
    told: list[int] = []
    decoder = LineDecoder(max_bytes, told.append)
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    return frames, told, decoder.waiting_bytes


@given(st.lists(LINE, max_size=12), LINE, CUTS)
@example(lines=[b"x" * (MAX + 1), b"good"], tail=b"", cuts=[])
@example(lines=[b"x" * (MAX + 1)], tail=b"", cuts=[MAX + 1])
@example(lines=[b"x" * MAX, b"y" * MAX], tail=b"", cuts=[MAX])
def test_any_split_yields_the_same_frames(lines: list[bytes], tail: bytes, cuts: list[int]) -> None:
    """Frames, reports and the rest depend on the bytes alone, never on how they were cut."""
    stream = b"".join(line + b"\n" for line in lines) + tail

    frames, told, waiting = decode(chunks_of(stream, cuts))

    assert frames == [line for line in lines if 0 < len(line) <= MAX]
    too_long = [line for line in [*lines, tail] if len(line) > MAX]
    assert len(told) == len(too_long)
    assert all(MAX < size <= len(line) for size, line in zip(told, too_long, strict=True))
    assert waiting == (len(tail) if len(tail) <= MAX else 0)


@given(st.lists(LINE.filter(lambda line: len(line) <= MAX), max_size=12), CUTS)
def test_without_a_long_line_nothing_is_told_or_lost(lines: list[bytes], cuts: list[int]) -> None:
    """Lines within the bound come back exactly, empty ones left out."""
    stream = b"".join(line + b"\n" for line in lines)

    assert decode(chunks_of(stream, cuts)) == ([line for line in lines if line], [], 0)


def test_a_line_byte_by_byte_is_one_frame() -> None:
    """The smallest chunks there are."""
    assert decode([b"%c" % byte for byte in b"one\ntwo\n"]) == ([b"one", b"two"], [], 0)


def test_many_lines_in_one_chunk_are_many_frames() -> None:
    """A chunk longer than the bound is no line longer than the bound."""
    assert decode([b"12345678\n" * 100]) == ([b"12345678"] * 100, [], 0)


def test_a_line_of_exactly_the_bound_passes_and_one_more_byte_does_not() -> None:
    """The bound is the longest line that is still let through."""
    assert decode([b"x" * MAX + b"\n" + b"y" * (MAX + 1) + b"\n"]) == ([b"x" * MAX], [MAX + 1], 0)


def test_a_long_line_over_many_chunks_is_told_once_and_not_kept() -> None:
    """While it is skipped nothing of it waits in memory; the stream goes on behind its newline."""
    told: list[int] = []
    decoder = LineDecoder(MAX, told.append)
    waiting = []
    for _ in range(1000):
        assert decoder.feed(b"12345") == []
        waiting.append(decoder.waiting_bytes)

    assert max(waiting) <= MAX
    assert told == [10]
    assert decoder.feed(b"123\nnext\n") == [b"next"]
    assert told == [10]


def test_a_long_line_between_good_ones_in_one_chunk_is_left_out() -> None:
    """Neighbours in the same chunk are untouched, before and behind."""
    assert decode([b"before\n" + b"x" * 20 + b"\nbehind\nta"]) == ([b"before", b"behind"], [20], 2)


def test_two_long_lines_are_told_apart() -> None:
    """Each is told once, also when the second begins in the chunk that ends the first."""
    long = b"x" * 20
    assert decode([long, b"\n" + long, b"\nok\n"]) == ([b"ok"], [20, 20], 0)


def test_empty_lines_are_no_frames_and_a_carriage_return_stays() -> None:
    """CR is white space to JSON, so nobody needs to look for it here."""
    assert decode([b"\n\n\r\n", b"a\r\n\n"]) == ([b"\r", b"a\r"], [], 0)


def test_empty_chunks_change_nothing() -> None:
    """Not even what waits."""
    assert decode([b"", b"on", b"", b"e", b"", b"\n", b""]) == ([b"one"], [], 0)


def test_without_a_listener_a_long_line_is_skipped_in_silence() -> None:
    """The report is optional, and so is the bound."""
    assert LineDecoder(MAX).feed(b"x" * 20 + b"\nok\n") == [b"ok"]
    assert LineDecoder().feed(b"x" * 100_000 + b"\n") == [b"x" * 100_000]
