"""Two things that argparse does not do: a default verb that takes flags, and words behind flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

HELP = ("-h", "--help")


def set_default_verb(
    parser: argparse.ArgumentParser, verb: str, is_meant: Callable[[str], bool] = lambda word: False
) -> None:
    """Without a verb, this one: also where flags follow, or a word for which `is_meant` holds."""
    known = parser.parse_known_args

    def parse(args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:
        words = list(args or ())
        first = words[0] if words else None
        if first is None or (first.startswith("-") and first not in HELP) or is_meant(first):
            words.insert(0, verb)
        return known(words, namespace)

    parser.parse_known_args = parse  # type: ignore[method-assign, assignment]


def take_words_behind_flags(parser: argparse.ArgumentParser, name: str) -> None:
    """Give the argument `name` the words that stand behind a flag, as in `send JOB --wait PROMPT`.

    argparse takes what it finds before the first flag, and refuses the rest. A list gets them all; an
    argument of one word gets one, if it has none.
    """
    known = parser.parse_known_args

    def parse(args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:
        options, rest = known(args, namespace)
        is_list = isinstance(getattr(options, name), list)
        while rest and not rest[0].startswith("-") and (is_list or getattr(options, name) is None):
            word = rest.pop(0)
            setattr(options, name, [*getattr(options, name), word] if is_list else word)
        return options, rest

    parser.parse_known_args = parse  # type: ignore[method-assign, assignment]
