"""Two servers and many jobs: real servers, real workers, counted as processes."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from laneway.jobs.lineage import MARKER
from tests.cli.jobs.support import shell
from tests.doors.mcp.support import Client
from tests.jobs.servers import server
from tests.wire.support import linux_only

READ, WRITE = 20, 5
DEADLINE_S = 100.0


def running(jobs: Mapping[str, str]) -> Counter[str]:
    """By mode, how many of these jobs have a living process of a worker."""
    found: set[str] = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                environment = Path("/proc", name, "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            marks = (entry for entry in environment if entry.startswith(f"{MARKER}=".encode()))
            found.update(mark.partition(b"=")[2].decode() for mark in marks)
    return Counter(jobs[job_id] for job_id in found & jobs.keys())


async def spawned(client: Client, prompt: str, **more: Any) -> str:
    job_id: str = (await client.content("codex_spawn", prompt=prompt, **more))["jobId"]
    return job_id


@pytest.mark.covers("004-tools.s", "004-a2.s1", "004-bounds.1", "004-bounds.s", "J-supervision.5")
@linux_only
async def test_never_more_than_eight_read_and_two_write_jobs_run_over_two_servers(tmp_path: Path) -> None:
    """The rest is queued until there is room, all of them end, and disjoint edits are accepted."""
    async with shell(tmp_path) as person, server(person) as one, server(person) as two:
        jobs: dict[str, str] = {}
        go = tmp_path / "go"
        # Codex waits ten seconds for each command; on a busy machine the crowd takes longer to gather.
        hold = "\n".join([f"%run until test -e {go}; do sleep 0.05; done"] * 6)
        for number in range(READ):
            client = (one, two)[number % 2]
            jobs[await spawned(client, f"{hold}\n%say {number}")] = "read"
            if number < WRITE:
                patch = f"%patch file{number} {number}\n{hold}"
                jobs[await spawned(client, patch, sandbox="workspace-write")] = "write"
        most: Counter[str] = Counter()
        everything = Counter(read=8, write=2)
        waits = asyncio.gather(
            *(client.content("codex_wait_all", jobIds=list(jobs)) for client in (one, two))
        )
        async with asyncio.timeout(DEADLINE_S):
            while not waits.done():
                now = await asyncio.to_thread(running, jobs)
                most |= now
                if now == everything and not go.exists():
                    listed = await one.content("codex_list")
                    assert listed["slots"] == {
                        "read": "8/8",
                        "write": "2/2",
                        "total": "10/10",
                        "queued": "15",
                    }
                    go.touch()
                await asyncio.sleep(0.02)
        assert most == everything
        for answer in await waits:
            assert [job["status"] for job in answer["ended"]] == ["succeeded"] * len(jobs)
        assert running(jobs).total() == 0
        shown = await two.content("codex_resolve", action="show")
        assert shown["conflicts"] == []
        edited = [[file["path"] for file in job["modifiedFiles"]] for job in shown["jobs"]]
        assert sorted(edited) == [[f"file{number}"] for number in range(WRITE)]
        assert (await two.content("codex_resolve", action="accept"))["accepted"]
        assert {path.name for path in person.here.work.glob("file*")} == {
            f"file{number}" for number in range(WRITE)
        }


@pytest.mark.covers("004-concurrency.s", "004-a2.s2", "J-tools.6")
async def test_one_file_twice_is_a_conflict_that_is_rolled_back_and_run_again_in_sequence(
    tmp_path: Path,
) -> None:
    """By two bosses, each on a server of its own."""
    async with shell(tmp_path) as person, server(person) as one, server(person) as two:
        here = person.here
        here.write(**{"a.txt": "a\nb\nc\nd\ne\nf\ng\n"})
        go = tmp_path / "go"
        jobs = []
        for client, edit in ((one, "a => one"), (two, "g => two")):
            prompt = f"%edit a.txt {edit}\n%run until test -e {go}; do sleep 0.02; done\n%say Done."
            jobs.append(await spawned(client, prompt, sandbox="workspace-write"))
            await here.until(person.jobs, person.jobs.get(jobs[-1]), lambda job: "until" in job.activity)
        go.touch()
        await one.content("codex_wait_all", jobIds=jobs)
        result = await two.content("codex_result", jobId=jobs[0])
        assert [(each["path"], each["kind"]) for each in result["conflicts"]] == [("a.txt", "overlap")]
        assert result["conflicts"][0]["jobs"] == jobs
        refused = await one.content("codex_resolve", action="accept")
        assert (refused["accepted"], refused["conflicts"][0]["path"]) == (False, "a.txt")
        again = await one.content("codex_resolve", action="rerun")
        assert (again["ending"], again["paths"]) == ("done", ["a.txt"])
        new = [each["jobId"] for each in again["jobs"]]
        assert [each["was"] for each in again["jobs"]] == jobs
        ended = (await two.content("codex_wait_all", jobIds=new))["ended"]
        assert [(job["jobId"], job["status"]) for job in ended] == [(each, "succeeded") for each in new]
        first, second = (person.jobs.get(each) for each in new)
        assert first.ended_at <= second.started_at
        assert (here.work / "a.txt").read_text() == "one\nb\nc\nd\ne\nf\ntwo\n"
        assert (await one.content("codex_resolve", action="accept"))["accepted"]
