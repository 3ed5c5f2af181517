"""The user's jobs on other machines: joins `laneway.jobs.nodes` with the settings and with team mail."""

from __future__ import annotations

import os

from laneway.base.settings import Settings
from laneway.codex.locate import child_environment
from laneway.jobs.model import Job
from laneway.jobs.nodes.orders import NodeOrder, NodeOrders
from laneway.jobs.nodes.pipe_nodes import PipeNodes
from laneway.jobs.nodes.port import Nodes
from laneway.jobs.nodes.remote_jobs import RemoteJobs
from laneway.jobs.service import Jobs


def open_remote(settings: Settings, jobs: Jobs) -> RemoteJobs:
    """Nobody is connected to before a job needs it."""

    def tell(order: NodeOrder, job: Job) -> None:
        from laneway.app.job_mail import send_end  # most jobs tell nobody

        answer = NodeOrders(jobs).kept_answer(job.job_id) or {}
        send_end(order.notify, order.team or None, job, str(answer.get("lastMessage", "")))

    return RemoteJobs(jobs, _nodes(settings, jobs), settings.jobs_repositories, tell)


def _nodes(settings: Settings, jobs: Jobs) -> Nodes:
    environment = child_environment(os.environ)
    if settings.jobs_executor == "ray":
        from laneway.jobs.nodes.ray_nodes import RayNodes

        return RayNodes(settings.jobs_address, environment, jobs)
    commands = {name: node.command or "" for name, node in settings.jobs_nodes.items()}
    return PipeNodes(commands, environment, jobs.free)
