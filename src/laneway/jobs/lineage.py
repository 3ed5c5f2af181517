"""Whether this process runs below a worker of a background job: there nobody starts further jobs.

Loads next to nothing: every server asks this before it greets its client.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from laneway.wire.process_tree import lineage

MARKER = "LANEWAY_JOB"
"""The variable in a worker's environment that names its job."""


def mark_of(job_id: str) -> int:
    """The number by which the kernel knows the processes of a job, whatever their environment."""
    return (1 << 62) + int(job_id.removeprefix("job-"), 16) % (1 << 61)


def is_in_worker(environment: Mapping[str, str]) -> bool:
    """By the mark, or by a worker's guardian among our ancestors.

    Codex gives MCP servers an environment of its own making, without the mark.
    """
    return MARKER in environment or any(each.is_worker for each in lineage(os.getppid()).processes)
