"""Where a thread's file is, and the repair of one whose move was interrupted by a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.codex.thread_files import LOCKS, ThreadFile, find, has_writer
from laneway.core.ports import ThreadSpec
from laneway.testing.rehearse import rehearsal
from tests.codex.test_link_early import Recorder

NAME = "rollout-2026-11-18T02-31-52-01a1ec7f-0f3c-7170-8e53-54f06f405f39.jsonl"


def places(home: Path) -> tuple[Path, Path]:
    """Of one file: where it lies, and where it lies if it is archived."""
    return home / "sessions" / "2026" / "11" / "18" / NAME, home / "archived_sessions" / NAME


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("words")
    return path


def test_a_file_is_found_where_codex_believes_it_to_be(tmp_path: Path) -> None:
    """Archived or not; of an archived one it is known since when."""
    live, archived = places(tmp_path)
    put(live)
    assert find(live) == ThreadFile(live, live)
    put(archived)
    found = find(archived)
    assert (found.actual_path, found.is_archived, found.is_misplaced) == (archived, True, False)
    assert found.archived_at == archived.stat().st_ctime


def test_a_file_in_the_other_place_is_found_and_repair(tmp_path: Path) -> None:
    """Either way round, also where the right folder is missing."""
    for expected, actual in (places(tmp_path / "a"), places(tmp_path / "b")[::-1]):
        put(actual)
        file = find(expected)
        assert (file.actual_path, file.is_misplaced) == (actual, True)
        file.repair()
        assert (expected.read_text(), actual.exists()) == ("words", False)
        assert not find(expected).is_misplaced


def test_nothing_is_ever_put_in_the_place_of_a_file(tmp_path: Path) -> None:
    """One that has come meanwhile stays what it is."""
    live, archived = places(tmp_path)
    put(archived)
    file = find(live)
    put(live).write_text("newer")
    file.repair()
    assert (live.read_text(), archived.read_text()) == ("newer", "words")


def test_what_is_nowhere_or_has_a_strange_name_is_not_found(tmp_path: Path) -> None:
    live, archived = places(tmp_path)
    for path in (live, archived, archived.with_name("x.jsonl"), Path("/x.jsonl")):
        file = find(path)
        assert (file.actual_path, file.is_misplaced) == (None, False)
        file.repair()


@pytest.mark.needs("writer_lock")
async def test_a_thread_that_a_codex_has_open_has_a_writer_though_nothing_of_it_is_written() -> None:
    """Until that Codex ends. What was never open has none."""
    async with rehearsal() as here:
        other = here.another_engine()
        thread = await other.start(ThreadSpec(cwd=here.work, sandbox="read-only"), Recorder())
        assert has_writer(here.home, thread.thread_id)
        await other.aclose()
        assert not has_writer(here.home, thread.thread_id)
        assert not has_writer(here.home, "01a1ec7f-0f3c-7170-8e53-54f06f405f39")


def test_looking_for_a_writer_makes_nothing(tmp_path: Path) -> None:
    assert not has_writer(tmp_path, "x")
    assert not (tmp_path / LOCKS).exists()
