r"""Makes foreign text safe to display: characters that hide, reorder or forge text are spelt out.

Commands, paths, names and messages of a model, a server, a repository or a sender reach people only
through these functions. A character that is invisible, moves the cursor or changes the order of
others is spelt out (`\x1b`, `\u202e`, `\U000e0041`). Pure, and each is idempotent:

    plain        prose of several lines: newlines and tabs stay, emoji and joined scripts stay whole
    plain_code   commands, paths, names: joiners, selectors and unusual blanks are spelt out as well
    label, code_label    the same on one line, cut with an ellipsis
    unseen       which characters of a file's text a reader should be warned of
    prefixed     every line begins with a mark, so that none can be mistaken for a line of ours
    quoted, fenced       code within a sentence and a code block of Markdown that nothing inside can end
    PlainStream  prose that comes in pieces

A flag that is made of tag characters (such as Scotland's) is the one emoji that is not kept: tags can
carry any text invisibly.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

MAX_LABEL_CHARS = 200
"""On one line: clients show labels in dialogs, lists and buttons."""
MAX_QUOTED_CHARS = 4096
"""Of code within a sentence: the longest path that a system allows."""
MAX_MARKS = 4
"""Combining marks on one letter. Hebrew and Vietnamese need less; floods cover the lines around them."""
CONTEXT_CHARS = 2 * MAX_MARKS
"""Of the preceding text that a piece of a stream is read with: more than any rule looks back."""
MAX_JUDGED = 4096
"""Characters whose result is cached: those of a language or two."""
MAX_UNSEEN_NAMED = 5
UNSEEN = "The changes contain characters that cannot be seen: {}."
"""The warning about `unseen` characters for a person who is asked to allow an edit."""
PREFIX = "│ "
ELLIPSIS = "…"

_ODD = re.compile(r"[^\n\t -~]+")
"""Characters that must be checked: neither a newline, a tab, nor visible ASCII."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Printable to Python, but invisible: fillers, selectors, the blank of Braille."""
_NUMBER_SIGNS = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Format characters that are visible: they enclose the digits after them."""
_JOINERS = "\u200c\u200d"
_SELECTORS = "\ufe0e\ufe0f"
"""As text, as an emoji."""
_JOINED_SCRIPTS = range(0x0600, 0x18B0)
"""Arabic, the scripts of India, Khmer, Mongolian: there a joiner is a part of the spelling."""
_MARKS = ("Mn", "Me")
"""Categories of marks that take no column of their own, but stand on a letter or around it."""
_USUAL = "\r\x0c\ufeff" + _JOINERS + _SELECTORS
_UNREMARKABLE = (*_MARKS, "Co", "Cn", "Cs")
_BACKTICKS = re.compile("`+")


def plain(text: str) -> str:
    """Prose of several lines. Windows' line ends become ours; a lone return is spelt out."""
    return text if _is_ordinary(text) else _made_visible(text, is_code=False)


def plain_code(text: str) -> str:
    """A command, a path or a name, in which everything can be typed and seen."""
    return text if _is_ordinary(text) else _made_visible(text, is_code=True)


def label(text: str, max_chars: int = MAX_LABEL_CHARS) -> str:
    """Prose on one line: newlines and tabs are spelt out, too."""
    return _cut(_on_one_line(plain(text[: max_chars + 1])), max_chars)


def code_label(text: str, max_chars: int = MAX_LABEL_CHARS) -> str:
    """A command, a path or a name on one line."""
    return _cut(_on_one_line(plain_code(text[: max_chars + 1])), max_chars)


def is_plain_code(text: str) -> bool:
    """Whether all of it can be seen as it is, on one line."""
    return _on_one_line(plain_code(text)) == text


def unseen(text: str) -> list[str]:
    """Characters in a source text that hide or reorder the text around them: `U+202E`, each once.

    Except for usual ones: returns, form feeds, joiners, a byte order mark, icons of fonts.
    """
    if _is_ordinary(text):
        return []
    letters = sorted(letter for letter in set(text) - set(_USUAL) if _is_doubtful(letter, is_code=False))
    return [f"U+{ord(letter):04X}" for letter in letters if unicodedata.category(letter) not in _UNREMARKABLE]


def prefixed(text: str, prefix: str = PREFIX, columns: int | None = None) -> str:
    """Prose whose every line begins with a mark; lines longer than `columns` are broken, and marked, too."""
    lines = plain(text).split("\n")
    if columns is not None:
        width = max(1, columns - len(prefix))
        lines = [piece for line in lines for piece in _broken(line.expandtabs(8), width)]
    return "\n".join(prefix + line for line in lines)


def quoted(text: str) -> str:
    """Code within a sentence of Markdown: a path, a word of a command."""
    code = code_label(text, MAX_QUOTED_CHARS)
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{ticks}{space}{code}{space}{ticks}"


def fenced(text: str, language: str = "") -> str:
    """A code block of Markdown. The caller cleans the text: output may have to stay verbatim."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if not text or text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{end}{fence}"


class PlainStream:
    """`plain` for text that comes in pieces, wherever it was cut."""

    def __init__(self) -> None:
        self._before = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        """The text that can be shown by now. Characters that depend on the next piece are held back."""
        text = self._held + piece
        end = len(text)
        while end and (text[end - 1] in _UNDECIDED):
            end -= 1
        # A flood of them is not held back: nothing that can follow makes them visible.
        end = max(end, len(text) - MAX_MARKS)
        self._held = text[end:]
        return self._show(text[:end])

    def flush(self) -> str:
        """The rest, at the end of the text."""
        held, self._held = self._held, ""
        return self._show(held)

    def _show(self, text: str) -> str:
        before = self._before
        self._before = (before + text)[-CONTEXT_CHARS:]
        if _is_ordinary(text):
            return text
        return plain(before + text)[len(plain(before)) :]


_UNDECIDED = "\r" + _JOINERS + _SELECTORS


# ── one character after the other ──────────────────────────────────────────


def _is_ordinary(text: str) -> bool:
    """Whether there is nothing to check, as in most texts. Quick: there are tens of thousands of deltas."""
    return text.isascii() and (text.isprintable() or _CONTROL.search(text) is None)


def _made_visible(text: str, *, is_code: bool) -> str:
    text = text.replace("\r\n", "\n")
    # A long text has few different characters, so each is checked once.
    doubtful = {letter for letter in set(text) if _is_doubtful(letter, is_code=is_code)}
    if not doubtful:
        return text

    def escape(match: re.Match[str]) -> str:
        run = match[0]
        if doubtful.isdisjoint(run):
            return run
        return "".join(_spelt(run, _before(match), is_code=is_code))

    return _ODD.sub(escape, text)


@lru_cache(MAX_JUDGED)
def _is_doubtful(letter: str, *, is_code: bool) -> bool:
    """Whether it may have to be spelt out, because of itself or of its neighbours."""
    if _ODD.match(letter) is None:
        return False
    category = unicodedata.category(letter)
    return category in _MARKS or _is_hidden(letter, category, is_code=is_code)


def _before(match: re.Match[str]) -> str:
    """The character in front of a run that a mark in it could stand on; empty if there is none."""
    index = match.start()
    return "" if index == 0 or match.string[index - 1] in "\n\t" else match.string[index - 1]


def _spelt(run: str, before: str, *, is_code: bool) -> Iterator[str]:
    """The pieces of a run. `last` is the preceding character; empty if that one was spelt out."""
    last, marks = before, 0
    for index, letter in enumerate(run):
        category = unicodedata.category(letter)
        following = run[index + 1 : index + 2]
        if letter in _JOINERS:
            is_shown = not is_code and marks < MAX_MARKS and _joins(last, following, marks + 1)
            marks += 1
        elif letter in _SELECTORS:
            is_shown = not is_code and _selects(last, following)
            marks += 1
        elif category in _MARKS and not _BLANK.match(letter):
            is_shown = bool(last) and marks < MAX_MARKS
            marks += 1
        else:
            is_shown = not _is_hidden(letter, category, is_code=is_code)
            marks = 0
        last = letter if is_shown else ""
        yield letter if is_shown else _escaped(letter)


def _is_hidden(letter: str, category: str, *, is_code: bool) -> bool:
    """Whether it is invisible, whatever its neighbours."""
    match category:
        case "Cc" | "Cs" | "Co" | "Cn" | "Zl" | "Zp":
            return True
        case "Cf":
            return letter not in _NUMBER_SIGNS
        case "Zs":
            return is_code
        case _:
            return _BLANK.match(letter) is not None


def _joins(last: str, following: str, marks: int) -> bool:
    """Whether a joiner between these two is a part of an emoji, or of a word of a script that joins."""
    if not last or not following:
        return False
    category = unicodedata.category(following)
    if _is_hidden(following, category, is_code=False):
        return False
    if _is_symbol(following):
        return _is_symbol(last) or last in _SELECTORS
    if category in _MARKS and marks >= MAX_MARKS:
        return False
    return _is_of_joined_script(last) and _is_of_joined_script(following)


def _selects(last: str, following: str) -> bool:
    """Whether there is something that can be shown as an emoji: a symbol, or the digit of a key."""
    if last <= "\x7f":
        return last != "" and last in "0123456789#*" and following == "\u20e3"
    return unicodedata.category(last)[0] in "SP" or last == "\u2139"


def _is_symbol(letter: str) -> bool:
    return letter > "\x7f" and unicodedata.category(letter).startswith("S")


def _is_of_joined_script(letter: str) -> bool:
    return ord(letter) in _JOINED_SCRIPTS and unicodedata.category(letter)[0] in "LM"


def _escaped(letter: str) -> str:
    number = ord(letter)
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


# ── lines ──────────────────────────────────────────────────────────────────


def _on_one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\t", "\\t") if "\n" in text or "\t" in text else text


def _cut(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    # A joiner or a selector at the cut would act on the ellipsis.
    return text[: max_chars - 1].rstrip(_JOINERS + _SELECTORS) + ELLIPSIS


def _broken(line: str, columns: int) -> Iterator[str]:
    """A line in pieces that each fit."""
    piece, used = "", 0
    for letter in line:
        wide = _columns(letter)
        if used + wide > columns and piece:
            yield piece
            piece, used = "", 0
        piece += letter
        used += wide
    yield piece


def _columns(letter: str) -> int:
    """The columns that a terminal uses for it."""
    if letter < "\x7f":
        return 1
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
