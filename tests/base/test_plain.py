"""Foreign text made visible: attacks by name, and what must hold for any text."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laneway.base.plain import (
    ELLIPSIS,
    MAX_LABEL_CHARS,
    MAX_MARKS,
    PlainStream,
    code_label,
    fenced,
    is_plain_code,
    label,
    plain,
    plain_code,
    prefixed,
    quoted,
    unseen,
)

VARIANTS: dict[str, Callable[[str], str]] = {
    "plain": plain,
    "plain_code": plain_code,
    "label": label,
    "code_label": code_label,
}

ODD = (
    "\x00\x07\x08\x1b\x7f\x85\x9b\r\n\t \xa0\xad"  # controls, returns, blanks
    "\u0301\u0338\u034f\u0600\u061c\u0e47\u115f\u17b4\u180e\u2000\u200b\u200c\u200d\u200e\u202e"
    "\u2028\u2029\u2060\u2064\u2066\u206f\u20e3\u2800\u3000\u3164\ue000\ufe00\ufe0e\ufe0f\ufeff\uffa0\ufff9"
    "\ud800\udfff\U000e0001\U000e0041\U000e007f\U000e0100\U000f0000\U0010ffff"
    "\u2764\U0001f469\U0001f3fb\u0645\u0915\u094d1#é—日ab`\\"
)
TEXTS = st.text(st.sampled_from(ODD) | st.characters(), max_size=60)


NUMBER_SIGNS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
FLOOD = MAX_MARKS + 1


def hidden(text: str, *, may_join: bool) -> list[str]:
    """What must not be left, told by Unicode's categories and not by the function under test."""
    kinds = [unicodedata.category(letter) for letter in text]
    floods = [at for at in range(len(text)) if all(kind in ("Mn", "Me") for kind in kinds[at : at + FLOOD])]
    found = [text[at : at + FLOOD] for at in floods if at + FLOOD <= len(text)]
    for at, (letter, kind) in enumerate(zip(text, kinds, strict=True)):
        if letter in "\n\t" or letter in NUMBER_SIGNS:
            continue
        if letter in "\u200c\u200d\ufe0e\ufe0f":
            # Only between what it joins, behind what it selects, or on a key.
            is_held = (at > 0 and text[at - 1] > "\x7f") or text[at + 1 : at + 2] == "\u20e3"
            is_seen = may_join and is_held
        elif kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            is_seen = False
        elif kind == "Zs" and letter != " ":
            is_seen = may_join
        else:
            is_seen = letter not in BLANK and not 0xE0000 <= ord(letter) <= 0xE0FFF
        if not is_seen:
            found.append(letter)
    return found


ATTACKS = {
    "an escape sequence": ("a\x1b[2Kb", "a\\x1b[2Kb"),
    "a C1 control that begins one": ("a\x9b2Kb", "a\\x9b2Kb"),
    "a return to the start of the line": ("rm -rf ~\rls", "rm -rf ~\\x0dls"),
    "a backspace": ("rm\b\bls", "rm\\x08\\x08ls"),
    "text from right to left": ("gpj.\u202eexe", "gpj.\\u202eexe"),
    "an isolate": ("\u2066x\u2069", "\\u2066x\\u2069"),
    "a mark for Arabic": ("\u061cx", "\\u061cx"),
    "a space of no width": ("pay\u200bpal", "pay\\u200bpal"),
    "a soft hyphen": ("a\u00adb", "a\\xadb"),
    "a byte order mark": ("\ufeffa", "\\ufeffa"),
    "an invisible operator": ("a\u2064b", "a\\u2064b"),
    "a line separator": ("a\u2028b", "a\\u2028b"),
    "a paragraph separator": ("a\u2029b", "a\\u2029b"),
    "tags that carry text": ("a\U000e0072\U000e006d", "a\\U000e0072\\U000e006d"),
    "selectors that carry bytes": ("a\U000e0101\ufe03", "a\\U000e0101\\ufe03"),
    "fillers of Hangul": ("\u115f\u1160\u3164\uffa0", "\\u115f\\u1160\\u3164\\uffa0"),
    "the blank of Braille": ("a\u2800b", "a\\u2800b"),
    "a joiner of graphemes": ("a\u034fb", "a\\u034fb"),
    "private use": ("\ue0b0\U000f0000", "\\ue0b0\\U000f0000"),
    "not assigned": ("\u0378\uffff", "\\u0378\\uffff"),
    "half a character": ("\ud83d", "\\ud83d"),
    "a flood of marks": ("e" + "\u0301" * 6, "e" + "\u0301" * 4 + "\\u0301\\u0301"),
    "a mark on what stands before": ("\u0338x\n\u0338y", "\\u0338x\n\\u0338y"),
    "a mark on what was spelt out": ("\u202e\u0338x", "\\u202e\\u0338x"),
    "joiners without anything to join": ("a\u200db\u200c", "a\\u200db\\u200c"),
    "a flag of tags": ("\U0001f3f4\U000e0067\U000e007f", "\U0001f3f4\\U000e0067\\U000e007f"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_hides_or_reorders_is_spelt_out(attack: str) -> None:
    text, shown = ATTACKS[attack]
    assert plain(text) == shown
    assert plain_code(text) == shown


KEPT = [
    "Line one\nline\ttwo",
    "naïve — “quoted” 日本語 Привет",
    "👩‍👩‍👧 ❤️ 1️⃣ 👍🏽 🙂‍↔️ ℹ️",  # emoji of several characters
    "می‌خواهم क्‍ष",  # words that are spelt with joiners
    "Tiếng Việt e\u0323\u0302",
    "10\u00a0%",
    "\u0600123",
]


@pytest.mark.parametrize("text", KEPT)
def test_prose_stays_as_it_is(text: str) -> None:
    assert plain(text) == text


def test_in_commands_and_paths_joiners_selectors_and_unusual_blanks_are_spelt_out() -> None:
    assert plain_code("rm\u00a0-rf\u3000/") == "rm\\xa0-rf\\u3000/"
    assert plain_code("👩‍👧 ❤️") == "👩\\u200d👧 ❤\\ufe0f"
    assert plain_code("é日本\n\tb") == "é日本\n\tb"


def test_line_ends_of_windows_become_ours() -> None:
    assert plain("a\r\nb\r\r\n") == "a\nb\\x0d\n"


def test_a_label_has_one_line_and_an_end() -> None:
    assert label("a\r\nb\tc") == "a\\nb\\tc"
    assert label("x" * 300) == "x" * (MAX_LABEL_CHARS - 1) + ELLIPSIS
    assert code_label("abcdef", 4) == "abc…"
    # A joiner before the cut would join the ellipsis.
    assert label("\U0001f469\u200d" * 10, 5) == "👩‍👩…"


def test_no_line_of_a_prefixed_text_passes_for_ours() -> None:
    assert prefixed("a\nb\r\u2028c\n") == "│ a\n│ b\\x0d\\u2028c\n│ "
    assert prefixed("", "> ") == "> "


def test_a_long_line_is_broken_before_a_terminal_does_it() -> None:
    forged = "x" * 8 + "? Run ls"
    assert prefixed(forged, "│ ", columns=10) == "│ xxxxxxxx\n│ ? Run ls"
    assert prefixed("日本語x", "│ ", columns=6) == "│ 日本\n│ 語x"
    assert prefixed("a\tb", "│ ", columns=8) == "│ a     \n│   b"


def test_code_in_markdown_cannot_end_its_own_quotes() -> None:
    assert quoted("ls") == "`ls`"
    assert quoted("a`b\n``c") == "``` a`b\\n``c ```"
    assert fenced("a\n```\nb", "sh") == "````sh\na\n```\nb\n````"


def test_of_a_file_only_what_hides_or_turns_text_is_remarkable() -> None:
    """Line ends of Windows, emoji, accents and icons are not."""
    assert unseen("a\r\n\x0c\ufeffé👩‍👧 ❤️ \ue0b0 10\u00a0% e\u0301") == []
    assert unseen("if a\u202e:\u2066 # \u200b\x1b\U000e0041") == [
        "U+001B",
        "U+200B",
        "U+202E",
        "U+2066",
        "U+E0041",
    ]


def test_what_can_be_seen_as_it_is_is_known() -> None:
    assert is_plain_code("src/é日.py")
    assert not any(is_plain_code(text) for text in ("a\nb", "a\tb", "a\u00a0b", "a\x1b", "\u3164"))


@settings(max_examples=500, deadline=None)
@given(TEXTS)
def test_nothing_hidden_is_left_and_twice_is_as_once(text: str) -> None:
    for name, show in VARIANTS.items():
        shown = show(text)
        assert hidden(shown, may_join="code" not in name) == [], name
        assert show(shown) == shown, name
        shown.encode()  # no half characters: every stream can take it
    for line in (label(text), code_label(text)):
        assert not set("\n\t") & set(line)
    assert plain(plain_code(text)) == plain_code(text)


@settings(deadline=None)
@given(TEXTS, st.integers(1, 12))
def test_a_label_keeps_to_its_length(text: str, max_chars: int) -> None:
    for show in (label, code_label):
        shown = show(text, max_chars)
        assert len(shown) <= max_chars
        assert show(shown, max_chars) == shown
        assert hidden(shown, may_join=show is label) == []


@settings(deadline=None)
@given(TEXTS, st.integers(3, 30))
def test_every_line_of_a_prefixed_text_has_the_prefix(text: str, columns: int) -> None:
    for width in (None, columns):
        lines = prefixed(text, "│ ", columns=width).split("\n")
        assert all(line.startswith("│ ") for line in lines)


@settings(max_examples=500, deadline=None)
@given(TEXTS, st.lists(st.integers(0, 60), max_size=8))
def test_a_stream_shows_the_same_wherever_it_was_cut(text: str, cuts: list[int]) -> None:
    stream = PlainStream()
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    shown = "".join(stream.feed(text[a:b]) for a, b in pairwise(edges)) + stream.flush()
    assert shown == plain(text)


def test_a_sequence_cut_in_two_is_no_sequence() -> None:
    stream = PlainStream()
    assert [stream.feed(piece) for piece in ("a\x1b", "[2K", "b\r", "\nc\r", "d")] == [
        "a\\x1b",
        "[2K",
        "b",
        "\nc",
        "\\x0dd",
    ]


def test_a_stream_holds_little_back() -> None:
    stream = PlainStream()
    assert stream.feed("\r" * 1000) + stream.flush() == "\\x0d" * 1000
    stream.feed("\u200d" * 1000)
    assert len(stream.flush()) <= MAX_MARKS * len("\\u200d")
