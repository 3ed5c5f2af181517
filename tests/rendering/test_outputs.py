"""What commands print, paced and bounded: nothing lost, nothing told twice, no fence broken."""

from __future__ import annotations

import itertools
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from laneway.base.plain import fenced, quoted
from laneway.rendering.outputs import (
    INTERVAL_S,
    MAX_DELAY_S,
    MAX_PIECE_CHARS,
    NEW_SHARE,
    TAIL_CHARS,
    PacedOutputs,
    shortened,
)
from laneway.testing.clock import HandClock

NOTE_CHARS = 80
"""More than the line that tells what is before a tail."""

ticks = st.text(alphabet="`a\n\r \x1b~", max_size=60)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("ab"), st.text(alphabet="x\n", min_size=0, max_size=30)),
        st.tuples(st.just("add"), st.sampled_from("ab"), st.integers(1, 9000).map(lambda n: "y" * n)),
        st.tuples(st.just("wait"), st.just(""), st.sampled_from((0.01, 0.05, 0.1, 0.4, 1.0, 3.0))),
    ),
    max_size=40,
)


class SentOutputs:
    """A `PacedOutputs` and everything that it sent, with the times."""

    def __init__(self, *, sends_all: bool) -> None:
        self.clock = HandClock()
        self.sent: list[tuple[float, str, str]] = []
        self.is_behind = False
        self.outputs = PacedOutputs(
            self.clock, self._send, sends_all=sends_all, is_behind=lambda: self.is_behind
        )

    def _send(self, item_id: str, turn_id: str, text: str) -> None:
        assert turn_id == f"turn of {item_id}"
        self.sent.append((self.clock.now(), item_id, text))

    def add(self, item_id: str, text: str) -> None:
        self.outputs.add(item_id, f"turn of {item_id}", text)

    def run(self, plan: list[tuple[str, str, Any]]) -> dict[str, str]:
        """Do all steps; what each item printed."""
        printed = {"a": "", "b": ""}
        for what, item_id, value in plan:
            if what == "wait":
                self.clock.advance(value)
            else:
                self.add(item_id, value)
                printed[item_id] += value
        return printed

    def texts(self, item_id: str = "a") -> list[str]:
        return [text for _, item, text in self.sent if item == item_id]


# ── text as Markdown ───────────────────────────────────────────────────────


@given(ticks)
def test_nothing_inside_closes_a_fence(text: str) -> None:
    """The fence is longer than any run of backticks in the text, and the text stands in it as it was."""
    made = fenced(text, "sh")
    opening, rest = made.split("\n", 1)
    fence = opening.removesuffix("sh")
    assert set(fence) == {"`"}
    assert len(fence) >= 3
    assert rest.endswith(fence)
    inside = rest.removesuffix(fence)
    assert fence not in inside
    assert inside.removesuffix("\n") == text.removesuffix("\n")
    assert inside == "" or inside.endswith("\n")


def test_escapes_stay_in_shown_output() -> None:
    """What a command prints is not ours to change."""
    assert fenced("\x1b[31mred\x1b[0m\r\n") == "```\n\x1b[31mred\x1b[0m\r\n```"


@given(ticks)
def test_quoted_words_stay_on_their_line(text: str) -> None:
    """Within a sentence nothing can begin a line, or end the quotation."""
    made = quoted(text)
    run = re.match("`+", made)
    assert run is not None
    assert "\n" not in made
    assert "\r" not in made
    assert "\x1b" not in made
    inner = made[len(run[0]) : -len(run[0])]
    assert max((len(found) for found in re.findall("`+", inner)), default=0) < len(run[0])


@given(st.text(max_size=200), st.integers(0, 100))
def test_a_shortened_text_says_how_much_is_missing(text: str, max_chars: int) -> None:
    """Head, tail and the number between them make up the whole."""
    made = shortened(text, max_chars)
    if len(text) <= max_chars:
        assert made == text
        return
    head, tail = text[: max_chars // 2], text[len(text) - (max_chars - max_chars // 2) :]
    left_out = len(text) - len(head) - len(tail)
    assert made == f"{head}\n[{left_out} of {len(text)} characters are left out here.]\n{tail}"


# ── whole ──────────────────────────────────────────────────────────────────


@given(steps)
def test_a_terminal_gets_every_character_once_and_in_order(plan: list[tuple[str, str, Any]]) -> None:
    """However the pieces come and the time passes."""
    here = SentOutputs(sends_all=True)
    printed = here.run(plan)
    for item_id, text in printed.items():
        here.outputs.flush(item_id)
        assert "".join(here.texts(item_id)) == text


@given(steps)
def test_pieces_come_a_few_times_a_second(plan: list[tuple[str, str, Any]]) -> None:
    """Two tellings of a command are apart, except for pieces that are too long to keep."""
    here = SentOutputs(sends_all=True)
    here.run(plan)
    for item_id in "ab":
        mine = [(when, text) for when, item, text in here.sent if item == item_id]
        for (before, _), (after, text) in itertools.pairwise(mine):
            assert after - before >= INTERVAL_S - 1e-9 or len(text) >= MAX_PIECE_CHARS


def test_the_first_piece_is_told_at_once_and_the_next_ones_together() -> None:
    """A user sees that a command prints, without a message for every line."""
    here = SentOutputs(sends_all=True)
    for number in range(5):
        here.add("a", f"{number}\n")
    assert here.texts() == ["0\n"]
    here.clock.advance(INTERVAL_S)
    assert here.texts() == ["0\n", "1\n2\n3\n4\n"]
    here.clock.advance(10)
    assert len(here.sent) == 2


def test_a_long_piece_is_not_kept_back() -> None:
    """Memory stays bounded however fast a command prints."""
    here = SentOutputs(sends_all=True)
    here.add("a", "x")
    here.add("a", "y" * MAX_PIECE_CHARS)
    assert here.texts() == ["x", "y" * MAX_PIECE_CHARS]


def test_a_terminal_that_is_behind_loses_nothing() -> None:
    """Pieces cannot be merged away, so they are told all the same."""
    here = SentOutputs(sends_all=True)
    here.is_behind = True
    here.add("a", "one")
    here.add("a", "two")
    here.clock.advance(INTERVAL_S)
    assert "".join(here.texts()) == "onetwo"


# ── tails ──────────────────────────────────────────────────────────────────


@given(steps)
def test_what_is_told_in_tails_stays_linear(plan: list[tuple[str, str, Any]]) -> None:
    """Eight times what was printed at most, and a tail a second: never the square of it."""
    here = SentOutputs(sends_all=False)
    printed = here.run(plan)
    for item_id, text in printed.items():
        told = here.texts(item_id)
        assert all(len(each) <= TAIL_CHARS + NOTE_CHARS for each in told)
        seconds = here.clock.now() / MAX_DELAY_S
        assert sum(map(len, told)) <= (NEW_SHARE + 1) * len(text) + (seconds + 1) * (TAIL_CHARS + NOTE_CHARS)


@given(steps)
def test_a_tail_is_the_end_of_what_was_printed(plan: list[tuple[str, str, Any]]) -> None:
    """Flushed, it shows the last characters, and tells truly how many are before them."""
    here = SentOutputs(sends_all=False)
    printed = here.run(plan)
    for item_id, text in printed.items():
        here.outputs.flush(item_id)
        if not text:
            assert here.texts(item_id) == []
            continue
        last = here.texts(item_id)[-1]
        before = re.match(r"\[([\d,]+) characters before this come at the end\.\]\n", last)
        shown = last[before.end() :] if before else last
        left_out = int(before[1].replace(",", "")) if before else 0
        assert text.endswith(shown)
        assert left_out + len(shown) == len(text)


@given(steps)
def test_everything_new_is_seen_within_a_second(plan: list[tuple[str, str, Any]]) -> None:
    """A tail of which little is new may wait, but not for long."""
    here = SentOutputs(sends_all=False)
    printed = here.run(plan)
    here.clock.advance(MAX_DELAY_S + INTERVAL_S)
    for item_id, text in printed.items():
        assert not text or text.endswith(here.texts(item_id)[-1][-1:])
    told = len(here.sent)
    for item_id in printed:
        here.outputs.flush(item_id)
    assert len(here.sent) == told


def test_a_long_tail_is_not_resent_for_every_dot() -> None:
    """A progress bar costs a tail a second, not ten."""
    here = SentOutputs(sends_all=False)
    here.add("a", "x" * TAIL_CHARS)
    for _ in range(100):
        here.add("a", ".")
        here.clock.advance(INTERVAL_S)
    assert 5 <= len(here.sent) <= 11


def test_a_tail_starts_with_a_whole_line() -> None:
    """Where a line begins near by."""
    here = SentOutputs(sends_all=False)
    here.add("a", "".join(f"line {number}\n" for number in range(2000)))
    note, first, *_ = here.texts()[0].split("\n")
    assert note.endswith("characters before this come at the end.]")
    assert re.fullmatch(r"line \d+", first)


def test_a_client_that_is_behind_gets_no_tails_until_it_reads() -> None:
    """Then it gets the newest, and only that."""
    here = SentOutputs(sends_all=False)
    here.is_behind = True
    for number in range(5):
        here.add("a", f"{number}\n")
        here.clock.advance(1)
    assert here.sent == []
    here.is_behind = False
    here.clock.advance(INTERVAL_S)
    assert here.texts() == ["0\n1\n2\n3\n4\n"]


# ── the end ────────────────────────────────────────────────────────────────


def test_nothing_is_told_of_a_command_that_was_dropped() -> None:
    """Its end holds the complete output; a late tail would replace it."""
    here = SentOutputs(sends_all=False)
    here.add("a", "one")
    here.add("a", "two")
    here.add("b", "kept")
    here.outputs.drop("a")
    here.outputs.drop("a")
    here.outputs.flush("a")
    here.clock.advance(10)
    assert here.texts("a") == ["one"]
    assert here.texts("b") == ["kept"]


def test_cleared_outputs_are_silent() -> None:
    """No timer outlives the session."""
    here = SentOutputs(sends_all=True)
    for item_id in "ab":
        here.add(item_id, "one")
        here.add(item_id, "two")
    here.outputs.clear()
    here.clock.advance(10)
    assert here.texts("a") == here.texts("b") == ["one"]
