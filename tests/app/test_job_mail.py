"""Mail to whoever spawned a job, when it has ended."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.jobs.model import Job, JobFailure
from laneway.jobs.places import JobsLayout
from laneway.jobs.processes import marked
from laneway.jobs.slots import held
from laneway.mail.inbox import Inbox
from laneway.mail.places import Places
from tests.app.test_jobs import place, spawned
from tests.cli.support import laneway
from tests.core.support import LOOK_S, until
from tests.jobs.killing import processes_of
from tests.jobs.nodes.homes import homes
from tests.mail.box import found
from tests.wire.support import linux_only


@pytest.mark.covers("J-boss.3")
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


@pytest.mark.covers("J-boss.3")
async def test_a_codex_boss_is_woken_by_the_mail(tmp_path: Path) -> None:
    """The mail becomes a turn of the session with the name of the server, without anybody asking."""
    settings = {"LANEWAY_JOBS_MAIL": "true", "LANEWAY_IDENTITY": "boss", "LANEWAY_TEAM": "crew"}
    async with place(tmp_path) as here, here.server("mcp", env={**settings, "ATM_TEAM": "crew"}) as client:
        await client.content("codex", prompt="%say Ready.", auto_mail=True)
        job_id = await spawned(client, "%say All is well.")

        def mail_turns() -> list[str]:
            texts = [text for request in here.requests for text in _prompts(request)]
            return [text for text in texts if text.startswith("You have team mail") and job_id in text]

        await until(mail_turns)
        assert "All is well." in mail_turns()[0]
        assert "laneway-jobs" in mail_turns()[0]


@linux_only
async def test_the_boss_is_told_of_a_job_whose_supervisor_was_killed(tmp_path: Path) -> None:
    """By whoever finds out."""
    settings = {"LANEWAY_JOBS_MAIL": "true", "LANEWAY_IDENTITY": "ann", "LANEWAY_TEAM": "crew"}
    async with place(tmp_path) as here:
        found(here.state, "ann", team="crew")
        async with here.server("mcp", env={**settings, "ATM_TEAM": "crew"}) as client:
            job_id = await spawned(client, "%run sleep 1000")
            while (await client.content("codex_status", jobId=job_id))["status"] != "running":
                await asyncio.sleep(LOOK_S)
            for pid in (processes_of(job_id)["supervisor"], *marked(job_id)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await client.content("codex_wait_all", jobIds=[job_id])
            inbox = Inbox(Places.of({"ATM_HOME": str(here.state)}), "crew", "ann")
            await until(lambda: inbox.read().unread())
            (mail,) = inbox.read().unread()
            assert f"Your background job {job_id} has ended: lost." in mail.text


@pytest.mark.covers("J-boss.3")
async def test_without_the_setting_nobody_is_told(tmp_path: Path) -> None:
    """The job's supervisor is gone by then, and with it whoever could send mail."""
    async with place(tmp_path) as here:
        found(here.state, "ann", team="crew")
        settings = {"LANEWAY_IDENTITY": "ann", "LANEWAY_TEAM": "crew", "ATM_TEAM": "crew"}
        async with here.server("mcp", env=settings) as client:
            job_id = await spawned(client, "%say All is well.")
            await client.content("codex_wait_all", jobIds=[job_id])
            lock = JobsLayout.of(tmp_path / "xdg" / "laneway").job(job_id).lock
            assert lock.exists()

            def is_free() -> bool:
                with held(lock) as is_ours:
                    return is_ours

            await until(is_free)
            assert not Inbox(Places.of({"ATM_HOME": str(here.state)}), "crew", "ann").read().unread()


def _prompts(request: dict[str, Any]) -> list[str]:
    messages = [item for item in request["input"] if item["type"] == "message" and item["role"] == "user"]
    return [part["text"] for message in messages for part in message["content"]]


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
