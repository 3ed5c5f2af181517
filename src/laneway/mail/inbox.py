"""The inbox file of one team member: read without a lock, changed under all locks, never half-written.

An inbox that is not JSON is kept aside, and a new one is begun. Without its team's config.json
there is no inbox: a team's folder that its owner removed is not created again.
Blocking: from asyncio call through `asyncio.to_thread`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from laneway.base.errors import StoreError, TeamGone
from laneway.mail import entries, raw_json, rewrite, swap
from laneway.mail.draft import Draft
from laneway.mail.entries import Mail, Message, Problem
from laneway.mail.locks import Patience, locked
from laneway.mail.places import Places
from laneway.mail.raw_json import NotJson
from laneway.mail.rewrite import Rewrite
from laneway.mail.swap import Fingerprint
from laneway.store.files import FOLDER_MODE, sync_folder, trouble
from laneway.store.stamps import Now, stamp, utc_now

log = logging.getLogger(__name__)

MAX_INBOX_BYTES = 256 * 1024 * 1024
"""Claude Code empties its inboxes, and ten thousand long messages are 10 MiB: a larger file is not mail."""
MAX_CHANCES = 6
"""Attempts that others may overtake; then the work is done under the lock, where nobody can."""
MAX_VANISHED = 3
"""Times that an inbox may vanish while we change it (an old one is removed) before that is an error."""


class Written(msgspec.Struct, frozen=True):
    """What `Inbox.append` did."""

    message_id: str
    timestamp: str
    """As written in the inbox; empty if the message was there already."""
    is_new: bool
    problems: tuple[Problem, ...] = ()


class Marked(msgspec.Struct, frozen=True):
    """What `Inbox.mark_read` did: how many were unread before."""

    count: int
    problems: tuple[Problem, ...] = ()


class Inbox:
    """One member's mail in one team."""

    def __init__(
        self,
        places: Places,
        team: str,
        agent: str,
        *,
        patience: Patience = Patience(),  # noqa: B008  frozen
        now: Now = utc_now,
    ) -> None:
        self.path = places.inbox(team, agent)
        self.team = team
        self.agent = agent
        self.held_s = 0.0
        """How long the last change held the locks."""
        self._config = places.config(team)
        self._patience = patience
        self._now = now
        self._counted: tuple[Fingerprint | None, int] | None = None
        self._is_swept = False

    # ── reading ────────────────────────────────────────────────────────────

    def fingerprint(self) -> Fingerprint | None:
        """Changes with every change of the inbox; `None` while there is none. Costs microseconds."""
        return swap.fingerprint(self.path)

    def read(self, *, include_read: bool = False) -> Mail:
        """The messages, by default the unread ones. Without a lock; a missing inbox is empty."""
        parse = raw_json.items if include_read else entries.unread
        try:
            return entries.read(rewrite.read(self.path, parse, MAX_INBOX_BYTES))
        except FileNotFoundError:
            return self._nothing()
        except NotJson as problem:
            text = f"{self.path} cannot be read ({problem}). It is kept aside before mail is written there."
            return Mail(problems=(Problem("damaged", text),))

    def _nothing(self) -> Mail:
        try:
            self._check_team()
        except OSError as problem:
            raise trouble(self._config, problem, "read") from problem
        return Mail()

    def pending_count(self) -> int:
        """How many messages are unread. An inbox that has not changed is not read again."""
        fingerprint = self.fingerprint()
        counted = self._counted
        if counted is None or counted[0] != fingerprint:
            # A change between the fingerprint and the reading is noticed the next time.
            self._counted = counted = (fingerprint, len(self.read().messages))
        return counted[1]

    # ── changing ───────────────────────────────────────────────────────────

    def append(self, draft: Draft) -> Written:
        """Put a message into the inbox. It is there, once, when this returns; a second call does no harm.

        `MailBusy` if the locks cannot be taken, `TeamGone`, or an error of the disk: then it was not sent.
        """
        written = ""

        def add(before: Sequence[bytes]) -> list[bytes] | None:
            nonlocal written
            written = ""
            if entries.has(before, draft.marks):
                return None
            when = entries.free_time(before, draft.sender, draft.text, draft.when)
            written = stamp(when)
            return [*before, draft.entry(when)]

        aside = self._change(add, make=True)
        return Written(draft.message_id, written, bool(written), _problems(self.path, aside))

    def mark_read(self, messages: Iterable[Message]) -> Marked:
        """Mark exactly these, wherever they are in the file by now; messages that are gone are ignored."""
        key: frozenset[str] = frozenset().union(*(message.key for message in messages))
        count = 0

        def mark(before: Sequence[bytes]) -> list[bytes] | None:
            nonlocal count
            after, count = entries.mark(before, key)
            return after if count else None

        aside = self._change(mark) if key else None
        return Marked(count, _problems(self.path, aside))

    def rescue(self) -> Path | None:
        """Move a damaged inbox aside, so that nobody overwrites it; returns where it is kept."""
        return self._change(lambda before: None)

    def _change(
        self, change: Callable[[Sequence[bytes]], list[bytes] | None], *, make: bool = False
    ) -> Path | None:
        """Change the file, or create it (`make`); returns where damaged content is kept, if there was any."""
        try:
            for _ in range(MAX_VANISHED):
                self._check_team()
                try:
                    if make:
                        self._make()
                    return self._change_once(change)
                except FileNotFoundError:
                    if not make and self.fingerprint() is None:
                        self._check_team()
                        return None  # there is no inbox, and so nothing to change
        except OSError as problem:
            raise trouble(self.path, problem) from problem
        raise StoreError(
            f"{self.path} vanishes whenever Laneway writes it. See who removes it.", str(self.path)
        )

    def _change_once(self, change: Callable[[Sequence[bytes]], list[bytes] | None]) -> Path | None:
        def edit(before: bytes) -> bytes | None:
            after = change(raw_json.items(before))
            return None if after is None else raw_json.array(after)

        with Rewrite(
            self.path,
            edit,
            _merge,
            max_bytes=MAX_INBOX_BYTES,
            anew=lambda: raw_json.array(change([]) or []),
            now=self._now,
        ) as work:
            if not self._is_swept:
                swap.sweep(self.path.parent, self.path.name)
                self._is_swept = True
            work.prepare()
            for chance in range(MAX_CHANCES):
                if not work.is_needed:
                    return None
                with locked(self.path, self._patience, on_release=self._note_hold):
                    self._check_team()
                    if work.is_current() or chance == MAX_CHANCES - 1:
                        work.commit()
                        break
                work.prepare()  # outside of the lock: the disk may be slow, and others wait
            sync_folder(self.path.parent)  # safe on disk when we return; outside of the lock, too
            return work.aside

    def ensure(self) -> None:
        """Create it if it is missing, so that mail can arrive; `TeamGone` if the team is gone."""
        self._check_team()
        try:
            self._make()
        except OSError as problem:
            raise trouble(self.path, problem) from problem

    def _make(self) -> None:
        """Create the inbox, and its folder; never the team's."""
        try:
            os.mkdir(self.path.parent, FOLDER_MODE)
        except FileExistsError:
            pass
        if self.fingerprint() is not None:
            return
        # It must never be an empty file: ATM cannot read one, and stops.
        beside = swap.prepare(self.path, b"[]")
        try:
            os.link(beside, self.path)
        except FileExistsError:
            pass  # another program was quicker
        except PermissionError:  # a disk without hard links
            with open(self.path, "xb") as file:
                file.write(b"[]")
        finally:
            swap.discard(beside)

    def _check_team(self) -> None:
        try:
            os.stat(self._config)
        except (FileNotFoundError, NotADirectoryError):
            raise TeamGone(self.team, str(self._config)) from None

    def _note_hold(self, seconds: float) -> None:
        self.held_s = seconds


def _merge(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    try:
        before = raw_json.items(base)
    except NotJson:
        before = []
    return raw_json.array(entries.merge(before, raw_json.items(ours), raw_json.items(theirs)))


def _problems(path: Path, aside: Path | None) -> tuple[Problem, ...]:
    if aside is None:
        return ()
    text = f"{path} could not be read. It is kept as {aside.name}, and mail goes on in a new inbox."
    log.warning("%s", text)
    return (Problem("damaged", text),)
