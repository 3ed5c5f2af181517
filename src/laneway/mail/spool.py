"""Mail that found its inbox locked: kept safe, and handed over later in the order in which it came.

    <spool>/<team>/<agent>/<time>-<chance>.json    one message each, the oldest first
    <spool>/<team>/.<agent>.lock                   one of us at a time hands over
    <spool>/failed/…                               given up, with the reason

Exactly once: a message that is in its inbox already is not put there again, so a crash between
putting it there and removing it here does no harm. (Only a reader who takes mail out of its inbox
within those microseconds could get it twice; never is worse.) Blocking, and called by `post` only.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from laneway.base.errors import BadName, FileDamaged, MailBusy, StoreError, TeamGone
from laneway.base.foreign_files import open_regular
from laneway.mail import swap
from laneway.mail.draft import Draft
from laneway.mail.names import Address
from laneway.mail.places import Places
from laneway.store.files import (
    make_folder,
    read_whole,
    sync_folder,
    trouble,
    write_whole,
)
from laneway.store.stamps import Now, stamp, utc_now

GIVE_UP_AFTER = timedelta(days=1)
"""No lock is held for a day by anything that still works; whoever waits for the mail should hear of it."""
MAX_WAITING = 1000
"""Messages for one recipient. Past it something is wrong, and more would only hide that."""
MAX_FAILED = 1000
"""Messages that were given up and are kept for people; the oldest go first."""
MAX_SPOOLED_BYTES = 8 * 1024 * 1024
"""A message of 1 MiB, every character of it spelt as an escape."""
FAILED = "failed"


class Spooled(msgspec.Struct, frozen=True):
    agent: str
    team: str
    draft: Draft
    spooled_at: datetime


class GivenUp(msgspec.Struct, frozen=True):
    to: Address
    message_id: str
    why: str
    path: Path
    """Where it is kept."""


class Handed(msgspec.Struct, frozen=True):
    delivered: tuple[Spooled, ...] = ()
    given_up: tuple[GivenUp, ...] = ()
    waiting: int = 0


class Spool:
    def __init__(self, places: Places, *, now: Now = utc_now, max_waiting: int = MAX_WAITING) -> None:
        self._root = places.spool
        self._places = places
        self._now = now
        self._max_waiting = max_waiting

    def add(self, to: Address, draft: Draft) -> None:
        """Keep it. It is safe when this returns."""
        folder = self._places.spooled(to.team, to.agent)
        now = self._now()
        record = msgspec.json.encode(Spooled(to.agent, to.team, draft, now))
        while True:
            make_folder(folder)
            names = _names(folder)
            if len(names) >= self._max_waiting:
                raise StoreError(
                    f"{self._max_waiting} messages wait for {to}. See who holds its inbox.", str(folder)
                )
            # Behind all that wait, also if the clock went back.
            number = max(int(now.timestamp() * 1000), _number(names[-1]) + 1 if names else 0)
            try:
                write_whole(folder / f"{number:020d}-{os.urandom(4).hex()}.json", record)
                return
            except StoreError:
                if folder.is_dir():
                    raise
                # Emptied and removed meanwhile, by whoever handed over the last one: make it again.

    def waits_for(self, to: Address) -> bool:
        return bool(_names(self._places.spooled(to.team, to.agent)))

    def folders(self) -> list[Path]:
        """Of recipients for whom something waits. Cheap where nothing does."""
        found = []
        for team in _folders(self._root):
            if team.name != FAILED:
                found += [folder for folder in _folders(team) if _names(folder)]
        return found

    def folder(self, to: Address) -> Path:
        return self._places.spooled(to.team, to.agent)

    def hand_over(self, folder: Path, deliver: Callable[[Address, Draft], object]) -> Handed:
        """Deliver what waits there, in order, until one cannot be. Somebody else at it: then nothing."""
        delivered: list[Spooled] = []
        given_up: list[GivenUp] = []
        with _alone(folder.with_name(f".{folder.name}.lock")) as is_alone:
            for name in _names(folder) if is_alone else ():
                try:
                    done = self._one(folder / name, deliver)
                except StoreError:
                    break  # the inbox is still locked, or the disk is full: the others wait behind it
                if isinstance(done, GivenUp):
                    given_up.append(done)
                elif done is not None:
                    delivered.append(done)
            if is_alone:
                swap.sweep(folder)
                _remove_if_empty(folder)
        return Handed(tuple(delivered), tuple(given_up), len(_names(folder)))

    def _one(self, path: Path, deliver: Callable[[Address, Draft], object]) -> Spooled | GivenUp | None:
        try:
            data = read_whole(path, MAX_SPOOLED_BYTES)
            if data is None:
                return None
            found = msgspec.json.decode(data, type=Spooled)
        except (FileDamaged, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._give_up(path, Address("?", path.parent.parent.name), "", "its file is damaged")
        to = Address(found.agent, found.team)
        try:
            deliver(to, found.draft)
        except (TeamGone, BadName):
            return self._give_up(path, to, found.draft.message_id, f"the team {to.team} is gone")
        except MailBusy:
            age = self._now() - found.spooled_at
            if age < GIVE_UP_AFTER:
                raise
            since = stamp(found.spooled_at)
            return self._give_up(path, to, found.draft.message_id, f"its inbox has been locked since {since}")
        _unlink(path)
        return found

    def _give_up(self, path: Path, to: Address, message_id: str, why: str) -> GivenUp:
        kept = self._root / FAILED / f"{path.stem}-{to.agent}@{to.team}.json"
        make_folder(kept.parent)
        try:
            os.rename(path, kept)
            sync_folder(kept.parent)
        except OSError as problem:
            raise trouble(kept, problem) from problem
        for name in _names(kept.parent)[:-MAX_FAILED]:
            _unlink(kept.parent / name)
        return GivenUp(to, message_id, why, kept)


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Whether we are the only one here until the end of the block. Nobody waits."""
    try:
        fd = open_regular(path, os.O_RDWR | os.O_CREAT, follow_links=False)
    except FileNotFoundError:
        yield False  # nothing was ever spooled for that team
        return
    except OSError as problem:
        raise trouble(path, problem) from problem
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_alone = True
        except OSError:
            is_alone = False
        yield is_alone
    finally:
        os.close(fd)


def _names(folder: Path) -> list[str]:
    """Of the messages there, the oldest first."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json") and name[0] != ".")
    except OSError:
        return []


def _number(name: str) -> int:
    digits = name.partition("-")[0]
    return int(digits) if digits.isdecimal() and len(digits) == 20 else 0


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            return sorted(Path(item.path) for item in found if item.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _remove_if_empty(folder: Path) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        pass  # more waits, or somebody is writing


def _unlink(path: Path) -> None:
    try:
        os.unlink(path)
        sync_folder(path.parent)
    except OSError:
        pass  # it is put into its inbox once only, however often we try
