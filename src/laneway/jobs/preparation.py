"""What an attempt of a job is started with: command line, environment, prompt. Blocking."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from laneway.base.errors import StoreError
from laneway.codex import binary
from laneway.codex.exec import config
from laneway.codex.exec.command import WorkerCommand, argv
from laneway.codex.exec.project_docs import project_docs
from laneway.codex.locate import Binary
from laneway.jobs.contract import compose
from laneway.jobs.lineage import MARKER
from laneway.jobs.model import MAX_PROMPT_CHARS, JobSpec
from laneway.jobs.places import JobPlaces
from laneway.store.files import read_whole, write_whole

MAX_ENVIRONMENT_BYTES = 8 * 1024 * 1024
_decode_environment = msgspec.json.Decoder(dict[str, str]).decode


class Prepared(msgspec.Struct, frozen=True):
    argv: tuple[str, ...]
    environment: dict[str, str]
    prompt: bytes


def spawners_environment(files: JobPlaces, job_id: str) -> dict[str, str]:
    """The environment that the job's spawner had, with the job's mark."""
    data = read_whole(files.environment, MAX_ENVIRONMENT_BYTES)
    if data is None:
        raise StoreError(f"{files.environment} is gone: the job cannot be started.", str(files.environment))
    return {**_decode_environment(data), MARKER: job_id}


def prepare_worker(
    spec: JobSpec, files: JobPlaces, environment: Mapping[str, str], thread_id: str | None
) -> Prepared:
    """`thread_id`: of the thread to go on with."""
    is_resumed = thread_id is not None
    # Asking for the version is starting a Codex: only where it decides anything.
    may_write_trust = config.writes_trust(spec.sandbox, is_resumed=is_resumed, version=None)
    found = config.read(
        spec.cwd,
        spec.codex_home,
        sandbox=spec.sandbox,
        is_resumed=is_resumed,
        version=binary.probe(Binary(spec.codex, "job")) if may_write_trust else None,
        ask=(spec.codex,),
    )
    if spec.output_schema is not None:
        write_whole(files.schema, msgspec.json.encode(spec.output_schema))
    command = WorkerCommand(
        binary=spec.codex,
        cwd=spec.cwd,
        sandbox=spec.sandbox,
        model=spec.model,
        effort=spec.effort,
        schema_file=str(files.schema) if spec.output_schema is not None else None,
        thread_id=thread_id,
        untrusted=found.untrusted,
        servers_off=found.servers_off,
    )
    docs = project_docs(spec.cwd, found.user) if found.untrusted else ""
    prompt = compose_prompt(spec, docs)
    return Prepared(tuple(argv(command)), dict(environment), prompt.encode("utf-8", "replace"))


def compose_prompt(spec: JobSpec, docs: str = "") -> str:
    """The contract and the task; the project's documents are left out where there is no room for them."""
    prompt = compose(
        spec.prompt,
        folder=spec.cwd,
        is_writing=spec.mode == "write",
        scope=spec.scope,
        has_schema=spec.output_schema is not None,
        project_docs=docs,
    )
    return compose_prompt(spec) if docs and len(prompt) > MAX_PROMPT_CHARS else prompt


def work_folder(spec: JobSpec) -> Path:
    """The folder to start in; the job's own may be gone by now, and Codex says so itself."""
    return Path(spec.cwd) if os.path.isdir(spec.cwd) else Path("/")
