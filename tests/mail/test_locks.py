"""Three dialects of locking one file, and what becomes of locks whose holders die."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from laneway.base.errors import MailBusy, StoreError
from laneway.mail.locks import Patience, locked
from tests.mail.box import AT_ONCE, dialect

HOLDER = """
import sys
from pathlib import Path
from laneway.mail.locks import Patience, locked
with locked(Path(sys.argv[1]), Patience()):
    print("in", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "codex.json"
    path.write_text("[]")
    return path


def folder_of(target: Path) -> Path:
    return target.with_name("codex.json.lock")


SOON = Patience(budget_s=5)
"""Less than the ten seconds after which anybody may take a lock for stale."""


def check_free(target: Path) -> None:
    with locked(target, SOON):
        assert folder_of(target).is_dir()
    assert sorted(path.name for path in target.parent.iterdir()) == ["codex.json", "codex.lock"]


def check_busy(target: Path) -> None:
    with pytest.raises(MailBusy, match=r"codex\.json locked for 0\.05 s\. Try"), locked(target, AT_ONCE):
        pytest.fail("two holders")


def test_a_lock_is_given_back_whatever_happens(target: Path) -> None:
    """Only ATM's empty lock file stays, as with ATM."""
    check_free(target)
    with pytest.raises(RuntimeError), locked(target, AT_ONCE):
        raise RuntimeError
    check_free(target)
    assert target.with_name("codex.lock").read_bytes() == b""


def test_claudes_folder_keeps_us_out(target: Path) -> None:
    """And is not touched."""
    folder_of(target).mkdir()
    check_busy(target)
    folder_of(target).rmdir()
    check_free(target)


def test_a_folder_that_is_older_than_ten_seconds_was_left_behind(target: Path) -> None:
    """Claude Code's own rule; one that is younger, or of the near future as Claude sets it, is not."""
    folder_of(target).mkdir()
    now = time.time()
    for moment in (now - 9, now + 1):
        os.utime(folder_of(target), (moment, moment))
        check_busy(target)
    os.utime(folder_of(target), (now - 11, now - 11))
    check_free(target)


def test_a_folder_that_is_not_empty_is_nobodys_lock_and_stays(target: Path) -> None:
    """Somebody's files are in it, however old it is."""
    folder_of(target).mkdir()
    (folder_of(target) / "mine").write_text("x")
    os.utime(folder_of(target), (1, 1))
    check_busy(target)
    assert (folder_of(target) / "mine").read_text() == "x"


def test_atms_flock_keeps_us_out(target: Path) -> None:
    """ATM 0.46 locks the file beside, which stays."""
    with target.with_name("codex.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        check_busy(target)
        assert not folder_of(target).exists()
    check_free(target)


def test_the_file_of_atm_1_keeps_us_out_while_it_is_locked(target: Path) -> None:
    """It has the name of Claude's folder. Left behind, whatever pid is in it, it is removed."""
    with folder_of(target).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{os.getpid()}:token")
        file.flush()
        check_busy(target)
        assert folder_of(target).is_file()
    check_free(target)


def test_something_of_another_kind_in_the_way_is_told(target: Path) -> None:
    """Not waited for."""
    os.mkfifo(folder_of(target))
    with pytest.raises(StoreError, match="another kind"), locked(target, Patience()):
        pytest.fail("no lock")


def test_a_lock_file_that_leads_elsewhere_is_refused(target: Path) -> None:
    """A link is not followed."""
    target.with_name("codex.lock").symlink_to(target.parent / "elsewhere")
    with pytest.raises(StoreError), locked(target, Patience()):
        pytest.fail("no lock")
    assert not (target.parent / "elsewhere").exists()


def test_a_folder_that_is_gone_is_the_callers_to_explain(tmp_path: Path) -> None:
    """A team may vanish at any time."""
    with pytest.raises(FileNotFoundError), locked(tmp_path / "gone" / "x.json", AT_ONCE):
        pytest.fail("no lock")


def test_nobody_else_gets_in_while_we_hold(target: Path) -> None:
    """Claude Code gives up after its 0.65 s, ATM 1.x at once; both tell their user."""
    with locked(target, AT_ONCE):
        assert dialect("claude", "append", target, "lead", "x").stdout == "failed x ELOCKED\n"
        assert dialect("atm1", "append", target, "arch", "x").stdout == "failed x EISDIR\n"
    assert target.read_text() == "[]"
    assert dialect("claude", "append", target, "lead", "x").stdout == "sent x\n"


def test_a_holder_of_ours_that_was_killed_holds_up_none_of_ours(target: Path) -> None:
    """Not even for Claude's ten seconds: its note in the lock file tells that it is dead."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HOLDER, str(target)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"in\n"
        check_busy(target)
        holder.kill()
    assert folder_of(target).is_dir(), "the kill must leave it"
    check_free(target)


def test_a_note_about_another_folder_means_nothing(target: Path) -> None:
    """Claude Code took the one that was left behind, and made its own."""
    folder_of(target).mkdir()
    status = folder_of(target).stat()
    target.with_name("codex.lock").write_text(
        f"laneway {status.st_dev} {status.st_ino} {status.st_mtime_ns - 1}\n"
    )
    check_busy(target)


def test_who_sleeps_for_too_long_does_not_take_away_the_next_ones_lock(target: Path) -> None:
    """A laptop is closed while we hold; Claude Code takes the folder for stale and makes a new one."""
    with locked(target, AT_ONCE):
        folder_of(target).rmdir()
        folder_of(target).mkdir()
        os.utime(folder_of(target), (time.time() + 1, time.time() + 1))  # as Claude Code does
    assert folder_of(target).is_dir()


def test_threads_of_one_process_go_one_by_one(target: Path) -> None:
    """As processes do."""
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with locked(target, Patience(budget_s=60)):
                inside += 1
                most = max(most, inside)
                os.sched_yield()
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    check_free(target)


def test_the_time_of_holding_is_told(target: Path) -> None:
    """To whoever measures it."""
    held: list[float] = []
    with locked(target, AT_ONCE, on_release=held.append):
        pass
    assert len(held) == 1
    assert held[0] >= 0
