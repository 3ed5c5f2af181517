"""Several programs on one inbox, killed at random instants.

`python -m tests.chaos.mail_storm ROOT ROUNDS SEED`.

Forks the players of each round (a fork costs milliseconds, a new Python a hundred times that), kills
one, lets the others end in their own time and looks at the disk. Each player writes down what it is
about to say and what it was told is safe, in files of its own: those outlive a kill. Says one JSON
line at the end, or fails with the seed and the round.

Claude Code and ATM 0.46 know nothing of each other's locks and lose each other's mail; where both
play, only what we and the rest wrote is asked for. Nobody may ever lose ours.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from laneway.base.errors import MailBusy
from laneway.mail.draft import draft
from laneway.mail.inbox import Inbox
from laneway.mail.locks import Patience
from laneway.mail.names import Address
from laneway.mail.places import Places
from laneway.mail.post import Post
from laneway.testing.mail_dialects import DIALECTS, Failed
from laneway.testing.mail_rules import inbox_faults, our_entry_faults

TEAM = "session-0badcafe"
BRIEF = Patience(budget_s=0.2)
"""Ours: so that what a dead Claude Code leaves locked is spooled soon, which is also worth a look."""
CASTS = (
    ("ours", "ours"),
    ("ours", "ours", "reader"),
    ("ours", "claude", "reader"),
    ("ours", "claude", "claude-reader"),
    ("ours", "atm", "atm-reader"),
    ("ours", "atm", "reader"),
    ("ours", "atm1", "reader"),
    ("ours", "claude", "atm1"),
    ("ours", "claude", "atm"),
)
ROUND_S = 60.0
"""No round may take longer: somebody would wait for a lock that nobody holds."""


class Player:
    """What one process of a round does, until it is told to stop."""

    def __init__(self, places: Places, role: str, name: str, to: str, notes: Path) -> None:
        self.role, self.name, self.notes = role, name, notes
        self.to = Address(to, TEAM)
        self._places = places
        self._is_over = False

    def run(self) -> NoReturn:
        signal.signal(signal.SIGTERM, self._stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        self._fd = os.open(self.notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        kind, _, reads = self.role.partition("-")
        act = (
            self._reader()
            if self.role == "reader"
            else self._foreign_reader(kind)
            if reads
            else self._writer(kind)
        )
        self._note("ready")
        number, storm = 0, os.getppid()
        while not self._is_over and os.getppid() == storm:
            number += 1
            act(number)
        os._exit(0)

    def _stop(self, *_: object) -> None:
        self._is_over = True

    def _note(self, words: str) -> None:
        os.write(self._fd, words.encode() + b"\n")

    def _writer(self, kind: str) -> Callable[[int], None]:
        post = Post(self._places, patience=BRIEF)
        inbox = self._places.inbox(TEAM, self.to.agent)

        def act(number: int) -> None:
            text = f"{self.name} {number} " + "x" * (number * 37 % 300)
            self._note(f"try {text}")
            if kind == "ours":
                post.send(draft(self.name, text, team=TEAM), self.to)
            else:
                try:
                    DIALECTS[kind].append(inbox, self.name, text)
                except Failed as problem:
                    self._note(f"failed {problem}")
                    return
            self._note(f"sent {text}")

        return act

    def _reader(self) -> Callable[[int], None]:
        inbox = Inbox(self._places, TEAM, self.to.agent, patience=BRIEF)

        def act(number: int) -> None:
            unread = inbox.read().unread()[:3]
            try:
                inbox.mark_read(unread)
            except MailBusy:
                return
            for message in unread:
                self._note(f"read {message.text}")

        return act

    def _foreign_reader(self, kind: str) -> Callable[[int], None]:
        inbox = self._places.inbox(TEAM, self.to.agent)

        def act(number: int) -> None:
            try:
                DIALECTS[kind].mark(inbox, self._note)
            except Failed as problem:
                self._note(f"failed {problem}")
            except FileNotFoundError:
                pass  # nobody has written yet

        return act


class Storm:
    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.seed = seed
        self.chance = random.Random(seed)
        self.places = Places.of({}, root)
        self.tally: Counter[str] = Counter()
        self.pids: dict[Player, int] = {}
        folder = self.places.team(TEAM)
        folder.mkdir(parents=True)

    def round(self, number: int) -> None:
        cast = CASTS[number % len(CASTS)]
        agent = f"r{number}"
        roster = {"name": TEAM, "members": [{"agentId": f"{agent}@{TEAM}", "name": agent}]}
        self.places.config(TEAM).write_text(json.dumps(roster))
        where = f"seed {self.seed}, round {number}, {'+'.join(cast)}"
        notes = self.root / f"notes-{number}"
        notes.mkdir()
        players = [
            Player(self.places, role, f"{role}-{i}", agent, notes / f"{role}-{i}")
            for i, role in enumerate(cast)
        ]
        self.pids = pids = {player: fork(player.run) for player in players}
        until = time.monotonic() + ROUND_S
        for _ in range(self.chance.randrange(1, 3)):
            self._watch(players, until, where)
            victim = self.chance.choice(list(pids))
            end(pids.pop(victim))
        for pid in pids.values():
            os.kill(pid, signal.SIGTERM)
        while pids:
            wait(pids.popitem()[1], until, where)
        self._ten_seconds_later(agent)
        self._settle(agent, where)
        self._check(players, agent, where)

    def _watch(self, players: list[Player], until: float, where: str) -> None:
        """Until something was sent, and then for an instant of any length up to a few writes."""
        enough = self.chance.randrange(1, 12)
        while sum(line.startswith("sent ") for player in players for line in notes(player)) < enough:
            assert time.monotonic() < until, f"{where}: nobody gets anywhere"
            os.sched_yield()
        for _ in range(self.chance.randrange(20_000)):
            pass

    def _ten_seconds_later(self, agent: str) -> None:
        """Nobody lives who could hold Claude's folder: what is there was left behind, and grows old."""
        inbox = self.places.inbox(TEAM, agent)
        left = inbox.with_name(inbox.name + ".lock")
        if left.is_dir():
            self.tally["left locked"] += 1
            os.utime(left, (time.time() - 11, time.time() - 11))

    def _settle(self, agent: str, where: str) -> None:
        post = Post(self.places)
        self.tally["spooled"] += sum(1 for _ in self.places.spool.glob("*/*/*.json"))
        drained = post.drain()
        assert drained.waiting == 0, where
        assert drained.given_up == (), where
        post.send(draft("ours-last", "last", team=TEAM), Address(agent, TEAM))

    def _check(self, players: list[Player], agent: str, where: str) -> None:
        data = self.places.inbox(TEAM, agent).read_bytes()
        assert inbox_faults(data) == [], where
        entries: list[dict[str, Any]] = json.loads(data)
        roles = {player.role.partition("-")[0] for player in players}
        is_theirs_safe = not {"claude", "atm"} <= roles
        on_disk = Counter(entry["text"] for entry in entries)
        assert on_disk["last"] == 1, where
        told: Counter[str] = Counter()
        tried: set[str] = {"last"}
        taken: set[str] = set()
        for player in players:
            said = notes(player)
            tried |= {line[4:] for line in said if line.startswith("try ")}
            taken |= {line[5:] for line in said if line.startswith("read ")}
            if player.role == "ours" or is_theirs_safe:
                told.update(line[5:] for line in said if line.startswith("sent "))
        assert all(count == 1 for count in told.values()), where
        assert set(on_disk) <= tried, f"{where}: something that nobody said"
        assert [text for text, count in on_disk.items() if count > 1] == [], f"{where}: twice"
        gone = set(told) - set(on_disk)
        assert gone <= (taken if "claude-reader" in {player.role for player in players} else set()), where
        self._check_marks(players, entries, where)
        if "claude" not in roles:  # it makes an inbox that is empty for an instant, where ATM gives up
            assert not any("failed no JSON" in notes(player) for player in players), where
        for entry in entries:
            if entry["from"].startswith("ours") and "message_id" in entry:
                assert our_entry_faults(entry) == [], where
        self.tally["messages"] += len(told)
        self.tally["marks"] += len(taken)

    def _check_marks(self, players: list[Player], entries: list[dict[str, Any]], where: str) -> None:
        """What our reader was told is marked stays marked, unless a reader of Claude's took it out."""
        is_read = {entry["text"]: entry["read"] for entry in entries}
        for player in players:
            if player.role == "reader":
                marked = [line[5:] for line in notes(player) if line.startswith("read ")]
                assert all(is_read.get(text) is True for text in marked), f"{where}: unread again"


def notes(player: Player) -> list[str]:
    """What a player has written down; a line that a kill cut is left out."""
    try:
        return player.notes.read_text().split("\n")[:-1]
    except FileNotFoundError:
        return []


def fork(run: Callable[[], NoReturn]) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # until it can heed it
    pid = os.fork()
    if pid == 0:
        try:
            run()
        finally:
            traceback.print_exc()
            os._exit(70)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    return pid


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def wait(pid: int, until: float, where: str) -> None:
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, f"{where}: a player failed"
            return
        assert time.monotonic() < until, f"{where}: a player does not end"
        os.sched_yield()


def main(root: Path, rounds: int, seed: int) -> None:
    storm = Storm(root, seed)
    try:
        for number in range(rounds):
            storm.round(number)
    finally:
        for pid in storm.pids.values():
            end(pid)
    print(json.dumps(storm.tally), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
