"""Whether Codex's sandbox works here, proved by running a harmless command in it.

The command must run, may write in its folder, and must be refused outside. Asked of
app-server's `command/exec` with the user's own config; versions that cannot do that show
it in a rehearsed turn. Where the sandbox does not start, the remedy is tried before it is told.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from laneway.base.errors import EngineRefused
from laneway.base.redact import redact
from laneway.cli.checks.codex import not_looked
from laneway.cli.checks.model import Case, Check, sentence
from laneway.cli.compose import LOCAL, ground
from laneway.codex import binary, locate
from laneway.codex.engine import CodexEngine
from laneway.codex.locate import child_environment
from laneway.codex.running import Connect
from laneway.core.model import Activity
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.rehearsal.home import throwaway_home, work_beside
from laneway.wire.child import Child, Exit

COMMAND_MS = 10_000
"""For a command that takes 50 ms; within the probe's own deadline."""
RAN = "laneway-was-here"
SCRIPT = f"echo {RAN}; echo x > inside; (echo x > ../outside) 2>/dev/null || true"
LANDLOCK = ("-c", "features.use_legacy_landlock=true")
SHOWN_CHARS = 300
NOWHERE = "http://127.0.0.1:1/v1"
"""No model is asked: only the folder of a rehearsal is needed, which the next one sweeps if we are killed."""


class Outcome(msgspec.Struct, frozen=True):
    ran: bool
    wrote_inside: bool
    wrote_outside: bool
    said: str = ""

    @property
    def is_good(self) -> bool:
        return self.ran and self.wrote_inside and not self.wrote_outside


async def look(case: Case) -> list[Check]:
    if case.found is None or case.link is None:
        return [not_looked("sandbox", "app-server does not answer")]
    try:
        outcome = await _by_command(case, case.found)
    except EngineRefused:
        outcome = await _by_turn(case, case.found)  # 0.104's app-server runs commands only in turns
    if outcome.ran or sys.platform != "linux":
        return [on_outcome(outcome)]
    return [on_outcome(outcome, helps_landlock=await _does_landlock_help(case, case.found))]


async def _does_landlock_help(case: Case, found: locate.Binary) -> bool:
    try:
        return (await _by_command(case, found, LANDLOCK)).is_good
    except EngineRefused:
        return False


class _Answer(msgspec.Struct, frozen=True):
    exitCode: int = -1
    stdout: str = ""
    stderr: str = ""


async def _by_command(case: Case, found: locate.Binary, options: Sequence[str] = ()) -> Outcome:
    with throwaway_home(NOWHERE) as home:
        work = work_beside(home)
        engine = CodexEngine(_server_in(work, case, found, options))
        try:
            link = await engine.link()
            asked = {
                "command": ["/bin/sh", "-c", SCRIPT],
                "cwd": str(work),
                "timeoutMs": COMMAND_MS,
                "sandboxPolicy": {
                    "type": "workspaceWrite",
                    "writableRoots": [],
                    "networkAccess": False,
                    "excludeSlashTmp": True,
                    "excludeTmpdirEnvVar": True,
                },
            }
            answer = msgspec.convert(await link.call("command/exec", asked), _Answer)
            case.said += link.warnings
        finally:
            await engine.aclose()
        return _seen(work, answer.stdout, answer.stderr)


def _server_in(work: Path, case: Case, found: locate.Binary, options: Sequence[str]) -> Connect:
    """An app-server of its own, started in that folder.

    What a command may write in is the server's folder, not the command's: one started in
    somebody's home would prove nothing.
    """

    async def connect(on_bytes: Callable[[bytes], None], on_end: Callable[[Exit], None]) -> Child:
        try:
            return await Child.spawn(
                [found.path, "app-server", *options],
                on_stdout=on_bytes,
                on_end=on_end,
                env=child_environment(case.codex_environment),
                cwd=work,
            )
        except OSError as problem:
            raise binary.cannot_run(found.path, problem) from problem

    return connect


async def _by_turn(case: Case, found: locate.Binary) -> Outcome:
    options = Namespace(codex_bin=found.path, rehearse=True)
    async with ground(options, settings=case.settings) as here:
        assert here.work is not None
        spec = ThreadSpec(cwd=here.work, sandbox="workspace-write", approval_policy="never")
        session = await here.hub.start(LOCAL, spec)
        turn = session.say(TurnSpec(parts=(TextPart(f"%run {SCRIPT}"),)))
        said = ""
        async for event in turn.events:
            if isinstance(event, Activity) and event.status != "running":
                said = event.output or said
        return _seen(here.work, said, said)


def _seen(work: Path, out: str, err: str) -> Outcome:
    inside, outside = work / "inside", work.parent / "outside"
    return Outcome(RAN in out, inside.exists(), outside.exists(), err)


# ── in words ───────────────────────────────────────────────────────────────


def on_outcome(outcome: Outcome, *, helps_landlock: bool = False, is_container: bool | None = None) -> Check:
    facts = {
        "ran": outcome.ran,
        "wrote_inside": outcome.wrote_inside,
        "wrote_outside": outcome.wrote_outside,
    }
    if outcome.is_good:
        message = "The sandbox works: a command could write in its folder and was refused outside it."
        return Check("sandbox", "ok", message, facts=facts)
    if not outcome.ran:
        reason = redact(" ".join(outcome.said.split()))[:SHOWN_CHARS] or "no reason was given"
        here = in_container() if is_container is None else is_container
        remedy = _remedy(outcome.said, helps_landlock=helps_landlock, is_container=here)
        message = sentence(f"The sandbox does not start here, so Codex cannot run commands in it: {reason}")
        return Check("sandbox", "error", message, remedy, facts)
    if outcome.wrote_outside:
        message = "The sandbox let a command write outside its folder."
        remedy = "Do not let Codex run commands unattended here, and send us a report (--report FILE)."
        return Check("sandbox", "error", message, remedy, facts)
    message = "A command in the sandbox cannot write in its own folder."
    return Check("sandbox", "error", message, "Check `sandbox_mode` in Codex's config.toml.", facts)


def _remedy(said: str, *, helps_landlock: bool, is_container: bool) -> str:
    """Only the sandbox's own words tell its failures apart: read here and nowhere else."""
    if "requires bubblewrap" in said or "incompatible with --use-legacy-landlock" in said:
        return "Remove `use_legacy_landlock` from Codex's config.toml: this version no longer works with it."
    if helps_landlock:
        return (
            "Add `use_legacy_landlock = true` under `[features]` in Codex's config.toml: it was tried and"
            " works here."
        )
    if is_container:
        return (
            "Let the container create user namespaces (Docker: `--security-opt seccomp=unconfined`, or a"
            " profile that allows them); if the container is sandbox enough, run Codex in the mode"
            " danger-full-access."
        )
    return (
        "Allow unprivileged user namespaces: on Ubuntu with an AppArmor profile for bwrap, elsewhere with"
        " `sysctl kernel.unprivileged_userns_clone=1` or `user.max_user_namespaces`."
    )


CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io")


def in_container() -> bool:
    return any(Path(mark).exists() for mark in CONTAINER_MARKS)
