"""Changes a file that several programs write: prepared without a lock, then swapped in atomically under it.

    with Rewrite(path, edit, merge, …) as rewrite:
        rewrite.prepare()
        with locked(path):
            rewrite.commit()

`edit` makes the new bytes from the old ones (`None`: nothing to do). It is called again if another program
was quicker, and `merge(base, ours, theirs)` is for those that wrote without a lock. Both raise `NotJson`
for what they cannot read; a file that stays unreadable is kept aside. `OSError`s pass: the caller knows
what a missing folder means.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from laneway.base.errors import FileDamaged, StoreError
from laneway.mail import swap
from laneway.mail.raw_json import NotJson
from laneway.store.files import MAX_ASIDE
from laneway.store.stamps import Now, file_stamp, utc_now

T = TypeVar("T")

MAX_READS = 5
TORN_WAIT_S = 0.005
"""A program that writes in place, as Claude Code does with rosters, is done in less than one of these."""
MAX_EXCHANGES = 50
"""Merges with what others wrote meanwhile without a lock. Past it another program never stops writing."""


def read(path: Path, parse: Callable[[bytes], T], max_bytes: int) -> T:
    """Parse a file; a half-written one is given time. Raises `NotJson` or `FileNotFoundError`."""
    for attempt in range(MAX_READS):
        with swap.take(path, max_bytes) as snapshot:
            try:
                return parse(snapshot.data)
            except NotJson:
                if attempt == MAX_READS - 1:
                    raise
        time.sleep(TORN_WAIT_S)
    raise AssertionError("unreachable")


class Rewrite:
    """One change: `prepare`, then `commit` under the locks."""

    def __init__(
        self,
        path: Path,
        edit: Callable[[bytes], bytes | None],
        merge: Callable[[bytes, bytes, bytes], bytes],
        *,
        max_bytes: int,
        anew: Callable[[], bytes] | None = None,
        now: Now = utc_now,
        exchange: Callable[[Path, Path], bool] = swap.exchange,
    ) -> None:
        """`anew` gives the content that replaces a damaged file; without it that raises `FileDamaged`."""
        self.aside: Path | None = None
        """Where damaged content is kept, if there was any."""
        self.is_needed = True
        """False if there is nothing to change."""
        self._path = path
        self._edit = edit
        self._merge = merge
        self._max_bytes = max_bytes
        self._anew = anew
        self._now = now
        self._exchange = exchange
        self._open = ExitStack()
        self._beside = path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def prepare(self) -> None:
        self._open.close()  # of an attempt that came too late
        for attempt in range(MAX_READS):
            with ExitStack() as opened:
                snapshot = opened.enter_context(swap.take(self._path, self._max_bytes))
                try:
                    after = self._edit(snapshot.data)
                    is_damaged = False
                except NotJson as problem:
                    if attempt < MAX_READS - 1:
                        time.sleep(TORN_WAIT_S)
                        continue
                    after = self._begin_anew(problem)
                    is_damaged = True
                self._base, self._is_damaged = snapshot, is_damaged
                self.is_needed = after is not None
                if after is not None:
                    self._ours = after
                    self._beside = swap.prepare(self._path, after, snapshot.mode)
                    opened.callback(lambda: swap.discard(self._beside))
                self._open = opened.pop_all()
                return

    def _begin_anew(self, problem: NotJson) -> bytes | None:
        if self._anew is None:
            raise FileDamaged(
                f"{self._path} cannot be read ({problem}). It was left as it is.", str(self._path)
            ) from None
        return self._anew()

    def is_current(self) -> bool:
        """Whether the file is still the one that was read. To be called under the locks: then it stays so."""
        return self._base.is_at(self._path)

    def commit(self) -> None:
        """Called under the locks. If another program was quicker, the preparation is done again here."""
        for _ in range(MAX_EXCHANGES):
            if not self.is_needed or self.is_current():
                break
            self.prepare()
        if not self.is_needed:
            return
        if self._exchange(self._beside, self._path):
            self._merge_displaced()
        else:
            if self._is_damaged:
                os.rename(self._path, self._name_aside())
            os.replace(self._beside, self._path)

    def _merge_displaced(self) -> None:
        if self._base.is_at(self._beside):  # the usual case: nobody wrote meanwhile
            if self._is_damaged:
                os.rename(self._beside, self._name_aside())
            return
        base, ours = self._base.data, self._ours
        for _ in range(MAX_EXCHANGES):
            with swap.take(self._beside, self._max_bytes) as displaced:
                if displaced.data == base:
                    return
                try:
                    merged = self._merge(base, ours, displaced.data)
                except NotJson:
                    os.rename(self._beside, self._name_aside())
                    return
            swap.discard(self._beside)
            self._beside = swap.prepare(self._path, merged, self._base.mode)
            base, ours = ours, merged
            self._exchange(self._beside, self._path)
        os.rename(self._beside, self._name_aside())
        raise StoreError(
            f"Another program writes {self._path} all the time, without a lock. What it last wrote is kept "
            f"as {self.aside}. Stop that program.",
            str(self._path),
        )

    def _name_aside(self) -> Path:
        """A free name to keep the damaged file under; it stays free, because we hold the locks."""
        for number in range(1, MAX_ASIDE):
            again = f"-{number}" if number > 1 else ""
            aside = self._path.with_name(f"{self._path.name}.corrupt-{file_stamp(self._now())}{again}")
            if not os.path.lexists(aside):
                self.aside = aside
                return aside
        raise StoreError(f"{self._path} cannot be kept aside: there are {MAX_ASIDE} others. Remove some.")
