"""One supervised child, for real: how it starts, speaks, is stopped, and how its end is told."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laneway.wire.child import STDERR_TAIL_BYTES, Child, Exit
from tests.wire.support import DEADLINE_S, Heard, Watch, ended, linux_only, program, python, start

SAY_ARGS = "import json, sys; print(json.dumps(sys.argv[1:]))"

# ── how it starts ──────────────────────────────────────────────────────────


async def test_arguments_arrive_unchanged_because_no_shell_reads_them() -> None:
    """Spaces, quotes, expansions, newlines, nothing at all, and what looks like an option."""
    args = [
        "two words",
        'it\'s "quoted"',
        "$(touch pwned) `touch pwned` $HOME ; rm -rf / | cat > pwned",
        "line\nbreak\r\n\ttab",
        "",
        "--",
        "-c",
        "*",
        "~",
        "\\",
        "é 🐢",
        "not UTF-8: \udcff",
    ]
    heard = Heard()
    await ended(await start(python(SAY_ARGS, *args), heard))

    assert json.loads(heard.text) == args


@pytest.mark.parametrize("env", [{}, {"ONE": "1", "TWO": "a b\n$c"}, {"LC_CTYPE": "C"}, {"LC_CTYPE": ""}])
async def test_the_environment_is_exactly_what_was_given(env: dict[str, str]) -> None:
    """The guardian, a Python of its own, adds nothing on the way."""
    heard = Heard()
    await ended(await start(["/usr/bin/env", "-0"], heard, env=env))

    assert heard.text.split(b"\0")[:-1] == [f"{name}={value}".encode() for name, value in env.items()]


async def test_it_runs_in_the_folder_it_was_given(tmp_path: Path) -> None:
    """And in ours if none was."""
    for cwd, expected in ((tmp_path, tmp_path), (None, Path.cwd())):
        heard = Heard()
        await ended(await start(["/bin/pwd", "-P"], heard, cwd=cwd))
        assert Path(heard.text.decode().rstrip("\n")) == expected.resolve()


async def test_it_leads_a_session_of_its_own() -> None:
    """A Ctrl-C or a hang-up at our terminal is not for it to hear."""
    heard = Heard()
    child = await start(python("import os; print(os.getpid(), os.getsid(0), os.getpgrp())"), heard)
    await ended(child)

    assert heard.text.split() == [b"%d" % child.pid] * 3
    assert child.pid != os.getsid(0)


async def test_one_that_is_gone_before_its_first_words_could_be_said_just_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is raised, nothing is left open: how it ended is told as ever."""

    class Slow(subprocess.Popen[bytes]):
        """As on a busy machine: when we go on, it has come and gone."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.wait()

    monkeypatch.setattr(subprocess, "Popen", Slow)
    heard = Heard()
    child = await start(python("raise SystemExit(3)"), heard, first=b"hello")
    assert await ended(child) == Exit(code=3)


def ignored_by_our_parent() -> int:
    """The signals that we ignore, less those that Python adds or the guardian resets; the kernel's mask."""
    mask = int(Path("/proc/self/status").read_text().partition("SigIgn:")[2].split()[0], 16)
    for reset in ("SIGPIPE", "SIGXFSZ", "SIGINT", "SIGTERM", "SIGHUP", "SIGCHLD"):
        mask &= ~(1 << signal.Signals[reset] - 1)
    return mask


@linux_only
async def test_it_starts_with_default_signals_and_no_foreign_descriptors() -> None:
    """Neither what Python ignores nor what we hold open is passed on; what our own parent ignores is."""
    heard = Heard()
    await ended(
        await start(["/bin/sh", "-c", "grep -E 'Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd"], heard)
    )

    # 3 is the folder that `ls` reads.
    inherited = b"%016x" % ignored_by_our_parent()
    assert heard.text.split() == [b"SigBlk:", b"0" * 16, b"SigIgn:", inherited, b"0", b"1", b"2", b"3"]


def not_executable(folder: Path) -> tuple[list[str], Path | None, int]:
    path = folder / "plain"
    path.write_text("no program")
    return [str(path)], None, errno.EACCES


def not_a_program(folder: Path) -> tuple[list[str], Path | None, int]:
    path = folder / "noise"
    path.write_bytes(b"\x01\x02\x03")
    path.chmod(0o700)
    return [str(path)], None, errno.ENOEXEC


def not_there(folder: Path) -> tuple[list[str], Path | None, int]:
    return [str(folder / "nowhere"), "arg"], None, errno.ENOENT


def not_on_path(folder: Path) -> tuple[list[str], Path | None, int]:
    return ["laneway-has-no-such-program"], None, errno.ENOENT


def no_such_folder(folder: Path) -> tuple[list[str], Path | None, int]:
    return ["true"], folder / "nowhere", errno.ENOENT


@pytest.mark.parametrize("case", [not_executable, not_a_program, not_there, not_on_path, no_such_folder])
async def test_what_cannot_be_started_raises_as_exec_would(
    case: Callable[[Path], tuple[list[str], Path | None, int]], tmp_path: Path
) -> None:
    """An `OSError` with its number and the name that failed; no end is told for what never began."""
    argv, cwd, number = case(tmp_path)
    heard = Heard()
    with pytest.raises(OSError) as caught:
        await start(argv, heard, cwd=cwd)

    assert (caught.value.errno, str(caught.value.filename)) == (number, str(cwd or argv[0]))
    assert heard.events == []


async def test_nothing_to_start_is_refused() -> None:
    """Before any process exists."""
    with pytest.raises(ValueError, match="no program"):
        await start([], Heard())


@linux_only
async def test_no_descriptor_is_left_after_many_children() -> None:
    """Good ones, failing ones and killed ones."""

    async def round_of_children() -> int:
        await ended(await start(["true"], Heard()))
        with pytest.raises(FileNotFoundError):
            await start(["/nowhere"], Heard())
        with pytest.raises(FileNotFoundError):
            await start(["true"], Heard(), cwd=Path("/nowhere"))
        child = await start(["cat"], Heard())
        child.kill()
        await ended(child)
        return len(os.listdir("/proc/self/fd"))

    first = await round_of_children()

    assert [await round_of_children() for _ in range(10)] == [first] * 10


async def test_a_spawn_that_is_cancelled_leaves_nobody() -> None:
    """However far it had come; the fixture of this folder counts the processes."""
    for turns in range(12):
        heard = Heard()
        task = asyncio.ensure_future(start(["cat"], heard))
        for _ in range(turns):
            await asyncio.sleep(0)
        was_on_its_way = task.cancel()
        try:
            child = await task
        except asyncio.CancelledError:
            assert was_on_its_way
            assert heard.ends == []
        else:  # on a busy machine it can be there after a few turns of the loop
            assert not was_on_its_way
            child.kill()
            await ended(child)


# ── what it says and hears ─────────────────────────────────────────────────


async def test_a_flood_on_standard_error_is_kept_as_a_tail_while_output_flows() -> None:
    """Neither stream waits for the other; the last words are there when the end is told."""
    code = """if True:
        import os
        for number in range(400):
            os.write(2, b"%07d\\n" % number * 4096)
            os.write(1, b"%d\\n" % number)
        os.write(2, "last words: é".encode())
    """
    heard, tails = Heard(), []

    def on_end(exit_: Exit) -> None:
        tails.append(child.stderr_tail)

    child = await Child.spawn(python(code), on_stdout=heard.on_stdout, on_end=on_end)
    await ended(child)

    assert heard.text == b"".join(b"%d\n" % number for number in range(400))
    [tail] = tails
    assert tail.endswith("0000399\n0000399\nlast words: é")
    assert len(tail.encode()) == STDERR_TAIL_BYTES


async def test_the_last_bytes_come_before_the_end() -> None:
    """More than any pipe holds, written right before the exit."""
    heard = Heard()
    child = await start(python("import os, sys; sys.stdout.write('x' * 5_000_000 + 'end')"), heard)

    assert await ended(child) == Exit(code=0)
    assert heard.text == b"x" * 5_000_000 + b"end"
    assert heard.events[-1] == Exit(code=0)
    assert heard.ends == [Exit(code=0)]


async def test_the_last_words_of_a_grandchild_come_before_the_end_too() -> None:
    """It holds the pipe until the tree is swept."""
    code = """if True:
        import os, signal
        ready, done = os.pipe()
        if os.fork() == 0:
            def last(number, frame):
                os.write(1, b"grandchild")
                os._exit(0)
            signal.signal(signal.SIGTERM, last)
            os.write(done, b"!")
            while True:
                signal.pause()
        os.read(ready, 1)
        os.write(1, b"child ")
    """
    heard = Heard()
    await ended(await start(python(code), heard))

    assert heard.text == b"child grandchild"
    assert heard.events[-1] == Exit(code=0)


async def test_input_longer_than_the_pipe_waits_and_arrives() -> None:
    """What waits is counted; closing sends it first."""
    heard = Heard()
    child = await start(python("import sys; print(len(sys.stdin.buffer.read()))"), heard)
    for _ in range(30):
        child.write(b"x" * 100_000)
    waiting = child.backlog_bytes
    exit_ = await child.stop(DEADLINE_S)

    assert waiting > 0
    assert (exit_, heard.text) == (Exit(code=0), b"3000000\n")
    assert child.backlog_bytes == 0


async def test_words_to_the_dead_are_dropped_in_silence() -> None:
    """Whoever writes need not know that it has ended."""
    child = await start(["true"], Heard())
    await ended(child)
    for _ in range(10):
        child.write(b"hello")
    child.kill()

    assert await child.stop() == Exit(code=0)


# ── how it ends ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("code", "exit_", "words"),
    [
        ("pass", Exit(code=0), "exit code 0"),
        ("import os; os._exit(3)", Exit(code=3), "exit code 3"),
        ("import os; os._exit(255)", Exit(code=255), "exit code 255"),
        ("import os; os.kill(os.getpid(), 9)", Exit(signal="SIGKILL"), "killed by SIGKILL"),
        ("import os; os.abort()", Exit(signal="SIGABRT"), "killed by SIGABRT"),
        ("import os; os.kill(os.getpid(), 40)", Exit(signal="signal 40"), "killed by signal 40"),
    ],
)
async def test_the_end_is_told_as_code_or_signal_name(code: str, exit_: Exit, words: str) -> None:
    """The same to whoever waits, to whoever was registered, and to whoever stops it later."""
    heard = Heard()
    child = await start(python(code), heard)

    assert (await ended(child), heard.ends, await child.stop()) == (exit_, [exit_], exit_)
    assert str(exit_) == words


@linux_only
@pytest.mark.parametrize(
    ("behaviour", "own_end_s", "exit_"),
    [
        ("stay", DEADLINE_S, Exit(code=0)),
        ("until-term", 0.01, Exit(code=5)),
        ("never", 0.01, Exit(signal="SIGKILL")),
    ],
)
async def test_the_ladder_goes_only_as_far_as_it_must(behaviour: str, own_end_s: float, exit_: Exit) -> None:
    """End of input, then SIGTERM, then SIGKILL."""
    heard = Heard()
    child = await start(program("tree", behaviour), heard)
    with Watch(json.loads(await heard.wait_line()).values()) as family:
        async with asyncio.timeout(DEADLINE_S):
            assert await child.stop(own_end_s) == exit_
        await family.wait_gone()
    assert heard.ends == [exit_]


async def test_a_stop_that_is_cancelled_still_ends_the_child() -> None:
    """Nobody is left to climb the ladder, so it ends at once."""
    heard = Heard()
    child = await start(program("tree", "never"), heard)
    await heard.wait_line()
    stopping = asyncio.ensure_future(child.stop(DEADLINE_S))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping

    assert await ended(child) == Exit(signal="SIGKILL")


async def test_many_may_wait_and_one_who_gives_up_disturbs_nobody() -> None:
    """Waiting is shared; cancelling one waiter ends neither the child nor the others."""
    child = await start(["cat"], Heard())
    waiters = [asyncio.ensure_future(child.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiters[0].cancel()
    os.kill(child.pid, signal.SIGINT)
    async with asyncio.timeout(DEADLINE_S):
        results = await asyncio.gather(*waiters, return_exceptions=True)

    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == [Exit(signal="SIGINT")] * 2
