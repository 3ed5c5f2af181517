"""Benchmark of Discord: calls for words that stream, within its limits, in one conversation and in fifty."""

from __future__ import annotations

from bench.discord_calls import WORD_S
from bench.rig import Rig
from bench.table import Goal, Row, Section

WORDS = 10_000
CHATS = 50
CHAT_WORDS = 500
NONE = Goal(0.0, of="ours")


def run(rig: Rig, *, quick: bool = False) -> Section:
    words, chats, chat_words = (1_000, 5, 100) if quick else (WORDS, CHATS, CHAT_WORDS)
    one = rig.measure("bench.discord_calls", 1, words, 20)
    many = rig.measure("bench.discord_calls", chats, chat_words, 1)
    rows = []
    for what, result, count in (
        (f"one conversation, {words:,} words", one, words),
        (f"{chats} conversations at once, {chat_words:,} words each", many, chats * chat_words),
    ):
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
    notes = [
        f"Discord: a fake service that counts as Discord does, {1 / WORD_S:.0f} words a second from each"
        " model; for one conversation on a clock that runs twenty times as fast on both sides. Answers 429:"
        f" {one['told']} for one conversation, {many['told']} for {chats}; requests that were wrong:"
        f" {one['refused'] + many['refused']}."
    ]
    return Section("Discord", rows, notes, {"one": one, "many": many})
