"""Logs: ids on every line, secrets on none, files that turn over and are private."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from laneway.base import log as logs
from laneway.base.log import FILES_KEPT, TRACE, bound, configure, timed
from laneway.base.redact import HIDDEN

log = logging.getLogger("laneway.test")


@pytest.fixture(autouse=True)
def undo() -> Iterator[None]:
    """Other tests listen to the root logger."""
    yield
    root = logging.getLogger("laneway")
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    root.propagate = True
    root.setLevel(logging.NOTSET)


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.covers("NFR-5")
def test_every_line_carries_the_ids_that_were_bound(tmp_path: Path) -> None:
    """Inner ones are added to outer ones, and gone afterwards."""
    configure("info", "json", tmp_path / "log")
    with bound(agent="a", thread=None):
        with bound(turn="t"):
            log.info("inside")
        log.info("outside")
    told = [
        {key: line[key] for key in line if key in ("agent", "thread", "turn")}
        for line in lines(tmp_path / "log")
    ]
    assert told == [{"agent": "a", "turn": "t"}, {"agent": "a"}]


async def test_tasks_carry_the_ids_of_whoever_started_them_and_not_of_each_other(tmp_path: Path) -> None:
    """Fifty sessions log side by side."""
    configure("info", "json", tmp_path / "log")

    async def work(name: str) -> None:
        with bound(agent=name):
            await asyncio.sleep(0)
            log.info("working as %s", name)

    await asyncio.gather(*(work(str(number)) for number in range(50)))
    told = lines(tmp_path / "log")
    assert len(told) == 50
    assert all(line["message"] == f"working as {line['agent']}" for line in told)


def test_a_latency_is_told_also_when_it_ends_badly(tmp_path: Path) -> None:
    """With the outcome."""
    configure("debug", "json", tmp_path / "log")
    with timed(log, "thread/start"):
        pass
    with pytest.raises(ValueError, match="x"), timed(log, "turn/start"):
        raise ValueError("x")
    told = lines(tmp_path / "log")
    assert [line["message"] for line in told] == ["thread/start done", "turn/start failed"]
    assert all(isinstance(line["latency_ms"], float) for line in told)


@pytest.mark.covers("NFR-3")
@pytest.mark.parametrize("form", ["human", "json"])
def test_no_secret_reaches_a_log(tmp_path: Path, form: logs.Form) -> None:
    """Not in the words, not in an exception's."""
    configure("info", form, tmp_path / "log")
    log.info("starting with OPENAI_API_KEY=%s", "hunter2")
    try:
        raise RuntimeError("Authorization: Bearer abcdef123456")
    except RuntimeError:
        log.exception("it failed")
    text = (tmp_path / "log").read_text()
    assert "hunter2" not in text
    assert "abcdef123456" not in text
    assert text.count(HIDDEN) == 3, "the traceback shows the line that raised, too"


def test_a_log_file_is_private_turns_over_and_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the older ones."""
    monkeypatch.setattr(logs, "FILE_BYTES", 2000)
    (tmp_path / "logs").mkdir()
    configure("info", "human", tmp_path / "logs" / "log")
    for number in range(300):
        log.info("line %d", number)
    files = sorted((tmp_path / "logs").iterdir())
    assert len(files) == FILES_KEPT + 1
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    assert all(file.stat().st_size <= 2000 for file in files)
    assert "line 299" in (tmp_path / "logs" / "log").read_text()


@pytest.mark.covers("NFR-5")
def test_levels_let_through_what_they_say(tmp_path: Path) -> None:
    """Trace is below debug."""
    for level, count in (("error", 1), ("warning", 2), ("info", 3), ("debug", 4), ("trace", 5)):
        file = tmp_path / level
        configure(level, "human", file)
        for number in (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG, TRACE):
            log.log(number, "x")
        assert len(file.read_text().splitlines()) == count


@pytest.mark.covers("NFR-5")
def test_logs_go_to_standard_error_and_never_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output belongs to protocols."""
    configure("info")
    with bound(agent="a"):
        log.warning("careful")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.rstrip().endswith("WARNING test careful  agent=a")


def test_a_very_long_line_is_cut_visibly(tmp_path: Path) -> None:
    """A megabyte of output does not belong into a log."""
    configure("info", "json", tmp_path / "log")
    log.info("x" * 1_000_000)
    (line,) = lines(tmp_path / "log")
    assert str(line["message"]).endswith("x [cut]")
    assert len(str(line["message"])) < logs.MAX_LINE_CHARS + 10


def test_a_pipe_that_nobody_reads_is_no_log_file(tmp_path: Path) -> None:
    """It is refused at once; one with a reader serves, and so does a device."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"No such device"):
        configure("info", "human", tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        configure("info", "human", tmp_path / "pipe")
        log.info("heard")
        assert b"heard" in os.read(reader, 1000)
    finally:
        os.close(reader)
    configure("info", "human", Path(os.devnull))
    log.info("unheard")
