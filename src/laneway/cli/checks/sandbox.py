"""Check of Codex's sandbox: runs a harmless command in it.

The command must run, may write in its folder, and must be refused outside it. It runs through
app-server's `command/exec` with the user's own config, or in a rehearsed turn where that method
is missing. If the sandbox does not start, a remedy is tried before it is recommended.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from laneway.app.options import CodexChoice
from laneway.app.runtime import LOCAL, open_runtime
from laneway.base.errors import EngineRefused
from laneway.base.redact import redact
from laneway.cli.checks.codex import not_checked
from laneway.cli.checks.model import Check, CheckContext, sentence
from laneway.codex import binary, locate
from laneway.codex.engine import CodexEngine
from laneway.codex.locate import child_environment
from laneway.codex.running import Connect
from laneway.core.model import Activity
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.rehearsal.home import throwaway_home, work_beside
from laneway.wire.child import Child, Exit

COMMAND_MS = 10_000
"""For a command that takes 50 ms; shorter than the probe's own deadline."""
RAN = "laneway-was-here"
SCRIPT = f"echo {RAN}; echo x > inside; (echo x > ../outside) 2>/dev/null || true"
LANDLOCK = ("-c", "features.use_legacy_landlock=true")
SHOWN_CHARS = 300
NOWHERE = "http://127.0.0.1:1/v1"
"""No model is called: we only need a rehearsal's folder, which the next one removes if we are killed."""


class SandboxOutcome(msgspec.Struct, frozen=True):
    """What the command could do, and what it printed on standard error."""

    ran: bool
    wrote_inside: bool
    wrote_outside: bool
    stderr: str = ""

    @property
    def is_good(self) -> bool:
        return self.ran and self.wrote_inside and not self.wrote_outside


async def look(context: CheckContext) -> list[Check]:
    if context.binary is None or context.link is None:
        return [not_checked("sandbox", "app-server does not answer")]
    try:
        outcome = await _by_command(context, context.binary)
    except EngineRefused:
        outcome = await _by_turn(context, context.binary)  # app-server 0.104 runs commands only in turns
    if outcome.ran or sys.platform != "linux":
        return [on_outcome(outcome)]
    return [on_outcome(outcome, helps_landlock=await _does_landlock_help(context, context.binary))]


async def _does_landlock_help(context: CheckContext, codex: locate.Binary) -> bool:
    try:
        return (await _by_command(context, codex, LANDLOCK)).is_good
    except EngineRefused:
        return False


class _SandboxAnswer(msgspec.Struct, frozen=True):
    exitCode: int = -1
    stdout: str = ""
    stderr: str = ""


async def _by_command(
    context: CheckContext, codex: locate.Binary, options: Sequence[str] = ()
) -> SandboxOutcome:
    with throwaway_home(NOWHERE) as home:
        work = work_beside(home)
        engine = CodexEngine(_server_in(work, context, codex, options))
        try:
            link = await engine.link()
            params = {
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
            answer = msgspec.convert(await link.call("command/exec", params), _SandboxAnswer)
            context.warnings += link.warnings
        finally:
            await engine.aclose()
        return _outcome(work, answer.stdout, answer.stderr)


def _server_in(work: Path, context: CheckContext, codex: locate.Binary, options: Sequence[str]) -> Connect:
    """Start a separate app-server in that folder.

    The sandbox lets a command write in the server's folder, not in its own: a server that was
    started in the user's home would prove nothing.
    """

    async def connect(on_bytes: Callable[[bytes], None], on_end: Callable[[Exit], None]) -> Child:
        try:
            return await Child.spawn(
                [codex.path, "app-server", *options],
                on_stdout=on_bytes,
                on_end=on_end,
                env=child_environment(context.codex_environment),
                cwd=work,
            )
        except OSError as problem:
            raise binary.cannot_run(codex.path, problem) from problem

    return connect


async def _by_turn(context: CheckContext, codex: locate.Binary) -> SandboxOutcome:
    async with open_runtime(CodexChoice(codex.path, is_rehearsal=True)) as runtime:
        assert runtime.work is not None
        spec = ThreadSpec(cwd=runtime.work, sandbox="workspace-write", approval_policy="never")
        session = await runtime.hub.start(LOCAL, spec)
        turn = session.say(TurnSpec(parts=(TextPart(f"%run {SCRIPT}"),)))
        output = ""
        async for event in turn.events:
            if isinstance(event, Activity) and event.status != "running":
                output = event.output or output
        return _outcome(runtime.work, output, output)


def _outcome(work: Path, out: str, err: str) -> SandboxOutcome:
    inside, outside = work / "inside", work.parent / "outside"
    return SandboxOutcome(RAN in out, inside.exists(), outside.exists(), err)


# ── the check ──────────────────────────────────────────────────────────────


def on_outcome(
    outcome: SandboxOutcome, *, helps_landlock: bool = False, is_container: bool | None = None
) -> Check:
    facts = {
        "ran": outcome.ran,
        "wrote_inside": outcome.wrote_inside,
        "wrote_outside": outcome.wrote_outside,
    }
    if outcome.is_good:
        message = "The sandbox works: a command could write in its folder and was refused outside it."
        return Check("sandbox", "ok", message, facts=facts)
    if not outcome.ran:
        reason = redact(" ".join(outcome.stderr.split()))[:SHOWN_CHARS] or "no reason was given"
        if is_container is None:
            is_container = in_container()
        remedy = _remedy(outcome.stderr, helps_landlock=helps_landlock, is_container=is_container)
        message = sentence(f"The sandbox does not start here, so Codex cannot run commands in it: {reason}")
        return Check("sandbox", "error", message, remedy, facts)
    if outcome.wrote_outside:
        message = "The sandbox let a command write outside its folder."
        remedy = "Do not let Codex run commands unattended here, and send us a report (--report FILE)."
        return Check("sandbox", "error", message, remedy, facts)
    message = "A command in the sandbox cannot write in its own folder."
    return Check("sandbox", "error", message, "Check `sandbox_mode` in Codex's config.toml.", facts)


def _remedy(stderr: str, *, helps_landlock: bool, is_container: bool) -> str:
    """Failures differ only in the sandbox's error text, which is read here and nowhere else."""
    if "requires bubblewrap" in stderr or "incompatible with --use-legacy-landlock" in stderr:
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
