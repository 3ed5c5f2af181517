"""A worker that fills the disk, for real: its job ends, its slots are free, and what was written is whole."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.adversary.false_codex import false_codex
from tests.adversary.support import DEADLINE_S
from tests.adversary.test_full_disk import ALONE, SOURCES, can_mount  # noqa: F401  in a condition

SCENE = """
mount -t tmpfs -o size=3m tmpfs "$1" && cd "$1" || exit 99
mkdir -p home work && head -c 400000 /dev/zero > home/reserve && cd work && git init -q .
export HOME="$1/home"; unset XDG_CACHE_HOME XDG_STATE_HOME XDG_CONFIG_HOME
shift
exec "$@"
"""
"""A disk of our own, with hardly more room than an empty ledger needs."""
STEPS = """
import subprocess, sys, time, json, os
from pathlib import Path
from laneway.jobs.slots import is_held
words = [sys.executable, "-m", "laneway", "jobs"]
def run(*more):
    ran = subprocess.run([*words, *more], capture_output=True, text=True)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran
spawned = run("spawn", "x", *sys.argv[1:])
assert spawned.returncode == 0, spawned.stderr
job = spawned.stdout.strip()
lock = Path(os.environ["HOME"], ".local/state/laneway/jobs/jobs", job, "lock")
deadline = time.monotonic() + 50
while is_held(lock) and time.monotonic() < deadline:
    time.sleep(0.05)
filled = run("events", job, "--json")
# Somebody makes room, and looks.
for folder, _, names in os.walk(os.environ["HOME"]):
    for name in names:
        if name in ("filling", "reserve"):
            os.unlink(os.path.join(folder, name))
waited = run("wait", job, "--timeout", "40s")
status = json.loads(run("status", job, "--json").stdout)
events = [json.loads(line) for line in run("events", job, "--full", "--json").stdout.splitlines()]
slots = json.loads(run("list", "--json").stdout)["slots"]
after = run("spawn", "y", "--wait", "--json")
print(json.dumps({
    "code": waited.returncode, "status": status, "slots": slots, "filled": filled.returncode,
    "types": [event["type"] for page in events for event in page["events"]],
    "after": json.loads(after.stdout.splitlines()[-1])["status"] if after.stdout else after.stderr,
}))
"""
FILLS = {
    "events": "for n in range(60_000): item(n, type='reasoning', text='x' * 200)\nend()",
    "disk": (
        "with open(os.path.expanduser('~/filling'), 'wb', 0) as file:\n"
        "    try:\n        while True: file.write(b'x' * 4096)\n"
        "    except OSError: pass\n"
        "for n in range(100): item(n, type='reasoning', text='x' * 4000)\nend()"
    ),
}
"""By the events that it makes us write, or by itself."""


@pytest.mark.covers("J-supervision.1")
@pytest.mark.skipif("not can_mount()", reason="a small disk of our own needs user namespaces")
@pytest.mark.parametrize("how", FILLS)
async def test_a_full_disk_ends_the_job_and_loses_nothing_that_was_written(tmp_path: Path, how: str) -> None:
    """The job is over then, or at the next look when there is room again; and the next one runs."""
    disk = tmp_path / "disk"
    disk.mkdir()
    once = tmp_path / "once"
    body = f"if not os.path.exists({str(once)!r}):\n    open({str(once)!r}, 'w').close()\n"
    body += "".join(f"    {line}\n" for line in FILLS[how].splitlines()) + "else:\n    end()\n"
    codex = false_codex(tmp_path, "codex", body)
    words = [*ALONE, "sh", "-c", SCENE, "sh", str(disk), sys.executable, "-c", STEPS]
    process = await asyncio.create_subprocess_exec(
        *words,
        env={**os.environ, "PYTHONPATH": SOURCES, "LANEWAY_CODEX_BIN": codex},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(2 * DEADLINE_S):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    seen = json.loads(out)
    assert seen["status"]["status"] in ("failed", "lost"), seen
    assert seen["slots"] == {"read": "0/8", "write": "0/2", "total": "0/10", "queued": "0"}
    assert seen["types"].count("final") <= 1
    assert "final" not in seen["types"][:-1]
    assert seen["after"] == "succeeded", seen
