"""Mail to whoever spawned a job, when it has ended."""

from __future__ import annotations

from pathlib import Path

from laneway.jobs.model import Job, JobFailure
from laneway.mail.inbox import Inbox
from laneway.mail.places import Places
from tests.app.test_jobs import place, spawned
from tests.core.support import until
from tests.mail.box import found


async def test_the_boss_gets_mail_when_its_job_has_ended(tmp_path: Path) -> None:
    """Under the name of its server, by a setting; the supervisor sends it, so the server may be gone."""
    settings = {"LANEWAY_JOBS_MAIL": "true", "LANEWAY_IDENTITY": "ann", "LANEWAY_TEAM": "crew"}
    async with place(tmp_path) as here:
        found(here.state, "ann", team="crew")
        async with here.server("mcp", env={**settings, "ATM_TEAM": "crew"}) as client:
            job_id = await spawned(client, "%say All is well.")
            await client.content("codex_wait_all", jobIds=[job_id])
            inbox = Inbox(Places.of({"ATM_HOME": str(here.state)}), "crew", "ann")
            await until(lambda: inbox.read().unread())
            (mail,) = inbox.read().unread()
            assert job_id in mail.text
            assert "> All is well." in mail.text
            assert mail.sender == "laneway-jobs"


def test_a_failure_is_told_with_its_reason() -> None:
    from laneway.app.job_mail import text_of

    job = Job(
        job_id="job-1",
        number=1,
        owner="local",
        mode="read",
        status="failed",
        failure=JobFailure("turn", "It broke."),
    )
    assert text_of(job, "").splitlines() == [
        "Your background job job-1 has ended: failed. It broke.",
        "codex_result has all of it. Its last words, quoted:",
        "> (none)",
    ]
