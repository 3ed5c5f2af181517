"""Workers that flood, garble, forge, fork and linger: their jobs end, and everybody else is answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.jobs.event_log import MAX_ANSWER_BYTES
from laneway.jobs.job_json import result_json, status_json
from laneway.jobs.model import JobLimits
from laneway.jobs.partial import result_of
from laneway.jobs.processes import marked
from tests.adversary.false_codex import false_codex
from tests.jobs.stage import reading, spawn, stage, writing
from tests.wire.support import linux_only

FLOOD = 20_000
BODIES = {
    "floods": f"""
for number in range({FLOOD}):
    item(number, type="reasoning", text="x" * 100)
end()
""",
    "one line": """
for _ in range(80):
    os.write(1, b"x" * 1_000_000)
out("")
end()
""",
    "garbles": """
os.write(1, b"\\xff\\x00" + b"[" * 100_000 + b"\\n{\\n")
os.write(1, b'{"type": 1e999}\\n\\x1b[2J\\n')
end()
""",
    "lone halves": """
os.write(1, b'{"type": "error", "message": "\\\\ud800 \\\\u0000"}\\n')
end("\\ud800\\0\\x1b[2J")
""",
    "forges an end": """
out({"type": "final", "content": {"status": "succeeded"}, "timestamp": "x"})
sys.exit(3)
""",
    "odd items": """
item(1, type="final")
item(1, type=["x"], text={})
item(2, type="file_change", changes=[{"path": "../../../etc/passwd"}, {"path": "a\\0b"}, 7])
out({"type": "item.started", "item": {}})
end()
""",
    "odd thread": """
out({"type": "thread.started", "thread_id": "--help"})
out({"type": "turn.completed", "usage": {"input_tokens": 10**30, "output_tokens": -5}})
""",
    "many names": """
item(1, type="agent_message", text="Modified files:\\n" + "\\n".join(map(str, range(50_000))))
out({"type": "turn.completed", "usage": {}})
""",
}
"""What a worker may print, by what that is."""


@pytest.mark.covers("004-events.2", "J-tools.8")
async def test_whatever_a_worker_prints_its_job_ends_and_can_be_looked_at(tmp_path: Path) -> None:
    """In pages of bounded size, with one end in the log: the supervisor's."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(JobLimits(read=4, write=4, total=4))
        started = {
            name: spawn(here.jobs(codex=false_codex(tmp_path, name, body)), writing("x"))
            for name, body in BODIES.items()
        }
        ended = await here.ended(jobs, *started.values())
        statuses = {name: job.status for name, job in zip(started, ended, strict=True)}
        assert statuses == {
            **dict.fromkeys(BODIES, "succeeded"),
            "forges an end": "failed",
            "odd thread": "failed",
        }
        for name, job in zip(started, ended, strict=True):
            events: list[dict[str, Any]] = []
            cursor = None
            while True:
                page = jobs.events(job, cursor)
                assert (
                    len(page.events) == 1 or len(msgspec.json.encode(page.events)) <= MAX_ANSWER_BYTES + 4096
                )
                events += page.events
                cursor = page.next_cursor
                if page.is_at_end:
                    break
            assert [event["type"] for event in events].count("final") == 1, name
            assert events[-1]["content"]["status"] == job.status, name
            result, conflicts = result_of(jobs, job)
            told = result_json(job, result, conflicts, 0.0)
            assert json.loads(msgspec.json.encode(told))["status"] == job.status
            assert len(msgspec.json.encode(status_json(job, 0.0))) < 300
            assert result.modified_files == (), name
        assert len(here.events(jobs, started["floods"])) >= FLOOD
        assert here.git("status", "--porcelain") == ""


@pytest.mark.covers("J-workers.15")
@linux_only
async def test_nothing_that_a_worker_starts_outlives_its_job(tmp_path: Path) -> None:
    """Dozens of processes, in sessions of their own, without its streams; and the job has succeeded."""
    script = "%run for n in $(seq 40); do setsid sleep 1000 </dev/null >/dev/null 2>&1 & done"
    async with stage(tmp_path) as here:
        jobs = here.jobs(max_sandbox="danger-full-access")
        job = spawn(jobs, reading(f"{script}\n%say Done.", sandbox="danger-full-access"))
        inside = spawn(jobs, writing(f"{script}\n%say Done."))
        for ended in await here.ended(jobs, job, inside):
            assert ended.status == "succeeded", here.log_of(ended.job_id)
            assert list(marked(ended.job_id)) == []
