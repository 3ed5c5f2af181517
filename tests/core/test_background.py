"""Work that nobody waits for: put together while it may wait, done at once when somebody does wait."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from laneway.core.background import Coalescer, TaskSet
from laneway.core.named.records import AuditLine
from laneway.core.named.writers import AuditWriter
from laneway.store.records import StoreRecords
from laneway.store.store import Store


async def test_what_is_asked_for_together_is_done_once_and_at_once_if_somebody_waits() -> None:
    """A turn changes a record three times; the disk need not hear of each."""
    done: list[str] = []
    tasks = TaskSet()

    async def work() -> None:
        done.append("written")

    coalescer = Coalescer(work, tasks, "test")
    for _ in range(3):
        coalescer.stir()
        await asyncio.sleep(0)
    assert done == [], "nobody's call waits behind this"
    await coalescer.wait()
    assert done == ["written"]


async def test_what_nobody_waits_for_is_done_all_the_same() -> None:
    """And so is what is asked for during it."""
    done: list[str] = []
    again = asyncio.Event()

    async def work() -> None:
        done.append("written")
        if len(done) == 1:
            coalescer.stir()
        else:
            again.set()

    coalescer = Coalescer(work, TaskSet(), "test")
    coalescer.stir()
    async with asyncio.timeout(20):
        await again.wait()
    assert done == ["written", "written"]


async def test_audit_lines_that_cannot_be_written_are_told_once_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits for them; what comes when the log is mended is written."""
    store = Store(tmp_path, "crew")
    store.layout.folder.mkdir()
    os.mkfifo(store.layout.audit)
    scribe = AuditWriter(StoreRecords(store), TaskSet())

    async def note(event_type: str) -> None:
        scribe.line(AuditLine(event_type=event_type, agent_id="a", identity="i"))
        await scribe.flush()

    for number in range(3):
        await note(f"lost {number}")
    (first,) = [record.getMessage() for record in caplog.records]
    assert first.startswith("Audit lines are not written: ")
    assert str(store.layout.audit) in first
    store.layout.audit.unlink()
    await note("kept")
    assert [record.getMessage() for record in caplog.records][1:] == ["Audit lines that were not written: 3"]
    assert [line["event_type"] for line in store.audit.read().lines] == ["kept"]
    store.layout.audit.unlink()
    store.layout.audit.mkdir()
    await note("lost at the end")
    await scribe.finish()
    assert caplog.records[-1].getMessage() == "Audit lines that were not written: 1"
