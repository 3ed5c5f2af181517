"""Two framings on one stream, told apart message by message, wherever the cuts fall."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from laneway.wire.frames import LineDecoder
from laneway.wire.headers import MAX_HEADER_BYTES, MAX_SKIP_FRAMES, MixedDecoder
from tests.wire.support import CUTS, chunks_of

MAX = 64
"""Bytes: small enough that hypothesis often meets the bound itself."""


class Heard:
    """What a decoder made of a stream."""

    def __init__(self, stream: bytes, cuts: list[int] | None = None, max_bytes: int = MAX) -> None:
        self.oversize: list[int] = []
        self.problems: list[str] = []
        self.most_waiting = 0
        self.decoder = MixedDecoder(max_bytes, self.oversize.append, self.problems.append)
        self.frames: list[bytes] = []
        for chunk in chunks_of(stream, cuts or []):
            self.frames += self.decoder.feed(chunk)
            self.most_waiting = max(self.most_waiting, self.decoder.waiting_bytes)

    @property
    def facts(self) -> tuple[list[bytes], int, list[str], bool]:
        """All that must not depend on the cuts; of an oversize message that is only that it was told."""
        return self.frames, len(self.oversize), self.problems, self.decoder.uses_lengths


def with_length(body: bytes, header: bytes = b"Content-Length", end: bytes = b"\r\n") -> bytes:
    return b"%b: %d%b%b%b" % (header, len(body), end, end, body)


# ── good streams ───────────────────────────────────────────────────────────

BODY = st.one_of(
    st.text(max_size=12).map(lambda text: b'{"t":"%b"}' % text.replace("\n", "").encode(errors="ignore")),
    st.sampled_from([b"{}", b"[]", b'{"\xf0\x9f\x90\xa2":"\xc3\xa9"}', b'[{"a":"Content-Length: 3"}]']),
)
FRAMED = st.one_of(
    BODY.map(lambda body: (body, body + b"\n")),
    BODY.map(lambda body: (body + b"\r", body + b"\r\n")),
    st.builds(
        lambda body, header, end: (body, with_length(body, header, end)),
        BODY.map(lambda body: body.replace(b":", b":\n", 1)),
        st.sampled_from(
            [
                b"Content-Length",
                b"content-length",
                b"CONTENT-LENGTH",
                b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length",
                b"X-Note: {}\nX-More:\r\ncOnTeNt-lEnGtH ",
            ]
        ),
        st.sampled_from([b"\r\n", b"\n", b" \r\n"]),
    ),
    st.sampled_from([(None, b"\n"), (None, b"\r\n"), (None, b"  \n")]),
)


@pytest.mark.covers("FR-1.2")
@settings(max_examples=300)
@given(st.lists(FRAMED, max_size=8), CUTS)
def test_any_mix_of_framings_in_any_chunks_gives_the_same_messages(
    framed: list[tuple[bytes | None, bytes]], cuts: list[int]
) -> None:
    """Lines, bodies, empty lines, many headers: each message whole, none twice, nothing told."""
    stream = b"".join(bytes_ for _, bytes_ in framed)

    heard = Heard(stream, cuts, max_bytes=4096)

    assert heard.frames == [body for body, _ in framed if body is not None]
    assert (heard.oversize, heard.problems, heard.decoder.waiting_bytes) == ([], [], 0)


STREAM = (
    b'{"line":"\xc3\xa9"}\r\n'
    + with_length('{"body":"é 🐢"}'.encode())
    + with_length(b'{\n"pretty":1\n}', b"X: y\r\ncontent-length", b"\n")
    + b'\r\n\n{"line":2}\n'
)


@pytest.mark.covers("FR-1.2")
@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_a_cut_at_any_byte_changes_nothing(cut: int) -> None:
    """Inside a header, a header's line end, a number, a multibyte character."""
    assert Heard(STREAM, [cut]).facts == Heard(STREAM, list(range(len(STREAM)))).facts
    assert Heard(STREAM, [cut]).frames == [
        b'{"line":"\xc3\xa9"}\r',
        '{"body":"é 🐢"}'.encode(),
        b'{\n"pretty":1\n}',
        b'{"line":2}',
    ]


def test_a_stream_of_lines_alone_is_read_as_the_plain_decoder_reads_it() -> None:
    """Whoever never sends a header notices no difference."""
    lines = b'{"a":1}\n[1]\r\n"text"\n17\nnonsense\n{"b":"Content-Length: 5"}\n'

    assert Heard(lines).frames == LineDecoder(MAX).feed(lines)


@pytest.mark.covers("FR-1.2")
def test_answers_go_out_in_the_framing_that_was_used_last() -> None:
    """Told anew by every message; noise in between changes nothing. Lengths count bytes."""
    decoder = MixedDecoder()
    said = ["é".encode()]
    for data in (with_length(b"{}"), b"\n noise \n", b"{}\n", with_length(b"[]"), b"[]\n"):
        decoder.feed(data)
        said.append(decoder.wrap("é".encode()))

    line, body = b"\xc3\xa9\n", b"Content-Length: 2\r\n\r\n\xc3\xa9"
    assert said[1:] == [body, body, line, body, line]


def test_what_goes_out_as_a_line_is_one_line() -> None:
    """A body may be spread over lines; passed on raw it must not fall apart."""
    pretty = b'{\n  "a": [\r\n1]\n}'

    assert LineDecoder().wrap(pretty) == b'{   "a": [\r 1] }\n'
    assert MixedDecoder().wrap(pretty) == b'{   "a": [\r 1] }\n'


# ── broken streams ─────────────────────────────────────────────────────────

NO_NUMBER = "The Content-Length is not a number of bytes"
NO_LENGTH = "A header block has no Content-Length"
TWO = "There is more than one Content-Length"
LIE = "The Content-Length is too great to be true"
NO_END = "A header block ended without an empty line"
GOOD = b'{"good":1}'


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"Content-Length: -5\r\n\r\n", NO_NUMBER),
        (b"Content-Length: +5\r\n\r\n", NO_NUMBER),
        (b"Content-Length: 5 5\r\n\r\n", NO_NUMBER),
        (b"Content-Length: 0x5\r\n\r\n", NO_NUMBER),
        (b"Content-Length: 5.0\r\n\r\n", NO_NUMBER),
        (b"Content-Length: \xd9\xa5\r\n\r\n", NO_NUMBER),
        (b"Content-Length:\r\n\r\n", NO_NUMBER),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", LIE),
        (b"Content-Length: %d\r\n\r\n" % (MAX_SKIP_FRAMES * 10_000 + 1), LIE),
        (b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n", TWO),
        (b"Content-Length: 2\r\ncontent-length: 3\r\n\r\n", TWO),
        (b"Content-Length: x\r\nContent-Length: 3\r\n\r\n", TWO),
        (b"Content-Type: text/plain\r\n\r\n", NO_LENGTH),
        (b"Content-Length: 3\r\n", NO_END),
        (b"WARNING: something\n", NO_END),
        (
            b"X: " + b"y" * MAX_HEADER_BYTES + b"\r\n",
            f"A header block is longer than {MAX_HEADER_BYTES} bytes",
        ),
    ],
)
@pytest.mark.parametrize("cuts", [[], [1, 2, 5, 9, 15, 17, 18, 20, 30]])
def test_a_header_that_does_not_hold_is_told_and_its_message_is_read_as_a_line(
    header: bytes, problem: str, cuts: list[int]
) -> None:
    """Whichever framing comes next; the good message behind the header arrives, too."""
    stream = header + GOOD + b"\n" + with_length(b"[2]") + header + GOOD + with_length(b"[3]") + b"[4]\n"

    heard = Heard(stream, cuts, max_bytes=10_000)

    assert heard.frames == [GOOD, b"[2]", GOOD, b"[3]", b"[4]"]
    assert heard.problems == [problem] * 2


@pytest.mark.parametrize("off", [-9, -5, -1, 1, 5, 20])
def test_a_wrong_length_costs_its_own_message_and_the_stream_finds_back(off: int) -> None:
    """Too short leaves a rest, too long bites into the next header: the one after that is whole."""
    stream = b"Content-Length: %d\r\n\r\n" % (len(GOOD) + off) + GOOD
    stream += with_length(b'{"second":2}') + with_length(b'{"third":3}') + b'{"line":4}\n'

    heard = Heard(stream)

    assert heard.frames[-2:] == [b'{"third":3}', b'{"line":4}']
    assert GOOD not in heard.frames
    if off < 0:
        assert b'{"second":2}' in heard.frames


def test_a_header_block_that_never_ends_is_told_again_and_again_and_never_kept() -> None:
    """Each stretch of it once; behind it the stream goes on."""
    lines = 5000
    heard = Heard(b"X-Header: value\r\n" * lines + b"\r\n" + GOOD + b"\n", max_bytes=8000)

    told = lines * len(b"X-Header: value\r\n") // MAX_HEADER_BYTES
    assert told <= len(heard.problems) <= told + 2
    assert heard.frames == [GOOD]
    assert heard.most_waiting == 0


def test_a_header_line_that_never_ends_is_skipped_like_any_line() -> None:
    """It could have become a message; past the bound nothing of it waits."""
    heard = Heard(b"Content-Length: 5\r\nX: " + b"y" * 1000 + b"\r\n" + GOOD + b"\n", list(range(0, 1000, 7)))

    assert (heard.frames, len(heard.oversize), heard.problems) == ([GOOD], 1, [])
    assert heard.most_waiting <= MAX


def test_a_body_over_the_bound_is_skipped_as_long_as_it_said() -> None:
    """An honest peer stays in step: nothing inside such a body is taken for a message."""
    inside = (GOOD + b"\n") * 20
    stream = with_length(inside) + with_length(b"[1]") + b"[2]\n"

    for cuts in ([], list(range(0, len(stream), 3))):
        heard = Heard(stream, cuts)
        assert (heard.frames, heard.oversize, heard.problems) == ([b"[1]", b"[2]"], [len(inside)], [])
        assert heard.most_waiting <= MAX


def test_a_body_of_nothing_is_a_message_of_nothing() -> None:
    """Somebody waits for an answer to it."""
    assert Heard(b"Content-Length: 0\r\n\r\n" + GOOD + b"\n").frames == [b"", GOOD]


ENEMY = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"Content-Length: 5\r\n\r\n",
            b"Content-Length: 70\r\n\r\n",
            b"Content-Length: 900\r\n\r\n",
            b"Content-Length: 1025\r\n\r\n",
            b"content-length:",
            b"Content-Length: 5\r\n",
            b"\r\n\r\n",
            b"\n",
            b'{"a":1}',
            b"x" * 70,
            b"X: y\r\n",
            b'{"a"',
            b"\xf0\x9f",
            b"17",
        ]
    ),
)


@settings(max_examples=500)
@given(st.lists(ENEMY, max_size=12), CUTS)
@example([b"Content-Length: 900\r\n\r\n"], [])
@example([b"x" * 70, b"Content-Length: 5\r\n"], [3])
def test_after_any_garbage_the_stream_finds_back_and_the_cuts_do_not_matter(
    garbage: list[bytes], cuts: list[int]
) -> None:
    """After as many bytes as a length may claim at most, every message is heard again."""
    padding = b"\n" * (MAX_SKIP_FRAMES * MAX + 1)
    stream = b"".join(garbage) + padding + GOOD + b"\n" + with_length(GOOD)

    heard = Heard(stream, cuts)

    assert heard.frames[-2:] == [GOOD, GOOD]
    assert heard.facts == Heard(stream).facts
    assert heard.most_waiting <= MAX


def test_a_message_that_trickles_in_costs_what_it_is_long() -> None:
    """Two bytes at a time, in either framing: not an object for each of them."""
    size = 100_000
    for decoder, head in (
        (LineDecoder(), b""),
        (MixedDecoder(), b""),
        (MixedDecoder(), b"Content-Length: 999999\r\n\r\n"),
    ):
        decoder.feed(head)
        tracemalloc.start()
        for _ in range(size // 2):
            decoder.feed(b"xy")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert decoder.waiting_bytes == size
        assert peak < 2 * size
