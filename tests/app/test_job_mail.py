"""Mail to whoever spawned a job, when it has ended."""

from __future__ import annotations

from pathlib import Path

import msgspec

from laneway.jobs.model import Job, JobFailure
from laneway.mail.inbox import Inbox
from laneway.mail.places import Places
from tests.app.test_jobs import place, spawned
from tests.cli.support import laneway
from tests.core.support import until
from tests.jobs.nodes.homes import homes
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


async def test_the_boss_gets_mail_for_a_job_on_another_machine_too(tmp_path: Path) -> None:
    """From this side, where the boss is; the other machine knows no team."""
    async with homes(tmp_path) as both:
        box = tmp_path / "mail"
        found(box, "ann", team="crew")
        home = tmp_path / "near"
        settings = home / ".config" / "laneway" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(
            f"[laneway.jobs.nodes.gpu1]\ncommand = {msgspec.json.encode(both.command).decode()}\n"
            f'[laneway.jobs.repositories]\nsite = "{both.site}"\n'
        )
        env = {
            "HOME": str(home),
            "XDG_STATE_HOME": str(tmp_path / "near-xdg"),
            "ATM_HOME": str(box),
            "LANEWAY_JOBS_MAIL": "true",
            "LANEWAY_IDENTITY": "ann",
            "LANEWAY_TEAM": "crew",
        }
        words = ("spawn", "--node", "gpu1", "-C", str(both.site), "--wait", "%say All is well.")
        ran = await laneway("jobs", *words, env=env)
        assert ran.code == 0, ran.err
        (mail,) = Inbox(Places.of({"ATM_HOME": str(box)}), "crew", "ann").read().unread()
        assert "> All is well." in mail.text
