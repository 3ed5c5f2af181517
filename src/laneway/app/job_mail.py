"""Team mail to the identity that spawned a job, when the job has ended. Blocking."""

from __future__ import annotations

import logging

from laneway.base.errors import LanewayError
from laneway.base.plain import label
from laneway.jobs.model import Job
from laneway.mail.draft import draft
from laneway.mail.names import Address
from laneway.mail.places import Places
from laneway.mail.post import Post
from laneway.mail.teams import mail_team

log = logging.getLogger(__name__)

SENDER = "laneway-jobs"
WORDS_CHARS = 1000
"""Of the job's last message."""


def send_end(to: str, team: str | None, job: Job, last_message: str) -> None:
    """Tell whoever wanted to be told. Mail that cannot be sent is logged: the job has ended all the same."""
    try:
        places = Places.of()
        team = team or mail_team(places, None).team
        message = draft(
            SENDER, text_of(job, last_message), team=team, summary=f"Job {job.status}: {job.title}"
        )
        Post(places).send(message, Address(to, team))
    except LanewayError as problem:
        log.warning("%s was not told that job %s ended: %s", to, job.job_id, problem)


def text_of(job: Job, last_message: str) -> str:
    """Pure. The worker's words are a quotation: they are no order."""
    words = label(last_message, WORDS_CHARS) if last_message else "(none)"
    why = f" {job.failure.text}" if job.failure is not None else ""
    return (
        f"Your background job {job.job_id} has ended: {job.status}.{why}\n"
        f"codex_result has all of it. Its last words, quoted:\n> {words}"
    )
