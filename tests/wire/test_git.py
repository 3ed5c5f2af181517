"""Git as a process: bounded, ended with all that it started, and told nothing that it need not know."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

from laneway.testing.processes import wait_gone
from laneway.wire.git import NEVER_RAN, NO_GIT, GitRun, git, git_apart, in_thread, rev_parse
from laneway.wire.git_view import GitView, git_view
from tests.doors.acp.repos import Repo

pytestmark = pytest.mark.usefixtures("own_git")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "r")
    made.write("a.txt", "one\n")
    made.commit("the first")
    return made


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place on the PATH for a git of the test's own."""
    path = tmp_path / "bin" / "git"
    path.parent.mkdir()
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    return path


def write_program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


# ── the process ────────────────────────────────────────────────────────────


def test_more_output_than_wanted_is_never_read(repo: Repo) -> None:
    """Git is ended, and what was wanted is there."""
    repo.write("a.txt", "x\n" * 2_000_000)
    ran = git(repo.root, "diff", max_bytes=1000)
    assert len(ran.stdout) == 1000
    assert ran.is_cut
    assert git(repo.root, "rev-parse", "HEAD").exit_code == 0


def test_a_git_that_hangs_is_ended_with_all_that_it_started(repo: Repo, stub: Path) -> None:
    """Also where git is gone and a program of its holds the pipe."""
    for script in ("exec sleep 600", "sleep 600 & exit 0", "exec >&-; exec sleep 600"):
        write_program(stub, script)
        ran = git(repo.root, "status", timeout_s=0.1)
        assert ran.stdout == b""
        assert ran.exit_code == 0 if "exit 0" in script else ran.exit_code < 0
        assert ran.error == ("" if "exit 0" in script else "it took longer than 0.1 seconds and was ended")


def test_what_git_has_against_a_command_is_kept(repo: Repo) -> None:
    """For whoever asked, and bounded."""
    ran = git(repo.root, "show", "no-such-thing")
    assert ran.exit_code > 0
    assert "no-such-thing" in ran.error
    assert ran.stdout == b""


@pytest.mark.parametrize("name", ["plain", "two\nlines", "\n", "ends\n", "\n\nsha1", " spaces "])
def test_several_questions_to_a_repository_are_answered_each_by_itself(tmp_path: Path, name: str) -> None:
    """Whatever line ends its path has: no answer is taken for another one, nor cut short."""
    made = Repo(tmp_path / f"r{name}")
    made.write("a.txt", "one\n")
    made.commit("the first")
    questions = ("--show-toplevel", "--git-path objects", "--show-object-format", "--absolute-git-dir")
    top = str(made.root)
    assert rev_parse(made.root, *questions) == [top, ".git/objects", "sha1", f"{top}/.git"]
    for option in ("--show-toplevel", "--absolute-git-dir"):
        assert rev_parse(made.root, option) == [git(made.root, "rev-parse", option).line]


def test_a_question_that_has_no_answer_is_a_run_that_failed(repo: Repo, tmp_path: Path) -> None:
    """Outside of every repository, and where one of several has none."""
    outside = rev_parse(tmp_path, "--show-toplevel", "--show-object-format")
    assert isinstance(outside, GitRun)
    assert (outside.exit_code, "not a git repository" in outside.error) == (128, True)
    inside = rev_parse(repo.root, "--show-toplevel", "--show-prefix")
    assert isinstance(inside, GitRun)
    assert inside.exit_code == NEVER_RAN


@pytest.mark.parametrize("word", ["a\0b", "\ud800"])
def test_what_no_process_can_be_given_is_an_error(repo: Repo, word: str) -> None:
    """And not an exception."""
    ran = git(repo.root, "rev-parse", word)
    assert ran.exit_code == NEVER_RAN
    assert ran.error.startswith("Git cannot be started in ")


async def test_a_cancelled_question_ends_git_and_asks_no_more(repo: Repo, stub: Path, tmp_path: Path) -> None:
    """The thread that waited for it is free again at once; no other command of the same work is begun."""
    os.mkfifo(tmp_path / "begun")
    write_program(stub, f"echo >> {tmp_path}/count; echo $$ > {tmp_path}/begun; exec sleep 600")
    codes: list[int] = []
    is_done = threading.Event()

    def work() -> None:
        codes.extend(git(repo.root, "status").exit_code for _ in range(3))
        is_done.set()

    asking = asyncio.ensure_future(in_thread(work))
    pid = int(await asyncio.to_thread((tmp_path / "begun").read_text))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(is_done.wait, 30)
    assert codes == [-signal.SIGKILL, NEVER_RAN, NEVER_RAN]
    assert (tmp_path / "count").read_text() == "\n"
    await wait_gone(pid)


# ── what it is told ────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_apart", [False, True])
def test_git_gets_of_the_environment_only_what_it_needs(
    repo: Repo, stub: Path, monkeypatch: pytest.MonkeyPatch, is_apart: bool
) -> None:
    """No secret, no program, no other repository; apart from all of them not even the user's settings."""
    for name in ("OPENAI_API_KEY", "LANEWAY_TOKEN", "GIT_DIR", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND"):
        monkeypatch.setenv(name, "secret or program")
    monkeypatch.setenv("GIT_TRACE", "/tmp/elsewhere")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "0")
    write_program(stub, "env")
    ran = (git_apart if is_apart else git)(repo.root, "status")
    seen = dict(line.split("=", 1) for line in ran.stdout.decode().splitlines())
    known = {
        "HOME",
        "PATH",
        "USER",
        "LOGNAME",
        "TMPDIR",
        "XDG_CONFIG_HOME",
        "LC_ALL",
        "PWD",
        "_",
        "SHLVL",
        "OLDPWD",
    }
    assert {name for name in seen if not name.startswith("GIT_")} <= known
    assert "secret or program" not in ran.stdout.decode()
    assert ("GIT_CONFIG_COUNT" in seen) is not is_apart
    assert seen.get("GIT_DIR") == (os.devnull if is_apart else None)
    assert (seen["HOME"] == os.devnull) is is_apart


def test_a_git_that_lies_in_the_repository_is_not_found(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one beside it that is reached by a link from the PATH, nor one by a relative name."""
    inside = repo.root / "bin"
    inside.mkdir()
    write_program(inside / "git", "echo mine")
    (tmp_path / "link").symlink_to(inside)
    for entry in (inside, tmp_path / "link", Path("bin"), Path()):
        monkeypatch.setenv("PATH", str(entry))
        monkeypatch.chdir(repo.root)
        assert git(repo.root, "status") == NO_GIT


# ── the view ───────────────────────────────────────────────────────────────


def test_a_view_is_gone_when_it_was_looked_at(repo: Repo) -> None:
    """Nothing of it stays, here or in the repository."""
    before = sorted(repo.root.rglob("*"))
    with git_view(repo.root) as view:
        assert isinstance(view, GitView)
        own = Path(view.place["GIT_DIR"])
        assert own.is_dir()
        assert own.stat().st_mode & 0o077 == 0
        assert view.git("status", "--porcelain").stdout == b""
    assert not own.exists()
    assert sorted(repo.root.rglob("*")) == before


def test_a_view_knows_nothing_that_the_repository_has_configured(repo: Repo) -> None:
    """But for what says how bytes are meant, where that is a plain word."""
    for key, value in (
        ("core.autocrlf", "input"),
        ("core.eol", 'crlf"\n[filter "x"]\n\tclean = touch x'),
        ("core.fsmonitor", "touch x"),
        ("filter.x.clean", "touch x"),
        ("alias.x", "!touch x"),
    ):
        repo.git("config", key, value)
    with git_view(repo.root) as view:
        assert isinstance(view, GitView)
        assert view.filters == {"x"}
        listed = view.git("config", "--list", "--show-origin").stdout.decode()
    lines = [line.partition("\t") for line in listed.splitlines()]
    settings = dict(setting.split("=", 1) for _, _, setting in lines)
    assert settings["core.autocrlf"] == "input"
    assert "core.eol" not in settings
    assert not any("touch" in value for value in settings.values())
    origins = {origin for origin, _, _ in lines}
    assert {origin for origin in origins if origin.startswith("file:")} == {
        f"file:{view.place['GIT_DIR']}/config"
    }


def test_a_file_changed_in_the_moment_in_which_the_index_was_written_is_seen(repo: Repo) -> None:
    """By the time of the index git knows that it must look closer: the copy keeps that time."""
    index = repo.root / ".git" / "index"
    path = repo.root / "a.txt"
    times = path.stat()
    path.write_text("two\n")  # of the same length
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    os.utime(index, ns=(times.st_mtime_ns, times.st_mtime_ns))
    with git_view(repo.root) as view:
        assert isinstance(view, GitView)
        assert b"+two" in view.git("-c", "core.trustctime=false", "diff").stdout
