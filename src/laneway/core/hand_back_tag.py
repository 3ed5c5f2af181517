"""The tag around what other lanes have done, in front of a person's words: nothing inside can end it.

Pure. Foreign text within is left as it is, unless it has the tag's name in whatever disguise (capitals,
blanks, entities, look-alikes, invisible characters): then it loses its brackets. Engines' adapters and
scripted models take the block off again, because it is no part of what the person said.
"""

from __future__ import annotations

import html
import re
import unicodedata

NAME = "laneway-hand-back"
START, END = f"<{NAME}>", f"</{NAME}>"
MAX_ENTITY_ROUNDS = 8
"""An entity may hide in an entity (`&amp;lt;`); whoever nests more than these loses the brackets, too."""

_LETTERS = "".join(letter for letter in NAME if letter.isalpha())
_LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys("1|!\u01c0\u0399\u03b9\u0406\u0456\u04c0\u04cf\u2223\u0131", "l"),
        **dict.fromkeys("4@\u03b1\u0430\u0251", "a"),
        **dict.fromkeys("\u0578\u057c\u043f\u03b7", "n"),
        **dict.fromkeys("3\u0435\u03b5\u0454\u212e\u04bd", "e"),
        **dict.fromkeys("\u051d\u0461\u03c9\u0448\u0561", "w"),
        **dict.fromkeys("\u0443\u03b3\u04af\u03c5\u028f", "y"),
        **dict.fromkeys("\u04bb\u0570\u043d", "h"),
        **dict.fromkeys("\u0501\u0257", "d"),
        **dict.fromkeys("8\u0432\u044c\u03b2\u0253", "b"),
        **dict.fromkeys("\u0441\u03f2\u1d04", "c"),
        **dict.fromkeys("\u043a\u03ba\u049b", "k"),
    }
)
"""Letters of other scripts, and digits, that pass for one of the name's. Used after folding of cases."""
_OTHERS = re.compile(r"[^a-z]+")
_PLAINER = str.maketrans({"<": "(", ">": ")", "&": "+"})
_BRACKETS = frozenset("<>&")
_BRACKET_LIKE = re.compile(
    "[\u02c2\u02c3\u02f1\u02f2\u1433\u1438\u16b2\u2039\u203a\u2264\u2265\u226e\u226f\u2277\u2276\u227a\u227b"
    "\u2329\u232a\u276c-\u2771\u27e8-\u27eb\u29fc\u29fd\u3008-\u300b\ufe3d-\ufe40\U0001d236\U0001d237]"
)


def wrapped(body: str) -> str:
    """The block. `body` may carry what strangers wrote."""
    return f"{START}\n{harmless(body)}\n{END}"


def harmless(body: str) -> str:
    """The text itself, or without brackets if a tag of ours could be read into it. Never longer."""
    if not _has_name(body):
        return body
    return "".join(_plainer(letter) for letter in body)


def without_hand_back(text: str) -> str:
    """A person's words without the blocks in front of them."""
    while (beginning := text.lstrip()).startswith(START):
        _, end, words = beginning.partition(END)
        if not end:
            break
        text = words.lstrip("\n")
    return text


def _has_name(text: str) -> bool:
    """Whether the letters of the name follow each other, whatever stands between them."""
    for _ in range(MAX_ENTITY_ROUNDS):
        if _LETTERS in _letters(text):
            return True
        resolved = html.unescape(text)
        if resolved == text:
            return False
        text = resolved
    return True


def _letters(text: str) -> str:
    if text.isascii():
        folded = text.casefold()
        return _ascii_letters(folded) + " " + _ascii_letters(folded.translate(_LOOK_ALIKES))
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return _ascii_letters(folded) + " " + _ascii_letters(folded.translate(_LOOK_ALIKES))


def _ascii_letters(text: str) -> str:
    return _OTHERS.sub("", text)


def _plainer(letter: str) -> str:
    if letter.isascii():
        return letter.translate(_PLAINER)
    if _BRACKET_LIKE.match(letter) or _BRACKETS & set(unicodedata.normalize("NFKD", letter)):
        return "?"
    return letter
