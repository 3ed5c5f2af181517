"""The spool: messages whose inbox was locked, kept on disk and delivered later in order.

    <spool>/<team>/<agent>/<time>-<random>.json    one message each, the oldest first
    <spool>/<team>/.<agent>.lock                   one Laneway at a time delivers
    <spool>/failed/…                               given up, with the reason

Exactly once: a message that is in its inbox already is not put there again, so a crash between
adding it there and removing it here does no harm. (Only a reader that removes mail from its inbox
within those microseconds could get it twice; losing it would be worse.) Blocking; only `post` calls it.
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
"""No working program holds a lock for a day; after that the failure should be reported."""
MAX_WAITING = 1000
"""Messages for one recipient. If there are more, something is wrong, and more would only hide that."""
MAX_FAILED = 1000
"""Given-up messages that are kept for people; the oldest are removed first."""
MAX_SPOOLED_BYTES = 8 * 1024 * 1024
"""A message of 1 MiB, every character of it written as an escape."""
FAILED = "failed"


class Spooled(msgspec.Struct, frozen=True):
    """One message in the spool, as its file holds it."""

    agent: str
    team: str
    draft: Draft
    spooled_at: datetime


_decode_spooled = msgspec.json.Decoder(Spooled).decode


class GivenUp(msgspec.Struct, frozen=True):
    """A message that could not be delivered and will not be tried again."""

    to: Address
    message_id: str
    why: str
    path: Path
    """Where it is kept."""


class Handed(msgspec.Struct, frozen=True):
    """What `Spool.hand_over` did for one recipient."""

    delivered: tuple[Spooled, ...] = ()
    given_up: tuple[GivenUp, ...] = ()
    waiting: int = 0


class Spool:
    """All spooled messages of one user's teams."""

    def __init__(self, places: Places, *, now: Now = utc_now, max_waiting: int = MAX_WAITING) -> None:
        self._root = places.spool
        self._places = places
        self._now = now
        self._max_waiting = max_waiting

    def add(self, to: Address, draft: Draft) -> None:
        """Store it. It is safe on disk when this returns."""
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
            # After all that wait, even if the clock went back.
            number = max(int(now.timestamp() * 1000), _number(names[-1]) + 1 if names else 0)
            try:
                write_whole(folder / f"{number:020d}-{os.urandom(4).hex()}.json", record)
                return
            except StoreError:
                if folder.is_dir():
                    raise
                # Emptied and removed meanwhile, by the process that delivered the last one: create it again.

    def waits_for(self, to: Address) -> bool:
        return bool(_names(self._places.spooled(to.team, to.agent)))

    def folders(self) -> list[Path]:
        """The folders of recipients with waiting messages. Cheap if there are none."""
        waiting = []
        for team in _folders(self._root):
            if team.name != FAILED:
                waiting += [folder for folder in _folders(team) if _names(folder)]
        return waiting

    def folder(self, to: Address) -> Path:
        return self._places.spooled(to.team, to.agent)

    def hand_over(self, folder: Path, deliver: Callable[[Address, Draft], object]) -> Handed:
        """Deliver what waits there, in order, until one fails. Does nothing if another process is at it."""
        delivered: list[Spooled] = []
        given_up: list[GivenUp] = []
        with _alone(folder.with_name(f".{folder.name}.lock")) as is_alone:
            for name in _names(folder) if is_alone else ():
                try:
                    done = self._one(folder / name, deliver)
                except StoreError:
                    break  # the inbox is still locked, or the disk is full: the others must wait, too
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
            spooled = _decode_spooled(data)
        except (FileDamaged, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._give_up(path, Address("?", path.parent.parent.name), "", "its file is damaged")
        to = Address(spooled.agent, spooled.team)
        try:
            deliver(to, spooled.draft)
        except (TeamGone, BadName):
            return self._give_up(path, to, spooled.draft.message_id, f"the team {to.team} is gone")
        except MailBusy:
            age = self._now() - spooled.spooled_at
            if age < GIVE_UP_AFTER:
                raise
            why = f"its inbox has been locked since {stamp(spooled.spooled_at)}"
            return self._give_up(path, to, spooled.draft.message_id, why)
        _unlink(path)
        return spooled

    def _give_up(self, path: Path, to: Address, message_id: str, why: str) -> GivenUp:
        failed_path = self._root / FAILED / f"{path.stem}-{to.agent}@{to.team}.json"
        make_folder(failed_path.parent)
        try:
            os.rename(path, failed_path)
            sync_folder(failed_path.parent)
        except OSError as problem:
            raise trouble(failed_path, problem) from problem
        for name in _names(failed_path.parent)[:-MAX_FAILED]:
            _unlink(failed_path.parent / name)
        return GivenUp(to, message_id, why, failed_path)


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Try to take the lock for the block; whether we have it. Does not wait."""
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
    """The file names of the messages, the oldest first."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json") and name[0] != ".")
    except OSError:
        return []


def _number(name: str) -> int:
    digits = name.partition("-")[0]
    return int(digits) if digits.isdecimal() and len(digits) == 20 else 0


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as items:
            return sorted(Path(item.path) for item in items if item.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _remove_if_empty(folder: Path) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        pass  # more messages wait, or one is being written


def _unlink(path: Path) -> None:
    try:
        os.unlink(path)
        sync_folder(path.parent)
    except OSError:
        pass  # trying again does no harm: it is put into its inbox only once
