"""Benchmark of Telegram: calls for words that stream, within its limits: private, in a group, in 50 chats."""

from __future__ import annotations

from typing import Any

from bench.rig import Rig
from bench.table import Goal, Row, Section
from bench.telegram_calls import WORD_S

WORDS = 10_000
CHATS = 50
CHAT_WORDS = 500
NONE = Goal(0.0, of="ours")


def run(rig: Rig, *, quick: bool = False) -> Section:
    words, chats, chat_words = (1_000, 5, 100) if quick else (WORDS, CHATS, CHAT_WORDS)
    samples: dict[str, Any] = {
        "private": rig.measure("bench.telegram_calls", "private", 1, words, 20),
        "group": rig.measure("bench.telegram_calls", "group", 1, words, 20),
        "many": rig.measure("bench.telegram_calls", "private", chats, chat_words, 1),
    }
    rows = []
    for what, name, count in (
        (f"one private chat, {words:,} words", "private", words),
        (f"one group, {words:,} words", "group", words),
        (f"{chats} private chats at once, {chat_words:,} words each", "many", chats * chat_words),
    ):
        result = samples[name]
        rows += [
            Row(
                what=f"{what}: calls for 10,000 of them",
                unit="calls",
                base=10_000,
                base_is="one for each word",
                ours=result["calls"] * 10_000 / count,
                digits=0,
            ),
            Row(
                what=f"{what}: calls inside a wait that was asked for",
                unit="calls",
                base=None,
                base_is="",
                ours=result["inside"],
                goal=NONE,
                digits=0,
            ),
            Row(
                what=f"{what}: the last words after the end of the turn, 95 of 100",
                unit="s",
                base=None,
                base_is="",
                ours=result["lag_s"],
            ),
        ]
    told = ", ".join(f"{result['told']} ({name})" for name, result in samples.items())
    notes = [
        f"Telegram: a fake service that counts as Telegram does, {1 / WORD_S:.0f} words a second from each"
        " model; for one chat on a clock that runs twenty times as fast on both sides. Answers 429:"
        f" {told}; requests that were wrong: {sum(result['refused'] for result in samples.values())}."
    ]
    return Section("Telegram", rows, notes, samples)
