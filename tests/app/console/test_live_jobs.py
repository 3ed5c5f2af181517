"""Jobs of a server on the console: found in the shared ledger, and run again by the console."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from tests.app.console.support import desk


async def test_a_job_that_another_process_started_is_looked_at_and_run_again(
    tmp_path: Path, run: Path
) -> None:
    """What is not there is not found, whatever it is called; nothing of it reaches the ledger."""
    async with desk(tmp_path, run) as at, at.server() as client, at.console() as console:
        first = await at.spawned(client, "%run ls\n%say listed")
        (row,) = (await console.until("jobs", lambda told: told["jobs"]))["jobs"]
        assert (row["jobId"], row["title"], row["mode"]) == (first, "%run ls", "write")
        await client.content("codex_wait_all", jobIds=[first])
        told = await console.data(f"jobs/{first}")
        assert (told["status"], told["lastMessage"]) == ("succeeded", "listed")
        assert (told["prompt"], told["cwd"]) == ("%run ls\n%say listed", str(at.work))
        events = await console.data(f"jobs/{first}/events")
        assert [event["type"] for event in events["events"]][-2:] == ["progress", "final"]

        second = (await console.post(f"jobs/{first}/again")).data["jobId"]
        await client.content("codex_wait_all", jobIds=[second])
        assert (await console.data(f"jobs/{second}"))["lastMessage"] == "listed"

        for name in ("job-0000000000000000", "../../etc/passwd", "job-a\u202eb", "a" * 3000):
            job = quote(name, safe="")
            assert (await console.get(f"jobs/{job}")).status == 404
            assert (await console.get(f"jobs/{job}/events")).status == 404
            assert (await console.post(f"jobs/{job}/cancel")).status == 404
            assert (await console.post(f"jobs/{job}/again")).status == 404
            assert (await console.get(f"jobs/runs/{job}")).status == 404
        assert (await console.get(f"jobs/{first}/events?cursor=none-of-ours")).status == 400
        assert len((await console.data("jobs"))["jobs"]) == 2


async def test_without_a_codex_jobs_are_shown_and_not_run_again(tmp_path: Path, run: Path) -> None:
    """Why not is said when it is asked for."""
    async with desk(tmp_path, run) as at:
        async with at.server() as client:
            job = await at.spawned(client, "%say done")
            await client.content("codex_wait_all", jobIds=[job])
        async with at.console(LANEWAY_CODEX_BIN=str(at.work / "no-codex")) as console:
            assert (await console.data(f"jobs/{job}"))["lastMessage"] == "done"
            refused = await console.post(f"jobs/{job}/again")
            assert (refused.status, "no-codex" in refused.data["error"]) == (409, True)
            assert len((await console.data("jobs"))["jobs"]) == 1
